"""Apache Kafka's own log dumper reads what Headwater writes and finds nothing to complain of."""

from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import NOW_MS, open_log
from headwater.storage.disk.files import DiskFiles
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.testing.apache_kafka import parse_dump
from headwater.testing.apache_kafka.dump_values import Dump
from headwater.testing.apache_kafka.tools import dump_log
from headwater.wire.records import (
    Compression,
    ControlType,
    Record,
    TimestampType,
    encode_batch,
    encode_end_transaction_marker,
)
from tests.support.kafka.node import require_apache_kafka

pytestmark = pytest.mark.kafka

SMALL = LogConfig(segment_bytes=4_000, index_interval_bytes=300)
PRODUCER_EPOCH = 3


@pytest.fixture(autouse=True)
def _apache_kafka() -> None:
    require_apache_kafka()


def dump_directory(directory: Path) -> Dump:
    """Everything that the dumper knows to read, in one go."""
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(path for path in directory.iterdir() if path.suffix in suffixes)
    return parse_dump(dump_log(files, "--print-data-log", "--deep-iteration"))


def append(
    log: PartitionLog,
    count: int,
    compression: Compression = Compression.NONE,
    *,
    producer_id: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> list[Record]:
    """A batch with headers, null keys and null values; returns it as it stands in the log."""
    first_offset = log.log_end_offset
    records = [
        Record(
            number,
            NOW_MS + first_offset + number,
            None if number % 4 == 3 else b"key-%d" % number,
            None if number % 5 == 4 else b"value-%d" % (first_offset + number),
            (("h", b"1"), ("null", None)) if number % 2 else (),
        )
        for number in range(count)
    ]
    log.append_as_leader(
        encode_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=PRODUCER_EPOCH if producer_id >= 0 else -1,
            base_sequence=base_sequence,
            transactional=transactional,
        ),
        leader_epoch=2,
        now_ms=NOW_MS,
    )
    return [record._replace(offset=first_offset + record.offset) for record in records]


def end_transaction(log: PartitionLog, producer_id: int, control: ControlType) -> None:
    marker = encode_end_transaction_marker(
        control,
        coordinator_epoch=9,
        producer_id=producer_id,
        producer_epoch=PRODUCER_EPOCH,
        timestamp_ms=NOW_MS,
    )
    log.append_as_leader(marker, leader_epoch=2, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def test_records_of_every_compression(tmp_path: Path) -> None:
    expected = []
    log = open_log(DiskFiles(), str(tmp_path / "t-0"), SMALL)
    for round_number in range(20):
        for compression in Compression:
            expected += append(log, 1 + round_number % 7, compression)
    segment_count = len(log.segments)
    log.close()

    dump = dump_directory(tmp_path / "t-0")

    assert dump.complaints == []
    assert segment_count > 3
    records = [record for file in dump.files for record in file.records]
    assert [(r.offset, r.timestamp, r.key, r.payload, r.header_keys) for r in records] == [
        (r.offset, r.timestamp, text(r.key), text(r.value), tuple(key for key, _ in r.headers))
        for r in expected
    ]
    batches = [batch for file in dump.files for batch in file.batches]
    assert all(batch.is_valid and batch.partition_leader_epoch == 2 for batch in batches)
    assert {batch.compression for batch in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    # Indexes were really written and read: a file without entries would not complain either.
    assert sum(len(file.offset_entries) for file in dump.files) > 20
    assert sum(len(file.time_entries) for file in dump.files) > 20


def test_transactions_and_idempotent_producers(tmp_path: Path) -> None:
    log = open_log(DiskFiles(), str(tmp_path / "t-0"), SMALL)
    for number in range(30):
        append(log, 2, producer_id=11, base_sequence=number * 2, transactional=True)
        append(log, 3, producer_id=12, base_sequence=number * 3, transactional=True)
        append(log, 1, producer_id=13, base_sequence=number)
        end_transaction(log, 11, ControlType.COMMIT)
        end_transaction(log, 12, ControlType.ABORT)
        log.raise_high_watermark(log.log_end_offset)
    append(log, 2, producer_id=11, base_sequence=60, transactional=True)
    open_since = log.log_end_offset - 2
    aborted = log.aborted_transactions(0, log.log_end_offset)
    log.close()

    dump = dump_directory(tmp_path / "t-0")

    assert dump.complaints == []
    markers = [r.marker for file in dump.files for r in file.records if r.marker is not None]
    assert markers == ["COMMIT", "ABORT"] * 30
    found = [entry for file in dump.files for entry in file.aborted_transactions]
    assert [(e.producer_id, e.first_offset, e.last_offset) for e in found] == [
        (entry.producer_id, entry.first_offset, entry.last_offset) for entry in aborted
    ]
    assert len(found) == 30
    newest = dump.files[-1]
    assert newest.path.endswith(".snapshot")
    producers = {entry.producer_id: entry for entry in newest.producers}
    assert {id_: entry.last_sequence for id_, entry in producers.items()} == {
        11: 61,
        12: 89,
        13: 29,
    }
    assert producers[11].current_transaction_first_offset == open_since
    assert producers[12].coordinator_epoch == 9


def test_log_append_time_and_the_topics_own_compression(tmp_path: Path) -> None:
    config = LogConfig(
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
        compression=Compression.ZSTD,
        index_interval_bytes=100,
    )
    log = open_log(DiskFiles(), str(tmp_path / "t-0"), config)
    for compression in Compression:
        append(log, 5, compression)
    log.close()

    dump = dump_directory(tmp_path / "t-0")

    assert dump.complaints == []
    batches = [batch for file in dump.files for batch in file.batches]
    assert {batch.compression for batch in batches} == {"zstd"}
    assert {(r.timestamp_type, r.timestamp) for b in batches for r in b.records} == {
        ("LogAppendTime", NOW_MS)
    }


def test_what_recovery_leaves_after_a_torn_write(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    log = open_log(DiskFiles(), str(directory), SMALL)
    for _ in range(60):
        append(log, 3, Compression.LZ4)
    end_offset = log.log_end_offset
    torn = Path(log.segments.active.log.path)
    with torn.open("ab") as file:
        file.write(torn.read_bytes()[:100])

    log = open_log(DiskFiles(), str(directory), SMALL)
    log.close()

    dump = dump_directory(directory)
    assert dump.complaints == []
    assert log.log_end_offset == end_offset
    assert [r.offset for file in dump.files for r in file.records] == list(range(end_offset))
