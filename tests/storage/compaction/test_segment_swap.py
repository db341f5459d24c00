"""Swaps that are refused, finished early, or met by a failing disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from headwater.base.clocks import ManualClock
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.segment_swap import CompactionTicket, SegmentSwap, swap_now
from headwater.storage.errors import LogStorageError
from headwater.storage.segments.segment_files import (
    CLEANED,
    DELETED,
    SNAPSHOT,
    SWAP,
    parse_segment_file_name,
)
from headwater.storage.truncation import truncate_fully, truncate_to
from tests.support.models.compaction import DIRECTORY, CompactedLog
from tests.support.models.compaction_steps import twice_dirtied

T = TypeVar("T")


def planned(scenario: CompactedLog) -> tuple[CompactionTicket, list[CleanedGroup]]:
    """A pass whose segments are written but not in place."""
    section = dirty_section(scenario.log, scenario.first_dirty_offset, scenario.now_ms)
    ticket, job = plan_compaction(section, CleanerConfig(), scenario.now_ms)
    items = compact(job, scenario.files, ManualClock())
    return ticket, [item for item in items if isinstance(item, CleanedGroup)]


def stages(scenario: CompactedLog) -> set[str]:
    names = map(parse_segment_file_name, scenario.files.list_dir(scenario.log.directory))
    return {name.stage for name in names if name is not None}


def test_a_truncated_log_refuses() -> None:
    scenario = twice_dirtied(1)
    ticket, groups = planned(scenario)
    assert CLEANED in stages(scenario)
    truncate_to(scenario.log, scenario.log.log_end_offset - 1, scenario.now_ms)
    for group in groups:
        assert not swap_now(ticket, group, scenario.now_ms)
    assert CLEANED not in stages(scenario) and SWAP not in stages(scenario)


def test_a_log_whose_segments_went_refuses() -> None:
    scenario = twice_dirtied(1)
    ticket, groups = planned(scenario)
    first = scenario.log.segments[0]
    scenario.log.segments.remove(first)
    scenario.log.retired.retire([first], scenario.now_ms)
    assert not swap_now(ticket, groups[0], scenario.now_ms)
    assert len(groups) == 1 or swap_now(ticket, groups[1], scenario.now_ms)


def test_a_log_that_is_gone_refuses() -> None:
    scenario = twice_dirtied(1)
    ticket, groups = planned(scenario)
    scenario.log.failure = LogStorageError("It was deleted.")
    assert not swap_now(ticket, groups[0], scenario.now_ms)


def test_a_swap_can_be_finished_while_it_waits_for_the_disk() -> None:
    scenario = twice_dirtied(2)
    ticket, groups = planned(scenario)
    swap = SegmentSwap(ticket, groups[0], scenario.now_ms)
    wait_count = 0

    async def run_in_thread(work: Callable[[], T]) -> T:
        nonlocal wait_count
        wait_count += 1
        result = work()
        # Somebody wants to truncate, and first has this finished.
        assert swap.finish()
        return result

    assert asyncio.run(swap.finish_in(run_in_thread))
    assert wait_count == 1
    assert SWAP not in stages(scenario)
    assert scenario.log.segments[0].size_bytes == groups[0].size_bytes


@pytest.mark.parametrize("at_step", [1, 2, 3])
def test_a_truncation_finishes_a_swap_first(at_step: int) -> None:
    scenario = twice_dirtied(2)
    log = scenario.log
    ticket, groups = planned(scenario)
    swap = SegmentSwap(ticket, groups[0], scenario.now_ms)
    step = 0

    async def run_in_thread(work: Callable[[], T]) -> T:
        nonlocal step
        step += 1
        result = work()
        if step == at_step:
            truncate_fully(log, 0, scenario.now_ms)
        return result

    assert asyncio.run(swap.finish_in(run_in_thread))
    assert log.unfinished is None
    assert SWAP not in stages(scenario)
    assert log.log_end_offset == 0


def test_a_failing_disk_fails_the_log() -> None:
    scenario = twice_dirtied(2)
    ticket, groups = planned(scenario)
    disk = scenario.files
    assert isinstance(disk, FaultyDisk)
    disk.faults.append(Fault({"sync_dir"}))
    with pytest.raises(LogStorageError):
        swap_now(ticket, groups[0], scenario.now_ms)
    assert scenario.log.failure is not None


def test_readers_of_the_old_segments_can_finish() -> None:
    scenario = twice_dirtied(2)
    log = scenario.log
    region = log.read(0, 1 << 20).region
    assert region is not None
    before = region.read()
    ticket, groups = planned(scenario)
    for group in groups:
        swap_now(ticket, group, scenario.now_ms)
    assert region.read() == before
    log.retired.remove_due(scenario.now_ms)
    assert DELETED not in stages(scenario)


def test_snapshots_go_with_their_segments() -> None:
    scenario = twice_dirtied(2)
    while scenario.compact() is not None:
        pass
    bases = {segment.base_offset for segment in scenario.log.segments}
    snapshots = {
        name.base_offset
        for name in map(parse_segment_file_name, scenario.files.list_dir(DIRECTORY))
        if name is not None and name.suffix == SNAPSHOT
    }
    assert snapshots <= bases
