"""What a job is told of the log."""

from __future__ import annotations

from headwater.sim.campaigns.logs import NOW_MS, append_numbered, end_transaction, open_log
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction_filter import LastBatch
from headwater.storage.compaction.compaction_plan import (
    CleanerConfig,
    last_batches,
    plan_compaction,
)
from headwater.storage.log_config import LogConfig


def test_producers_are_known_by_their_last_data_or_by_their_epoch() -> None:
    log = open_log(FaultyDisk(directories=["/"]), "/topic-0")
    append_numbered(log, 0, b"a", b"b", producer_id=5)
    append_numbered(log, 2, b"c", producer_id=5)
    append_numbered(log, 0, b"x", producer_id=7, transactional=True)
    end_transaction(log, 7, commit=True)
    end_transaction(log, 8, commit=False)
    assert last_batches(log.producer_states) == {
        5: LastBatch(0, 2),
        7: LastBatch(0, 3),
        8: LastBatch(0, None),
    }


def test_a_job_covers_the_sealed_segments_and_shares_the_settings() -> None:
    log = open_log(FaultyDisk(directories=["/"]), "/topic-0", LogConfig(index_interval_bytes=1))
    for number in range(3):
        append_numbered(log, number, b"a")
        append_numbered(log, number, b"b", producer_id=9)
        log.roll(NOW_MS)
    log.flush()
    log.raise_high_watermark(4)
    config = CleanerConfig(threads=2, dedupe_buffer_bytes=1_000, io_max_bytes_per_second=50)
    ticket, job = plan_compaction(dirty_section(log, 1, NOW_MS), config, NOW_MS)
    assert ticket.base_offsets == (0, 2)
    assert ticket.is_valid(ticket.base_offsets)
    assert [segment[:3] for segment in job.segments] == [
        (0, 2, log.segments[0].size_bytes),
        (2, 4, log.segments[1].size_bytes),
    ]
    assert job.segments[0].offset_index_bytes == log.segments[0].offset_index.size_bytes > 0
    assert (job.first_dirty_offset, job.end_offset) == (1, 4)
    assert job.later_base_offsets == (4, 6)
    assert (job.dedupe_buffer_bytes, job.io_max_bytes_per_second) == (500, 25)
