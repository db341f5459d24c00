"""From what options say to offsets, against a model of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.data_loss import DataLossError, DataLossReport
from headwater.pipeline.connector.option_table import OptionError
from headwater.pipeline.connector.position_lookup import Offsets, PositionLookup
from headwater.pipeline.connector.positions import (
    GivenOffsets,
    GivenTime,
    GivenTimes,
    Place,
    Position,
)

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
BOTH = [A0, A1]


@dataclass
class ModelCluster:
    """Every record's timestamp is its offset times ten."""

    firsts: Offsets = field(default_factory=lambda: {A0: 5, A1: 0})
    stable_ends: Offsets = field(default_factory=lambda: {A0: 20, A1: 30})
    log_end_offsets: Offsets = field(default_factory=lambda: {A0: 25, A1: 30})
    commits: Offsets = field(default_factory=dict)

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.firsts[each] for each in partitions}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.stable_ends[each] for each in partitions}

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.log_end_offsets[each] for each in partitions}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> Offsets:
        found = {each: max(self.firsts[each], -(-time // 10)) for each, time in times_ms.items()}
        return {each: at for each, at in found.items() if at < self.log_end_offsets[each]}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        assert group == "mine"
        return {each: at for each, at in self.commits.items() if each in partitions}


def lookup(cluster: ModelCluster | None = None, *, is_fatal: bool = True) -> PositionLookup:
    return PositionLookup(cluster or ModelCluster(), DataLossReport(is_fatal=is_fatal))


def starts(position: Position, *, is_fatal: bool = True, **model: Offsets) -> Offsets:
    return lookup(ModelCluster(**model), is_fatal=is_fatal).starts(position, BOTH, group="mine")


def test_places() -> None:
    assert starts(Place.EARLIEST) == {A0: 5, A1: 0}
    assert starts(Place.LATEST) == {A0: 20, A1: 30}
    assert lookup().ends(Place.LATEST, BOTH) == {A0: 20, A1: 30}


def test_a_group_goes_on_where_it_has_committed_and_else_at_the_begin() -> None:
    assert starts(Place.GROUP, commits={A0: 7}) == {A0: 7, A1: 0}
    assert starts(Place.GROUP) == {A0: 5, A1: 0}


def test_given_offsets_with_places_among_them() -> None:
    assert starts(GivenOffsets({A0: -2, A1: 12})) == {A0: 5, A1: 12}
    assert starts(GivenOffsets({A0: -1, A1: 30})) == {A0: 20, A1: 30}
    assert lookup().ends(GivenOffsets({A0: -1, A1: 12}), BOTH) == {A0: 20, A1: 12}


def test_an_offset_in_an_open_transaction_is_no_loss() -> None:
    assert starts(GivenOffsets({A0: 24, A1: 0})) == {A0: 24, A1: 0}


@pytest.mark.parametrize(("offset", "bounded"), [(3, 5), (26, 25)])
def test_offsets_that_are_not_there(
    offset: int, bounded: int, caplog: pytest.LogCaptureFixture
) -> None:
    for position in (GivenOffsets({A0: offset, A1: 0}), Place.GROUP):
        with pytest.raises(DataLossError, match=f"offset {offset} "):
            starts(position, commits={A0: offset})
        found = starts(position, is_fatal=False, commits={A0: offset})
        assert found == {A0: bounded, A1: 0}
    assert f"offset {offset} " in caplog.text and "failOnDataLoss is false" in caplog.text


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({A0: 5}, "lacks a-1"),
        ({A0: 5, A1: 5, TopicPartition("a", 2): 5}, "has a-2, which is not read."),
        ({A0: 5, TopicPartition("a", 2): 5}, "has a-2, which is not read; did you mean a-1?"),
    ],
)
def test_given_partitions_are_those_that_are_read(given: Offsets, part: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets") as caught:
        starts(GivenOffsets(given))
    assert part in str(caught.value)
    with pytest.raises(OptionError, match="endingOffsetsByTimestamp"):
        lookup().ends(GivenTimes(given), BOTH)


def test_times() -> None:
    assert starts(GivenTime(95)) == {A0: 10, A1: 10}
    assert starts(GivenTimes({A0: 0, A1: 123})) == {A0: 5, A1: 13}
    assert lookup().ends(GivenTime(95), BOTH) == {A0: 10, A1: 10}


def test_an_end_by_time_is_never_behind_what_can_be_read() -> None:
    assert lookup().ends(GivenTime(220), BOTH) == {A0: 20, A1: 22}
    assert lookup().ends(GivenTime(10_000), BOTH) == {A0: 20, A1: 30}


def test_a_start_by_time_where_nothing_is_new_enough() -> None:
    with pytest.raises(OptionError, match="a-0 has no record of the time 270 or later"):
        starts(GivenTime(270))
    found = lookup().starts(GivenTime(270), BOTH, is_missing_time_latest=True)
    assert found == {A0: 20, A1: 27}
