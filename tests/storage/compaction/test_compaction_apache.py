"""Compacted logs and Apache Kafka: its dumper reads ours, and its cleaner leaves what ours does."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from headwater.base.clocks import ManualClock, SystemClock
from headwater.base.ids import TopicPartition
from headwater.storage.compaction.cleanable import dirty_section
from headwater.storage.compaction.compaction import compact
from headwater.storage.compaction.compaction_job import CleanedGroup
from headwater.storage.compaction.compaction_plan import CleanerConfig, plan_compaction
from headwater.storage.compaction.segment_swap import swap_now
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.segments.batch_scan import read_entry_header
from headwater.testing.apache_kafka import KafkaNode, dump_log, parse_dump
from headwater.wire.records import Record, decode_batch
from tests.support.kafka.data import COMPACT, NODE_PROPERTIES
from tests.support.kafka.node import require_apache_kafka, small_node
from tests.support.kafka.writer import TIMEOUT_S, KafkaWriter
from tests.support.models import compaction
from tests.support.models.compaction import SMALL, CompactedLog
from tests.support.models.compaction_steps import perform, random_operation

pytestmark = pytest.mark.kafka

SEGMENT_BYTES = 8192
TOPIC = "updates"


def test_apaches_dumper_reads_a_compacted_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = require_apache_kafka()
    monkeypatch.setattr(compaction, "DIRECTORY", str(tmp_path / "topic-0"))
    scenario = CompactedLog(DiskFiles())
    rng = Random(5)
    for number in range(160):
        operation = random_operation(rng)
        perform(scenario, ("compact", 100) if number % 40 == 39 else operation)
    scenario.check()
    scenario.log.close()
    paths = sorted(
        path for path in (tmp_path / "topic-0").iterdir() if path.suffix.endswith(("log", "index"))
    )
    dump = parse_dump(dump_log(paths, "--deep-iteration", kafka=kafka))
    # A deep look at any compacted log finds gaps.
    assert [each for each in dump.complaints if "Non-consecutive" not in each] == []
    batches = [batch for file in dump.files for batch in file.batches]
    assert all(batch.is_valid for batch in batches)
    offsets = [r.offset for batch in batches if not batch.is_control for r in batch.records]
    assert offsets == sorted(scenario.stored)
    horizons = {batch.base_offset: batch.delete_horizon_ms for batch in batches}
    assert any(horizons.values())
    assert any(batch.count == 0 for batch in batches)


class Left(NamedTuple):
    """A batch in a compacted log, but for what depends on the moment of compaction."""

    base_offset: int
    last_offset: int
    attributes: int
    leader_epoch: int
    max_timestamp: int
    producer: tuple[int, int, int]
    records: list[Record]


def left_in(log: PartitionLog) -> list[Left]:
    left = []
    for segment in log.segments.sealed:
        for batch in segment.scan():
            header = read_entry_header(batch.data)
            left.append(
                Left(
                    header.base_offset,
                    header.last_offset,
                    header.attributes,
                    header.leader_epoch,
                    header.max_timestamp,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    decode_batch(batch.data),
                )
            )
    return left


def open_copy(source: Path, target: Path, now_ms: int) -> PartitionLog:
    """The log that a node left behind when it stopped."""
    shutil.copytree(source, target)
    files = DiskFiles()
    config = LogConfig(
        segment_bytes=SEGMENT_BYTES,
        index_interval_bytes=512,
        delete_retention_ms=SMALL.delete_retention_ms,
    )
    log = LogLoader(
        TopicPartition(TOPIC, 0),
        str(target),
        config,
        files,
        HandleCache(files, 50),
        now_ms=now_ms,
        is_clean=True,
    ).load()
    log.raise_high_watermark(log.log_end_offset)
    return log


def compact_here(log: PartitionLog, first_dirty_offset: int, now_ms: int) -> int:
    section = dirty_section(log, first_dirty_offset, now_ms)
    ticket, job = plan_compaction(section, CleanerConfig(), now_ms)
    for item in compact(job, log.files, ManualClock()):
        if isinstance(item, CleanedGroup):
            assert swap_now(ticket, item, now_ms)
    return section.first_uncleanable_offset


def set_ratio(node: KafkaNode, ratio: float) -> None:
    change = ("--alter", "--add-config", f"min.cleanable.dirty.ratio={ratio}")
    node.run_tool("configs", "--entity-type", "topics", "--entity-name", TOPIC, *change)


def wait_for_cleaner(node: KafkaNode, offset: int) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    checkpoint = node.log_dirs[0] / "cleaner-offset-checkpoint"
    while f"{TOPIC} 0 {offset}" not in checkpoint.read_text().splitlines():
        assert time.monotonic() < deadline_s, checkpoint.read_text()
        time.sleep(0.05)


@pytest.mark.full
def test_apaches_cleaner_leaves_the_same(tmp_path: Path) -> None:
    properties = NODE_PROPERTIES
    settings = COMPACT | {"min.cleanable.dirty.ratio": "1.0", "delete.retention.ms": "1000"}
    first_dirty_offset = 0
    node = small_node(tmp_path / "node", properties)
    log_path = node.log_dirs[0] / f"{TOPIC}-0"
    for number in range(2):
        with node:
            writer = KafkaWriter(node, [TOPIC], seed=number)
            if number == 0:
                writer.create_topics({TOPIC: settings})
            else:
                set_ratio(node, 1.0)
            writer.send_updates(TOPIC)
            writer.send_in_transactions(TOPIC)
            writer.send_updates(TOPIC, key_prefix="filler")
        now_ms = SystemClock().wall_ms()
        ours = open_copy(log_path, tmp_path / f"ours-{number}", now_ms)
        first_dirty_offset = compact_here(ours, first_dirty_offset, now_ms)
        with node:
            set_ratio(node, 0.01)
            wait_for_cleaner(node, first_dirty_offset)
        theirs = open_copy(log_path, tmp_path / f"theirs-{number}", now_ms)
        expected, found = left_in(theirs), left_in(ours)
        # Ours leaves a header at the end of every segment, theirs only at the end of the pass.
        ends = {segment.next_offset for segment in ours.segments.sealed}
        headers = [each for each in found if not each.records and each.last_offset + 1 in ends]
        assert [each for each in found if each in expected or each not in headers] == expected
        assert len(headers) <= len(ends)
