"""Delays and moments on a command line: `30s` or `5m`, `2026-11-20T10:00:00Z` or milliseconds."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

DelayOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--delay", metavar="DELAY", help="How much later: 250ms, 30s, 5m, 2h, 7d or milliseconds."
    ),
]
DeliverAtOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--deliver-at",
        metavar="TIME",
        help="When: 2026-11-20T10:00:00Z, or milliseconds since 1970.",
    ),
]


def given_delay(text: str | None, option: str) -> int | None:
    """The milliseconds of a delay, if one was given."""
    from headwater.base.durations import parse_duration_ms

    if text is None:
        return None
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(_in_sentence(error), param_hint=option) from None


def given_moment(text: str | None, option: str) -> int | None:
    """The milliseconds since 1970 of a moment, if one was given."""
    from datetime import datetime

    from headwater.client.delay_times import moment_ms_of

    if text is None:
        return None
    try:
        if text.isascii() and text.isdigit():
            # Longer numbers are beyond any time, and take long to read.
            return moment_ms_of(int(text[:20]), "it")
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time such as 2026-11-20T10:00:00Z, nor milliseconds since 1970",
            param_hint=option,
        ) from None
    if moment.utcoffset() is None:
        raise typer.BadParameter(
            f"{text!r} has no time zone: add Z for UTC, or one such as +02:00", param_hint=option
        )
    try:
        return moment_ms_of(moment, "it")
    except ValueError:
        raise typer.BadParameter(f"{text!r} is before 1970", param_hint=option) from None


def _in_sentence(error: ValueError) -> str:
    return str(error).removesuffix(".")
