"""The options of `headwater groups reset-offsets` that say where to, of which one is given."""

from __future__ import annotations

import time

import typer

from headwater.cli.groups.offset_reset import (
    OffsetReset,
    ResetKind,
    parse_iso_duration_ms,
    parse_moment_ms,
)


def parse_reset(
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: str | None,
) -> OffsetReset | None:
    """The rule that the options give, None if a file says it.

    Times below 0 have meanings of their own in the protocol, and no record is so old.
    """
    given: list[OffsetReset | None] = [
        OffsetReset(kind)
        for kind, is_given in (
            (ResetKind.EARLIEST, to_earliest),
            (ResetKind.LATEST, to_latest),
            (ResetKind.CURRENT, to_current),
        )
        if is_given
    ]
    if to_offset is not None:
        given.append(OffsetReset(ResetKind.OFFSET, to_offset))
    if shift_by is not None:
        given.append(OffsetReset(ResetKind.SHIFT, shift_by))
    if to_datetime is not None:
        given.append(OffsetReset(ResetKind.TIME, max(0, parse_moment_ms(to_datetime))))
    if by_duration is not None:
        now_ms = int(time.time() * 1000)
        begin_ms = max(0, now_ms - parse_iso_duration_ms(by_duration))
        given.append(OffsetReset(ResetKind.TIME, begin_ms))
    if from_file is not None:
        given.append(None)
    if len(given) != 1:
        raise typer.BadParameter(
            "say where to, in one way",
            param_hint="--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
            "--to-datetime, --by-duration or --from-file",
        )
    return given[0]
