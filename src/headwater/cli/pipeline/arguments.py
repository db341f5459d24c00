"""The arguments of `headwater pipeline run` that need thought: assignments, and ranges of time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import typer

from headwater.pipeline.declared.fields.durations import DurationError, parse_moment_ms
from headwater.pipeline.declared.specs.run_mode import Backfill, Continuous, Once, RunMode


def parse_assignments(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Values by name of `NAME=VALUE`s; the last of a name wins."""
    values = {}
    for assignment in given or ():
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{assignment!r} should be NAME=VALUE", param_hint=option)
        values[name.strip()] = value
    return values


def parse_mode(once: bool, from_time: str | None, until_time: str | None) -> RunMode:
    """How to run, by the options that say so."""
    if from_time is None and until_time is None:
        return Once() if once else Continuous()
    if once:
        raise typer.BadParameter(
            "a range of time ends by itself: leave out --once", param_hint="--from"
        )
    now_ms = time.time_ns() // 1_000_000
    from_ms = 0 if from_time is None else _moment(from_time, now_ms, "--from")
    until_ms = now_ms if until_time is None else _moment(until_time, now_ms, "--until")
    if from_ms >= until_ms:
        raise typer.BadParameter("it is not before --until", param_hint="--from")
    return Backfill(from_ms, until_ms)


def _moment(text: str, now_ms: int, option: str) -> int:
    try:
        return max(0, parse_moment_ms(text, now_ms))
    except DurationError as error:
        raise typer.BadParameter(str(error).rstrip("."), param_hint=option) from None
