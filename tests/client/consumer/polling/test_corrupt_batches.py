"""Batches that cannot be read: named, or stepped over, whoever reads and in whatever form."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterator

import pytest

from headwater import AsyncConsumer, Consumer, TopicPartition, errors
from headwater.base.errors import KafkaError
from headwater.base.settings import SettingError
from headwater.client.consumer.deserializers import Deserializers
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.polling.record_reader import RecordReader
from headwater.client.fetch.corrupt_batches import CorruptBatchError, CorruptBatches
from headwater.client.fetch.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.ranges import RangeClient
from headwater.client.ranges.range_client import fetched_columns
from headwater.wire.records import ControlType, Record, encode_batch
from headwater.wire.records.batch_header import write_crc
from tests.support.values.fetched_batches import marker
from tests.support.values.poison_batches import (
    POISONED_END,
    POISONED_GOOD_OFFSETS,
    POISONED_TOPIC,
    POISONS,
    SPAN,
    good_batch,
    poisoned_broker,
)

PARTITION = TopicPartition("orders", 3)
TIMEOUT_S = 30.0

every_poison = pytest.mark.parametrize("poison", POISONS)
in_both_forms = pytest.mark.parametrize("as_columns", [False, True], ids=["records", "columns"])


def reader_of(
    data: bytes,
    corrupt: CorruptBatches,
    fetch_offset: int = 0,
    high_watermark: int = -1,
) -> RecordReader:
    fetched = FetchedPartition(PARTITION, fetch_offset, data, high_watermark=high_watermark)
    state = PartitionState(PARTITION)
    return RecordReader(state, fetched, Deserializers(), corrupt=corrupt)


def take(reader: RecordReader, as_columns: bool) -> list[int]:
    if not as_columns:
        return [record.offset for record in reader.take(10_000)]
    columns = reader.take_columns(10_000)
    return [] if columns is None else columns.offsets.tolist()


def take_all(reader: RecordReader, as_columns: bool) -> list[int]:
    found: list[int] = []
    while not reader.is_exhausted:
        found += take(reader, as_columns)
    return found


@every_poison
@in_both_forms
@pytest.mark.parametrize("count", [2, SPAN], ids=["few", "many"])
def test_a_batch_that_cannot_be_read_is_named(poison: str, as_columns: bool, count: int) -> None:
    bad = POISONS[poison](count)
    data = good_batch(0, count) + bad + good_batch(count + SPAN, count)
    reader = reader_of(data, CorruptBatches())
    assert take(reader, as_columns) == list(range(count))
    for form in (as_columns, as_columns, not as_columns):
        with pytest.raises(CorruptBatchError) as raised:
            take(reader, form)
        error = raised.value
        assert error.topic_partition == PARTITION
        assert (error.first_offset, error.last_offset) == (count, count + SPAN - 1)
        assert error.next_offset == count + SPAN
        assert isinstance(error.__cause__, KafkaError)
        expected = (
            f"The batch with offsets {count} to {count + SPAN - 1} of orders-3 cannot be read: "
            f"{error.__cause__} Seek to offset {count + SPAN} to go on after it, or set "
            "corrupt.batch.policy=skip to leave out all such batches."
        )
        assert str(error) == expected
        assert not error.retriable
        assert reader.offset == count
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.next_offset) == (expected, count + SPAN)


@every_poison
@in_both_forms
@pytest.mark.parametrize("count", [2, SPAN], ids=["few", "many"])
def test_batches_that_cannot_be_read_are_stepped_over(
    poison: str, as_columns: bool, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    make = POISONS[poison]
    second = count + SPAN
    third = second + count
    data = good_batch(0, count) + make(count) + good_batch(second, count) + make(third)
    corrupt = CorruptBatches(are_skipped=True)
    reader = reader_of(data, corrupt)
    assert take_all(reader, as_columns) == [*range(count), *range(second, third)]
    assert reader.offset == third + SPAN
    assert corrupt.skipped_count == 2
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2
    for first, text in zip((count, third), told, strict=True):
        assert text.startswith(
            f"The batch with offsets {first} to {first + SPAN - 1} of orders-3 cannot be read "
            "and is left out: "
        )


@in_both_forms
def test_nothing_but_such_a_batch(as_columns: bool) -> None:
    corrupt = CorruptBatches(are_skipped=True)
    reader = reader_of(POISONS["noise"](10), corrupt, fetch_offset=10)
    assert take(reader, as_columns) == []
    assert reader.is_exhausted
    assert reader.offset == 10 + SPAN


@in_both_forms
def test_one_that_was_sought_past_is_not_told(as_columns: bool) -> None:
    data = POISONS["noise"](0) + good_batch(SPAN, 4)
    reader = reader_of(data, CorruptBatches(), fetch_offset=SPAN + 1)
    assert take_all(reader, as_columns) == [SPAN + 1, SPAN + 2, SPAN + 3]


@in_both_forms
@pytest.mark.parametrize("delta", [-7, 1 << 30])
def test_a_last_offset_that_is_a_lie_leads_nowhere_else(as_columns: bool, delta: int) -> None:
    lie = bytearray(good_batch(0, 4))
    lie[23:27] = delta.to_bytes(4, "big", signed=True)
    for crc_is_right in (False, True):
        if crc_is_right:
            # With more offsets than records it is a compacted batch, and nothing is wrong with it.
            lie[-1] ^= 1
            write_crc(lie, 0, len(lie))
        corrupt = CorruptBatches(are_skipped=True)
        between = reader_of(bytes(lie) + good_batch(4, 4), corrupt, high_watermark=8)
        assert take_all(between, as_columns)[-4:] == [4, 5, 6, 7]
        assert between.offset == 8
        at_the_end = reader_of(good_batch(0, 4) + bytes(lie), corrupt, high_watermark=8)
        assert take_all(at_the_end, as_columns)[:4] == [0, 1, 2, 3]
        assert at_the_end.offset <= 8


def test_a_range_steps_over_too() -> None:
    data = good_batch(0) + POISONS["truncated gzip"](SPAN) + good_batch(2 * SPAN)
    fetched = FetchedPartition(PARTITION, 0, data)
    reading = fetched_columns(fetched, 0, 1000, check_crc=True, corrupt=CorruptBatches())
    assert len(next(reading)) == SPAN
    with pytest.raises(CorruptBatchError, match=f"Seek to offset {2 * SPAN} "):
        next(reading)
    skipping = CorruptBatches(are_skipped=True)
    reading = fetched_columns(fetched, 0, 1000, check_crc=True, corrupt=skipping)
    assert sum(len(columns) for columns in reading) == 2 * SPAN
    assert skipping.skipped_count == 1


@in_both_forms
def test_a_damaged_marker_still_ends_what_was_aborted(as_columns: bool) -> None:
    def transaction(first: int) -> bytes:
        records = [Record(first + index, 5, None, b"v") for index in range(3)]
        return encode_batch(
            records, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
        )

    damaged = bytearray(marker(ControlType.ABORT, 1, 3))
    damaged[-1] ^= 1
    data = transaction(0) + bytes(damaged) + transaction(4) + marker(ControlType.COMMIT, 1, 7)
    fetched = FetchedPartition(
        PARTITION,
        0,
        data,
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted=[AbortedRange(0, 1)],
    )
    reader = RecordReader(PartitionState(PARTITION), fetched, Deserializers())
    assert take_all(reader, as_columns) == [4, 5, 6]


# -- with a broker that has such batches in its log ----------------------------------------------


PLACE = TopicPartition(POISONED_TOPIC, 0)
GOOD, END = POISONED_GOOD_OFFSETS, POISONED_END


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with poisoned_broker(tmp_path_factory.mktemp("poisoned")) as broker:
        yield broker.bootstrap


def test_a_consumer_names_each_and_can_seek_past(poisoned: str) -> None:
    found: list[int] = []
    met: list[int] = []
    with Consumer(
        bootstrap_servers=poisoned, auto_offset_reset="earliest", fetch_max_wait_ms=10
    ) as consumer:
        consumer.assign([PLACE])
        while consumer.position(PLACE) < END:
            try:
                found += [record.offset for record in consumer.poll(TIMEOUT_S)]
            except errors.CorruptBatchError as error:
                met.append(error.first_offset)
                consumer.seek(error.topic_partition, error.next_offset)
    assert found == GOOD
    assert met == [(2 * number + 1) * SPAN for number in range(len(POISONS))]


@pytest.mark.parametrize("form", ["records", "arrow"])
def test_a_consumer_steps_over_all(poisoned: str, form: str) -> None:
    found: list[int] = []
    with Consumer(
        bootstrap_servers=poisoned, auto_offset_reset="earliest", corrupt_batch_policy="skip"
    ) as consumer:
        consumer.assign([PLACE])
        while len(found) < len(GOOD):
            if form == "arrow":
                found += consumer.poll_arrow(TIMEOUT_S)["offset"].to_pylist()
            else:
                found += [record.offset for record in consumer.poll(TIMEOUT_S)]
        assert consumer.metrics()["corrupt-batches-skipped-total"] == len(POISONS)
        assert consumer.position(PLACE) == END
    assert found == GOOD


def test_an_async_consumer_steps_over_all(poisoned: str) -> None:
    async def read() -> list[int]:
        found: list[int] = []
        async with AsyncConsumer(
            {"bootstrap.servers": poisoned, "corrupt.batch.policy": "skip"},
            auto_offset_reset="earliest",
        ) as consumer:
            await consumer.assign([PLACE])
            while len(found) < len(GOOD):
                found += [record.offset for record in await consumer.poll(TIMEOUT_S)]
        return found

    assert asyncio.run(read()) == GOOD


def test_a_range_is_read_as_was_chosen(poisoned: str) -> None:
    config = {"bootstrap.servers": poisoned}
    strict = RangeClient(config)
    with pytest.raises(errors.CorruptBatchError, match=f"Seek to offset {2 * SPAN} "):
        list(strict.read(PLACE, 0, END))
    strict.close()
    skipping = RangeClient({**config, "corrupt.batch.policy": "skip"})
    read = [int(offset) for part in skipping.read(PLACE, 0, END) for offset in part.offsets]
    assert read == GOOD
    assert skipping.corrupt.skipped_count == len(POISONS)
    skipping.close()


def test_another_policy_is_refused() -> None:
    with pytest.raises(SettingError, match="corrupt_batch_policy cannot be 'ignore'"):
        Consumer(corrupt_batch_policy="ignore")  # type: ignore[arg-type]
