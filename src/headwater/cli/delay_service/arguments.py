"""Options of services, as they are written on the command line."""

from __future__ import annotations

import typer

from headwater.base.durations import parse_duration_ms


def duration_ms(text: str, option: str) -> int:
    """A length of time, or a usage error that names the option."""
    try:
        value_ms = parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if value_ms < 1:
        raise typer.BadParameter("it must be 1ms at least", param_hint=option)
    return value_ms


def service_properties(assignments: list[str] | None, option: str) -> dict[str, object]:
    """Settings by name; whether there are such settings the client says."""
    properties: dict[str, object] = {}
    for assignment in assignments or ():
        name, separator, value = assignment.partition("=")
        if not separator:
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint=option)
        properties[name] = value
    return properties
