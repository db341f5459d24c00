"""A data directory that a real Apache Kafka wrote opens here and reads as Kafka served it."""

import shutil
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.storage.checkpoints import LOG_START, RECOVERY_POINT, OffsetCheckpoint
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.records import decode_records, read_batch_header
from tests.support.kafka.data import TOPICS, KafkaDataDir, shared_kafka_data_dirs
from tests.support.kafka.node import require_apache_kafka
from tests.support.kafka.writer import Message, ServedRecord

pytestmark = pytest.mark.kafka

FILES = DiskFiles()


@pytest.fixture(scope="module")
def kafka_dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[KafkaDataDir, KafkaDataDir]:
    require_apache_kafka()
    return shared_kafka_data_dirs(tmp_path_factory)


def open_copy(data: KafkaDataDir, topic: str, tmp_path: Path) -> PartitionLog:
    """Opening may repair, so it works on a copy."""
    partition = TopicPartition(topic, 0)
    shutil.copytree(data.log_dir / str(partition), tmp_path / str(partition))
    checkpoints = {
        name: OffsetCheckpoint(FILES, str(data.log_dir / name)).read()
        for name in (RECOVERY_POINT, LOG_START)
    }
    return LogLoader(
        partition,
        str(tmp_path / str(partition)),
        LogConfig(),
        FILES,
        HandleCache(FILES, 50),
        now_ms=NOW_MS,
        is_clean=data.is_clean,
        recovery_point=checkpoints[RECOVERY_POINT].get(partition, 0),
        log_start_offset=checkpoints[LOG_START].get(partition, 0),
        gaps_are_losses=False,
    ).load()


def served(log: PartitionLog, upper_offset: int, *, committed: bool = False) -> list[ServedRecord]:
    """What a consumer of this log would get."""
    aborted = log.aborted_transactions(log.log_start_offset, upper_offset) if committed else []
    records = []
    offset = log.log_start_offset
    while offset < upper_offset:
        region = log.read(offset, 1, upper_offset=upper_offset, min_one_batch=True).region
        if region is None:
            break
        header = read_batch_header(region.read())
        hidden = header.is_transactional and any(
            entry.producer_id == header.producer_id
            and entry.first_offset <= header.base_offset <= entry.last_offset
            for entry in aborted
        )
        if not header.is_control and not hidden:
            records += [r for r in decode_records(region.read()) if r.offset >= offset]
        offset = header.next_offset
    return [
        ServedRecord(r.offset, r.timestamp, Message(r.key, r.value, r.headers)) for r in records
    ]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("state", ["stopped", "killed"])
def test_every_record_is_found(
    topic: str, state: str, kafka_dirs: tuple[KafkaDataDir, KafkaDataDir], tmp_path: Path
) -> None:
    data = kafka_dirs[0 if state == "stopped" else 1]
    expected = data.topics[topic]
    log = open_copy(data, topic, tmp_path)
    log.raise_high_watermark(log.log_end_offset)

    assert log.log_start_offset == expected.log_start_offset
    assert log.log_end_offset == expected.end_offset
    assert log.last_stable_offset == expected.last_stable_offset
    assert served(log, log.log_end_offset) == expected.records
    assert served(log, log.last_stable_offset, committed=True) == expected.committed


@pytest.mark.parametrize("state", ["stopped", "killed"])
def test_timestamps_are_found(
    state: str, kafka_dirs: tuple[KafkaDataDir, KafkaDataDir], tmp_path: Path
) -> None:
    data = kafka_dirs[0 if state == "stopped" else 1]
    log = open_copy(data, "codec-gzip", tmp_path)
    records = read_records(log, log.log_start_offset)
    for wanted in records[:: max(1, len(records) // 20)]:
        found = log.offset_for_timestamp(wanted.timestamp)
        first = next(record for record in records if record.timestamp >= wanted.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (first.offset, first.timestamp)
