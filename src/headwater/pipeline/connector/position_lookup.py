"""Makes offsets of a position that options gave, by asking for what is in the topics.

Sans-io but for `OffsetSource`, which is a cluster, or whatever a test puts in its place.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Protocol

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.data_loss import DataLossReport, aged_out, beyond_end
from headwater.pipeline.connector.option_table import OptionError
from headwater.pipeline.connector.positions import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    GivenOffsets,
    GivenTime,
    GivenTimes,
    Place,
    Position,
)

Offsets = dict[TopicPartition, int]


class OffsetSource(Protocol):
    """What can be asked of a cluster."""

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The ends of what can be read."""
        ...

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The ends of all there is, what cannot be read yet included."""
        ...

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> Offsets:
        """The first offsets that are not older; without partitions that have none."""
        ...

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        """Without partitions of which the group has committed nothing."""
        ...


class PositionLookup:
    def __init__(self, source: OffsetSource, loss: DataLossReport) -> None:
        self._source = source
        self._loss = loss

    def starts(
        self,
        position: Position,
        partitions: Collection[TopicPartition],
        *,
        group: str = "",
        is_missing_time_latest: bool = False,
    ) -> Offsets:
        """Where to begin in each partition."""
        match position:
            case GivenTime() | GivenTimes():
                times_ms = _times(position, partitions, "startingOffsetsByTimestamp")
                found = self._source.at_times(times_ms)
                missing = sorted(set(times_ms) - set(found))
                if missing and not is_missing_time_latest:
                    raise OptionError(
                        f"{', '.join(map(str, missing))} has no record of the time "
                        f"{times_ms[missing[0]]} or later; to begin at the end there, set "
                        "'startingOffsetsByTimestampStrategy' to latest."
                    )
                return found | self._source.latest(missing)
            case Place.GROUP:
                committed = self._source.committed(group, partitions)
                others = [each for each in partitions if each not in committed]
                return self._bounded(committed) | self._source.earliest(others)
            case _:
                return self._placed(position, partitions, "startingOffsets")

    def ends(self, position: Position, partitions: Collection[TopicPartition]) -> Offsets:
        """Where to end in each partition."""
        match position:
            case GivenTime() | GivenTimes():
                times_ms = _times(position, partitions, "endingOffsetsByTimestamp")
                latest = self._source.latest(list(times_ms))
                # What is found may be in an open transaction, which cannot be read yet.
                found = self._source.at_times(times_ms)
                return {each: min(end, found.get(each, end)) for each, end in latest.items()}
            case _:
                return self._placed(position, partitions, "endingOffsets")

    def _placed(
        self, position: Position, partitions: Collection[TopicPartition], option: str
    ) -> Offsets:
        if position is Place.EARLIEST:
            return self._source.earliest(partitions)
        if position is Place.LATEST or not isinstance(position, GivenOffsets):
            return self._source.latest(partitions)
        _check_same(position.offsets, partitions, option)
        given = {each: offset for each, offset in position.offsets.items() if offset >= 0}
        earliest = [e for e, offset in position.offsets.items() if offset == EARLIEST_OFFSET]
        latest = [e for e, offset in position.offsets.items() if offset == LATEST_OFFSET]
        return self._bounded(given) | self._source.earliest(earliest) | self._source.latest(latest)

    def _bounded(self, offsets: Offsets) -> Offsets:
        """The same within what the partitions hold; who wants others hears of it."""
        earliest, latest = self._source.earliest(offsets), self._source.log_ends(offsets)
        bounded: Offsets = {}
        for each, offset in sorted(offsets.items()):
            if offset < earliest[each]:
                self._loss.tell(aged_out(each, offset, earliest[each]))
            elif offset > latest[each]:
                self._loss.tell(beyond_end(each, offset, latest[each]))
            bounded[each] = min(max(offset, earliest[each]), latest[each])
        return bounded


def _times(
    position: GivenTime | GivenTimes, partitions: Collection[TopicPartition], option: str
) -> Mapping[TopicPartition, int]:
    if isinstance(position, GivenTime):
        return dict.fromkeys(partitions, position.time_ms)
    _check_same(position.times_ms, partitions, option)
    return position.times_ms


def _check_same(
    given: Collection[TopicPartition], partitions: Collection[TopicPartition], option: str
) -> None:
    """Raise `OptionError` unless the option names just the partitions that are read."""
    extra, missing = sorted(set(given) - set(partitions)), sorted(set(partitions) - set(given))
    if extra:
        near = difflib.get_close_matches(str(extra[0]), map(str, missing), n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise OptionError(f"The option '{option}' has {extra[0]}, which is not read{hint}")
    if missing:
        raise OptionError(
            f"The option '{option}' must have all partitions that are read, and lacks "
            f"{', '.join(map(str, missing))}."
        )
