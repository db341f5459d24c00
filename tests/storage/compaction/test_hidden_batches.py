"""A topic that is compacted from some day on keeps the delayed batches that its log has."""

from __future__ import annotations

from random import Random

from headwater.base.clocks import ManualClock
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, append, new_disk, open_log
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.segment_swap import swap_now
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from tests.support.models.hidden_log import HiddenLog, append_delayed, without_times

CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), index_interval_bytes=100)


def dirtied(seed: int = 0) -> tuple[FaultyDisk, PartitionLog]:
    """Three segments, in the first two of which each value but the last is superseded."""
    disk = new_disk(seed)
    log = open_log(disk, DIRECTORY, CONFIG)
    for _ in range(2):
        append(log, b"old")
        append_delayed(log, b"hidden")
        append(log, b"old")
        append_delayed(log, b"hidden")
        log.roll(NOW_MS)
    append(log, b"new")
    log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(log.log_end_offset)
    return disk, log


def clean(log: PartitionLog) -> None:
    section = dirty_section(log, 0, NOW_MS)
    ticket, job = plan_compaction(section, CleanerConfig(), NOW_MS)
    for item in compact(job, log.files, ManualClock()):
        if isinstance(item, CleanedGroup):
            assert swap_now(ticket, item, NOW_MS)


def check(log: PartitionLog) -> list[int]:
    """Nothing hidden is gone or seen; returns which offsets there are."""
    world = HiddenLog.__new__(HiddenLog)
    world.log = log
    headers = world.headers()
    assert [each.base_offset for each in headers if each.is_delayed] == [1, 3, 5, 7]
    found = [
        [] if segment.hidden is None else without_times(list(segment.hidden))
        for segment in log.segments
    ]
    assert found == world.stretches()
    assert log.visible_end(log.log_end_offset) == world.visible_end(log.log_end_offset)
    return [each.base_offset for each in headers]


def test_compaction_leaves_delayed_batches_and_what_hides_them() -> None:
    disk, log = dirtied()
    clean(log)
    assert check(log) == [1, 3, 5, 7, 8]
    read = log.read_records(0, 1 << 20, upper_offset=9, min_one_batch=True)
    assert read.region is not None and int.from_bytes(read.region.read()[:8], "big") == 8
    log.close()
    check(open_log(disk, DIRECTORY, CONFIG, is_clean=True, recovery_point=9))


def test_a_crash_during_the_swap_never_shows_a_hidden_batch() -> None:
    for seed in range(3):
        for count in range(1, 400):
            disk, log = dirtied(seed)
            point = log.recovery_point
            disk.before_operation = PowerCut(count)
            try:
                clean(log)
            except SimulatedCrash:
                after = disk.crash(Random(seed + count))
                check(open_log(after, DIRECTORY, CONFIG, recovery_point=point))
            else:
                break
        assert count > 5
