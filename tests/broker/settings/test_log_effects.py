"""Settings of logs change what a running broker does to its logs.

Most of these are tested at length in tests/storage; here a whole broker is started with one setting
changed, to see that the value finds its way.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.replication.partition.partition import Partition
from headwater.wire.records import Compression, Record, encode_batch
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

HOUR_MS = 3_600_000
#: Periodic tasks begin at once and come around often.
IMPATIENT = {"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "10"}
LARGE = b"x" * 600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def append(partition: Partition, timestamp_ms: int, value: bytes = b"v", key: bytes = b"k") -> None:
    batch = bytearray(encode_batch([Record(0, timestamp_ms, key, value)]))
    partition.append(batch, acks=1, now_ms=now_ms())


async def until(condition: Callable[[], bool], what: str) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{what} did not come about")


def with_topic(
    tmp_path: Path,
    settings: dict[str, str],
    scenario: Callable[[HandlerBroker, Partition], Awaitable[None]],
) -> None:
    async def run(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await scenario(broker, broker.context.partitions.get("orders", 0))

    run_with_broker(tmp_path, run, settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.retention.hours", "1"),
        ("log.retention.minutes", "60"),
        ("log.retention.ms", "3600000"),
    ],
)
def test_old_records_go(tmp_path: Path, name: str, value: str) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        append(partition, now_ms() - 2 * HOUR_MS)
        await until(lambda: partition.log_start_offset == 1, "retention by time")

    with_topic(tmp_path, {**IMPATIENT, name: value}, scenario)


def test_the_finer_unit_wins(tmp_path: Path) -> None:
    units = {"hours": "3", "minutes": "1", "ms": str(5 * HOUR_MS)}

    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        assert partition.log.config.retention_ms == 5 * HOUR_MS

    with_topic(tmp_path, {f"log.retention.{unit}": text for unit, text in units.items()}, scenario)


def test_large_logs_are_cut(tmp_path: Path) -> None:
    settings = {**IMPATIENT, "log.retention.bytes": "1000000", "log.segment.bytes": str(1 << 20)}

    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        for _ in range(4):
            append(partition, now_ms(), LARGE)
        await until(lambda: partition.log_start_offset == 2, "retention by size")

    with_topic(tmp_path, settings, scenario)


@pytest.mark.parametrize(
    ("settings", "is_removed"), [({"log.segment.delete.delay.ms": "0"}, True), ({}, False)]
)
def test_files_stay_for_a_while(tmp_path: Path, settings: dict[str, str], is_removed: bool) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        append(partition, now_ms() - 2 * HOUR_MS)
        await until(lambda: partition.log_start_offset == 1, "retention by time")
        files = tmp_path / "orders-0"
        if is_removed:
            await until(lambda: len(list(files.glob("*.log*"))) == 1, "removing files")
        else:
            assert [path.name for path in files.glob("*.log.deleted")] == [
                "00000000000000000000.log.deleted"
            ]

    with_topic(tmp_path, {**IMPATIENT, "log.retention.ms": "1000", **settings}, scenario)


@pytest.mark.parametrize(
    ("settings", "segments"),
    [
        ({}, 1),
        ({"log.roll.hours": "1"}, 2),
        ({"log.roll.ms": str(HOUR_MS)}, 2),
        ({"log.roll.hours": "1", "log.roll.ms": str(5 * HOUR_MS)}, 1),
    ],
)
def test_segments_roll_by_time(tmp_path: Path, settings: dict[str, str], segments: int) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        for hours in (3, 1):
            append(partition, now_ms() - hours * HOUR_MS)
        assert len(partition.log.segments) == segments

    with_topic(tmp_path, settings, scenario)


@pytest.mark.parametrize(
    ("settings", "segments"), [({}, 1), ({"log.segment.bytes": str(1 << 20)}, 2)]
)
def test_segments_roll_by_size(tmp_path: Path, settings: dict[str, str], segments: int) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        for _ in range(2):
            append(partition, now_ms(), LARGE)
        assert len(partition.log.segments) == segments

    with_topic(tmp_path, settings, scenario)


@pytest.mark.parametrize(
    ("settings", "entries", "segments"),
    [
        ({}, 2, 1),
        ({"log.index.interval.bytes": "0"}, 9, 1),
        ({"log.index.interval.bytes": "0", "log.index.size.max.bytes": "32"}, 1, 5),
    ],
)
def test_indexes(tmp_path: Path, settings: dict[str, str], entries: int, segments: int) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        for _ in range(10):
            append(partition, now_ms(), b"x" * 1000)
        log = partition.log
        assert len(log.segments) == segments
        assert len(log.segments.active.offset_index.entries()) == entries

    with_topic(tmp_path, settings, scenario)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("producer", Compression.LZ4),
        ("gzip", Compression.GZIP),
        ("zstd", Compression.ZSTD),
        ("uncompressed", Compression.NONE),
    ],
)
def test_compression(tmp_path: Path, text: str, codec: Compression) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        records = [Record(0, now_ms(), b"k", b"x" * 1000)]
        batch = bytearray(encode_batch(records, compression=Compression.LZ4))
        partition.append(batch, acks=1, now_ms=now_ms())
        (scanned,) = partition.log.segments.active.scan()
        assert scanned.header.compression is codec

    with_topic(tmp_path, {"compression.type": text}, scenario)


@pytest.mark.parametrize(("text", "is_own"), [("CreateTime", True), ("LogAppendTime", False)])
def test_timestamps(tmp_path: Path, text: str, is_own: bool) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        own_ms = now_ms() - HOUR_MS
        append(partition, own_ms)
        (scanned,) = partition.log.segments.active.scan()
        assert (scanned.header.max_timestamp == own_ms) == is_own

    with_topic(tmp_path, {"log.message.timestamp.type": text}, scenario)


def test_compacted_topics_want_keys(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        batch = bytearray(encode_batch([Record(0, now_ms(), None, b"v")]))
        with pytest.raises(KafkaError) as raised:
            partition.append(batch, acks=1, now_ms=now_ms())
        assert raised.value.code is ErrorCode.INVALID_RECORD

    with_topic(tmp_path, {"log.cleanup.policy": "compact"}, scenario)


@pytest.mark.parametrize(("text", "waits"), [("1", True), ("2", False)])
def test_flushing_by_count(tmp_path: Path, text: str, waits: bool) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        append(partition, now_ms())
        assert partition.needs_fsync(acks=1) == waits

    with_topic(tmp_path, {"log.flush.interval.messages": text}, scenario)


@pytest.mark.parametrize(
    "settings",
    [
        {"log.flush.interval.ms": "1", "log.flush.scheduler.interval.ms": "10"},
        {"log.flush.scheduler.interval.ms": "10"},
    ],
)
def test_flushing_by_time(tmp_path: Path, settings: dict[str, str]) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        append(partition, now_ms())
        await until(lambda: partition.log.flushed_offset == 1, "flushing by time")

    with_topic(tmp_path, {"log.initial.task.delay.ms": "0", **settings}, scenario)


COMPACTING = {
    "log.cleanup.policy": "compact",
    "log.segment.bytes": str(1 << 20),
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.initial.task.delay.ms": "0",
}


def fill(partition: Partition) -> None:
    """Three segments of the same keys, the first two of which can be compacted."""
    for _ in range(6):
        append(partition, now_ms(), LARGE[:400_000])
        partition.log.flush()


def test_compaction(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        fill(partition)
        size = partition.log.size_bytes
        await until(lambda: partition.log.size_bytes < size, "compaction")

    with_topic(tmp_path, COMPACTING, scenario)


def test_a_log_that_is_clean_enough_is_left_alone(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        await broker.create_topic("dirty", configs={"min.cleanable.dirty.ratio": "0.1"})
        dirty = broker.context.partitions.get("dirty", 0)
        fill(partition)
        fill(dirty)
        size = partition.log.size_bytes
        await until(lambda: dirty.log.size_bytes < size, "compaction of the other")
        assert partition.log.size_bytes == size

    with_topic(tmp_path, {**COMPACTING, "log.cleaner.min.cleanable.ratio": "1"}, scenario)


@pytest.mark.parametrize("text", ["true", "false"])
def test_compaction_can_be_turned_off(tmp_path: Path, text: str) -> None:
    async def scenario(broker: HandlerBroker, partition: Partition) -> None:
        running = [repr(task.get_coro()) for task in asyncio.all_tasks()]
        assert any("Cleaner.run" in each for each in running) == (text == "true")

    with_topic(tmp_path, {**COMPACTING, "log.cleaner.enable": text}, scenario)
