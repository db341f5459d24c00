"""A length of time on the command line: `2s`, `10m`."""

from __future__ import annotations

import typer


def duration_ms(text: str, option: str) -> int:
    """Its milliseconds, 1 at least, or a usage error that names the option."""
    from headwater.base.durations import parse_duration_ms

    try:
        value_ms = parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if value_ms < 1:
        raise typer.BadParameter("it must be 1ms at least", param_hint=option)
    return value_ms
