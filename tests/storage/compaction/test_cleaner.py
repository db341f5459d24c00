"""The cleaner with jobs that run on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest

from headwater.base.clocks import ManualClock
from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import run_inline
from headwater.sim.campaigns.logs import NOW_MS, batch_of, read_records
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.compaction.cleaner import Cleaner, RunJob, inline_runner
from headwater.storage.compaction.cleaner_process import CompactionInterruptedError
from headwater.storage.compaction.compaction_job import (
    CleanedGroup,
    CompactionJob,
    CompactionResult,
)
from headwater.storage.compaction.compaction_plan import CleanerConfig
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import LogStorageError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.segments.segment_files import CLEANED, LOG, segment_path
from headwater.storage.truncation import truncate_fully, truncate_to

CONFIG = LogConfig(
    segment_bytes=1 << 20, cleanup_policy=frozenset({"compact"}), file_delete_delay_ms=0
)
Item = CleanedGroup | CompactionResult


@dataclass
class Broker:
    """Logs with a cleaner, and what it reported."""

    config: CleanerConfig = field(default_factory=CleanerConfig)
    saved: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk = FaultyDisk(directories=["/data"])
        self.clock = ManualClock(NOW_MS)
        self.cleaner = self.new_cleaner(inline_runner(self.disk, self.clock))

    def new_cleaner(self, run_job: RunJob) -> Cleaner:
        async def save_progress(log: PartitionLog, offset: int) -> None:
            self.saved.append((str(log.partition), offset))

        return Cleaner(self.config, self.clock, run_job, run_inline, save_progress)

    def log(self, topic: str, segment_count: int = 3, config: LogConfig = CONFIG) -> PartitionLog:
        partition = TopicPartition(topic, 0)
        handles = HandleCache(self.disk, 20)
        directory = f"/data/{partition}"
        log = LogLoader(partition, directory, config, self.disk, handles, now_ms=NOW_MS).load()
        for number in range(segment_count):
            self.dirty(log, b"%d" % number)
        return log

    def dirty(self, log: PartitionLog, value: bytes) -> None:
        """One more sealed segment, with two records of the one key."""
        log.append_as_leader(batch_of(b"old", value), leader_epoch=0, now_ms=NOW_MS)
        log.roll(NOW_MS)
        log.flush()
        log.raise_high_watermark(log.log_end_offset)

    def clean(self, *logs: PartitionLog) -> list[CompactionResult]:
        return asyncio.run(self.cleaner.clean_once(logs))

    def cleaned_files(self, log: PartitionLog) -> list[str]:
        return [name for name in self.disk.list_dir(log.directory) if name.endswith(CLEANED)]


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in read_records(log, log.log_start_offset)]


def test_a_pass_cleans_saves_and_reports() -> None:
    broker = Broker()
    log = broker.log("a")
    (result,) = broker.clean(log)
    assert values(log) == [b"2"]
    assert broker.saved == [("a-0", 6)]
    assert broker.cleaner.first_dirty_offsets == {log.partition: 6}
    assert broker.cleaner.last_result is result
    assert broker.cleaner.last_run_ms == NOW_MS
    assert broker.cleaner.max_dirty_percent == 100.0
    assert result.stats.records.records_kept == 1
    assert result.stats.bytes_after < result.stats.bytes_before
    log.retired.remove_due(NOW_MS)
    assert broker.clean(log) == [], "nothing is dirty any more"
    assert broker.cleaner.max_dirty_percent == 0.0


def test_the_dirtiest_log_comes_first_and_others_are_left_alone() -> None:
    broker = Broker()
    half_clean = broker.log("half", 1)
    broker.clean(half_clean)
    half_clean.retired.remove_due(NOW_MS)
    broker.dirty(half_clean, b"x")
    broker.dirty(half_clean, b"y")
    dirty = broker.log("dirty")
    other = broker.log("other", config=replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    broken = broker.log("broken")
    broken.failure = LogStorageError("Its disk failed.")
    broker.saved.clear()
    for _ in range(3):
        broker.clean(half_clean, other, broken, dirty)
    assert broker.saved == [("dirty-0", 6), ("half-0", 6)]
    assert len(values(other)) == 6


def test_several_logs_at_a_time() -> None:
    broker = Broker(CleanerConfig(threads=2))
    logs = [broker.log(name) for name in "abc"]
    assert len(broker.clean(*logs)) == 2
    assert len(broker.clean(*logs)) == 1
    assert {name for name, _ in broker.saved} == {"a-0", "b-0", "c-0"}


def test_a_checkpoint_that_does_not_fit_is_corrected() -> None:
    broker = Broker()
    clean = broker.log("clean", 0)
    dirty = broker.log("dirty")
    broker.cleaner.first_dirty_offsets = {clean.partition: 99, dirty.partition: 77}
    broker.clean(clean, dirty)
    assert broker.saved == [("clean-0", 0), ("dirty-0", 0), ("dirty-0", 6)]


def test_passes_wait_until_the_files_of_the_last_are_gone() -> None:
    broker = Broker()
    log = broker.log("a")
    broker.clean(log)
    for value in (b"x", b"y", b"z"):
        broker.dirty(log, value)
    assert broker.clean(log) == []
    log.retired.remove_due(NOW_MS)
    assert len(broker.clean(log)) == 1


def test_a_damaged_log_is_uncleanable_and_others_go_on() -> None:
    broker = Broker()
    log, other = broker.log("a"), broker.log("b", 2)
    file = broker.disk.open(segment_path(log.directory, 0, LOG))
    file.write_at(70, b"?")
    assert broker.clean(log, other) == []
    assert "checksum" in broker.cleaner.uncleanable[log.partition]
    assert broker.cleaned_files(log) == []
    assert len(broker.clean(log, other)) == 1
    assert broker.clean(log, other) == []
    broker.cleaner.log_removed(log.partition)
    assert broker.cleaner.uncleanable == {}


def test_a_disk_error_is_tried_again_later() -> None:
    broker = Broker()
    log = broker.log("a")
    fault = Fault({"write"}, hit_count_max=1)
    broker.disk.faults.append(fault)
    assert broker.clean(log) == []
    assert fault.hit_count == 1
    assert broker.cleaned_files(log) == []
    assert broker.clean(log) == [], "not at once"
    broker.clock.advance(broker.config.backoff_ms)
    assert len(broker.clean(log)) == 1


def test_an_interrupted_job_is_swept_up_and_tried_again() -> None:
    broker = Broker()
    log = broker.log("a")

    async def die(job: CompactionJob) -> AsyncGenerator[Item, None]:
        broker.disk.open(segment_path(job.directory, 0, LOG, CLEANED), create=True)
        raise CompactionInterruptedError("its process was killed")
        yield  # Which makes it a generator.

    working, broker.cleaner.run_job = broker.cleaner.run_job, die
    assert broker.clean(log) == []
    assert broker.cleaned_files(log) == []
    assert broker.cleaner.uncleanable == {}
    broker.cleaner.run_job = working
    broker.clock.advance(broker.config.backoff_ms)
    assert len(broker.clean(log)) == 1


@pytest.mark.parametrize("truncation", ["some", "all"])
def test_a_log_truncated_meanwhile_keeps_what_it_has(truncation: str) -> None:
    broker = Broker()
    log = broker.log("a")
    inline = broker.cleaner.run_job

    async def run(job: CompactionJob) -> AsyncGenerator[Item, None]:
        async for item in inline(job):
            if truncation == "some":
                truncate_to(log, 5, NOW_MS)
            else:
                truncate_fully(log, 0, NOW_MS)
            yield item

    broker.cleaner.run_job = run
    assert broker.clean(log) == []
    assert broker.saved == []
    assert broker.cleaner.uncleanable == {}
    assert values(log) == ([b"old", b"0", b"old", b"1"] if truncation == "some" else [])
    assert broker.cleaned_files(log) == []


def test_truncation_lowers_what_counts_as_clean() -> None:
    broker = Broker()
    log = broker.log("a")
    broker.clean(log)
    asyncio.run(broker.cleaner.log_truncated(log, 4))
    asyncio.run(broker.cleaner.log_truncated(log, 5))
    assert broker.saved == [("a-0", 6), ("a-0", 4)]
    assert broker.cleaner.first_dirty_offsets[log.partition] == 4


def test_a_rate_of_nothing_pauses_compaction() -> None:
    broker = Broker(CleanerConfig(io_max_bytes_per_second=0))
    assert broker.clean(broker.log("a")) == []


def test_it_runs_until_it_is_stopped() -> None:
    broker = Broker()
    log = broker.log("a")
    stop = asyncio.Event()
    broker.cleaner.on_idle = stop.set
    asyncio.run(asyncio.wait_for(broker.cleaner.run(lambda: [log], stop), timeout=10))
    assert values(log) == [b"2"]
