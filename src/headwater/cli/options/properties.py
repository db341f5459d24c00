"""`--property name=value`: options of the readers and printers of Kafka's console tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import typer

from headwater.cli.options.choice import did_you_mean

_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\0": "\0", "\\\\": "\\"}


def parse_properties(assignments: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Each `name=value` by name; `\\t` and its like in a value are what they are elsewhere."""
    properties = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise typer.BadParameter(
                f"{assignment!r} should be NAME=VALUE", param_hint="--property"
            )
        if name not in known:
            raise typer.BadParameter(
                f"there is no property {name!r}{did_you_mean(name, known) or _listed(known)}",
                param_hint="--property",
            )
        properties[name] = _unescaped(value)
    return properties


def is_true(properties: dict[str, str], name: str, default: bool = False) -> bool:
    """The value of a property that is true or false."""
    text = properties.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise typer.BadParameter(f"{name} is true or false, not {text!r}", param_hint="--property")
    return text == "true"


def _listed(known: Collection[str]) -> str:
    return f": there are {', '.join(sorted(known))}"


def _unescaped(value: str) -> str:
    parts = []
    position = 0
    while position < len(value):
        escape = value[position : position + 2]
        if escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
            position += 2
        else:
            parts.append(value[position])
            position += 1
    return "".join(parts)
