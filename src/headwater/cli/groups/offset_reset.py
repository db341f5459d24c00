"""Where a group's offset in a partition goes by `headwater groups reset-offsets`: the arithmetic.

Sans-io: what the partition holds and what the group has committed come in, the new offset goes out.
As in Kafka's tool an offset, a shift and a file are kept within what the partition holds, a moment
after its last record means its end, and a group that never committed in a partition has no offset
to shift, and its end as the current one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

import typer

from headwater.base.errors import ErrorCode, KafkaError

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS_MS: Final = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


class ResetKind(Enum):
    """The ways to say where a group goes on, by their options."""

    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    CURRENT = "--to-current"
    OFFSET = "--to-offset"
    SHIFT = "--shift-by"
    TIME = "--to-datetime"


class PartitionPlace(NamedTuple):
    """What is known of a partition: its first and next offset, what the group has committed, and
    the first offset of the time that is asked for, if there is one.
    """

    earliest: int
    latest: int
    committed: int | None = None
    at_time: int | None = None

    def clamp(self, offset: int) -> int:
        """The offset, or the nearest that the partition holds."""
        return max(self.earliest, min(self.latest, offset))


class NothingCommittedError(KafkaError):
    """A shift from where the group never was."""

    code = ErrorCode.INVALID_REQUEST


class OffsetReset(NamedTuple):
    """One way, with its number: an offset, a shift, or a time in milliseconds."""

    kind: ResetKind
    value: int = 0

    def wanted(self, place: PartitionPlace) -> int:
        """The offset that is asked for, wherever that is."""
        match self.kind:
            case ResetKind.EARLIEST:
                return place.earliest
            case ResetKind.LATEST:
                return place.latest
            case ResetKind.CURRENT:
                return place.latest if place.committed is None else place.committed
            case ResetKind.OFFSET:
                return self.value
            case ResetKind.SHIFT:
                if place.committed is None:
                    raise NothingCommittedError("there is no committed offset to shift")
                return place.committed + self.value
            case ResetKind.TIME:
                return place.latest if place.at_time is None else place.at_time

    def apply(self, place: PartitionPlace) -> int:
        """The new offset; what is current stays, even if the partition has deleted it."""
        offset = self.wanted(place)
        return offset if self.kind is ResetKind.CURRENT else place.clamp(offset)


def parse_moment_ms(text: str) -> int:
    """Milliseconds of an ISO date and time, in UTC unless it says otherwise, as Kafka takes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} should be like 2026-01-31T12:00:00.000, with +01:00 if it is not UTC",
            param_hint="--to-datetime",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_iso_duration_ms(text: str) -> int:
    """Milliseconds of an ISO duration of days and smaller units: P7D, PT1H30M, P1DT0.5S."""
    match = _DURATION.fullmatch(text)
    if match is None or all(match[unit] is None for unit in _UNITS_MS):
        raise typer.BadParameter(
            f"{text!r} should be like P7D, PT1H30M or P1DT12H", param_hint="--by-duration"
        )
    total_ms = sum(int(match[unit] or 0) * size_ms for unit, size_ms in _UNITS_MS.items())
    fraction_ms = int(f"{match['fraction'] or '':0<3}"[:3])
    is_below_zero = (match["seconds"] or "").startswith("-")
    total_ms += -fraction_ms if is_below_zero else fraction_ms
    return -total_ms if match["sign"] == "-" else total_ms
