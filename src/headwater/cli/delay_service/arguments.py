"""Options of services, as they are written on the command line."""

from __future__ import annotations

import typer


def service_properties(assignments: list[str] | None, option: str) -> dict[str, object]:
    """Settings by name; whether there are such settings the client says."""
    properties: dict[str, object] = {}
    for assignment in assignments or ():
        name, separator, value = assignment.partition("=")
        if not separator:
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint=option)
        properties[name] = value
    return properties
