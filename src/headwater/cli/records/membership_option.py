"""`--group` and `--consumer-property`: as which consumer records are read, and in which group.

As with Kafka's console consumer a group may be named in either way, and decides itself where it
goes on: `--from-beginning` only counts where it has no offsets yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import typer

GROUP: Final = "group.id"
RESET: Final = "auto.offset.reset"
COMMIT: Final = "enable.auto.commit"
_OPTION: Final = "--consumer-property"


class Membership(NamedTuple):
    """The group that is joined, if any, and settings of the consumer by Kafka's names."""

    group_id: str | None
    settings: dict[str, str]


def parse_membership(
    group: str | None, assignments: Iterable[str], *, from_beginning: bool, commits: bool
) -> Membership:
    """What the options say together."""
    settings = _parse(assignments)
    named = settings.pop(GROUP, None)
    if group is not None and named not in (None, group):
        raise typer.BadParameter(
            f"{group!r} and {named!r} are two groups: name one", param_hint=f"--group and {_OPTION}"
        )
    group_id = group if group is not None else named
    if group_id == "":
        raise typer.BadParameter("a group has a name", param_hint="--group")
    if not commits:
        if group_id is None:
            raise typer.BadParameter(
                "only a group commits: leave it out, or name one", param_hint="--no-commit"
            )
        settings[COMMIT] = "false"
    if from_beginning and settings.get(RESET, "earliest") != "earliest":
        raise typer.BadParameter(
            f"it contradicts {RESET}={settings[RESET]}", param_hint="--from-beginning"
        )
    if group_id is not None:
        settings.setdefault(RESET, "earliest" if from_beginning else "latest")
    return Membership(group_id, settings)


def _parse(assignments: Iterable[str]) -> dict[str, str]:
    settings = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint=_OPTION)
        settings[name.strip()] = value.strip()
    return settings
