"""Settings on a command line: what they belong to, and changes like `a=1,b=[x,y]`.

A value may hold commas if it stands in brackets, which are not part of it; this is how Kafka's tool
takes lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import typer

from headwater.cli.options.choice import one_of

TOPICS = "topics"
BROKERS = "brokers"
BROKER_LOGGERS = "broker-loggers"
GROUPS = "groups"
CLIENT_METRICS = "client-metrics"
ENTITY_TYPES = (TOPICS, BROKERS, BROKER_LOGGERS, GROUPS, CLIENT_METRICS)

_OF_BROKERS = (BROKERS, BROKER_LOGGERS)
_SINGULAR = {kind: kind.removesuffix("s") for kind in ENTITY_TYPES}
_CHANGE = re.compile(r"\s*([^=,\[\]]+?)\s*=\s*(\[[^\]]*\]|[^,]*)\s*(?:,|$)")


class Entity(NamedTuple):
    """What has settings: a kind, and the name of one, or None for all or for their default."""

    entity_type: str
    name: str | None
    is_default: bool = False

    def __str__(self) -> str:
        """As in `Dynamic configs for topic orders are:`."""
        return f"{_SINGULAR[self.entity_type]} {self.name}"


def choose_entity(
    entity_type: str | None,
    entity_name: str | None,
    is_default: bool,
    shorthands: Mapping[str, str | None],
    broker_defaults: bool,
) -> Entity:
    """What the options of either style name; exactly one thing must be named."""
    given = [(kind, name) for kind, name in shorthands.items() if name is not None]
    if len(given) + broker_defaults + (entity_type is not None) != 1:
        raise typer.BadParameter(
            "say what the settings belong to, once",
            param_hint="--topic, --broker, --broker-defaults, --broker-logger or --entity-type",
        )
    if broker_defaults:
        return Entity(BROKERS, None, is_default=True)
    if given:
        return check_entity(Entity(*given[0]))
    return check_entity(Entity(entity_type or "", entity_name, is_default))


def check_entity(entity: Entity) -> Entity:
    """The entity, if there can be one like it."""
    kind, name, is_default = entity
    one_of(kind, ENTITY_TYPES, "--entity-type")
    if is_default and (kind != BROKERS or name is not None):
        raise typer.BadParameter(
            "only brokers have a default, and it has no name", param_hint="--entity-default"
        )
    if kind in _OF_BROKERS and name is not None and not re.fullmatch("[0-9]+", name, re.ASCII):
        raise typer.BadParameter(
            f"{name!r} is not the number of a broker", param_hint="--entity-name"
        )
    if kind == BROKER_LOGGERS and name is None:
        raise typer.BadParameter("name the broker", param_hint="--entity-name")
    return entity


def parse_changes(text: str) -> dict[str, str]:
    """`a=1,b=[x,y]` as values by name."""
    changes: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _CHANGE.match(text, position)
        if match is None:
            raise typer.BadParameter(
                f"{text!r} should be NAME=VALUE, with commas between several and brackets "
                "around a value that has commas itself",
                param_hint="--add-config",
            )
        name, value = match.groups()
        changes[name] = value.strip("[] ") if value.startswith("[") else value.strip()
        position = match.end()
    if not changes:
        raise typer.BadParameter("name a setting", param_hint="--add-config")
    return changes


def parse_names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]
