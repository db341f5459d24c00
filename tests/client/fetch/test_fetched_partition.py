import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.fetch.fetched_partition import AbortedRange, FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.wire.records import (
    Compression,
    ControlType,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    encode_end_transaction_marker,
    encode_legacy,
)

TP = TopicPartition("orders", 0)
LAST_OFFSET_DELTA_POSITION = 23


def batch(first_offset: int, count: int, **options: object) -> bytes:
    records = [
        Record(offset, 1000 + offset, b"k", b"v%d" % offset)
        for offset in range(first_offset, first_offset + count)
    ]
    return encode_batch(records, **options)  # type: ignore[arg-type]


def offsets(fetched: FetchedPartition) -> list[int]:
    """What is to be seen, without what the first batch has before the offset."""
    return [
        record.offset
        for begin, _, _ in fetched.visible_batches()
        for record in decode_batch(fetched.buffer, begin)
        if record.offset >= fetched.fetch_offset
    ]


def test_records_before_the_offset_and_a_cut_off_batch_are_left_out() -> None:
    buffer = batch(10, 5) + batch(15, 5) + batch(20, 5)[:-1]
    fetched = FetchedPartition(TP, 12, buffer)
    assert offsets(fetched) == list(range(12, 20))
    assert fetched.next_offset == 20
    assert fetched.size_bytes == len(buffer)


@pytest.mark.parametrize("size", [0, 5, 16, 40])
def test_without_a_whole_batch_the_offset_stays(size: int) -> None:
    fetched = FetchedPartition(TP, 12, batch(12, 3)[:size])
    assert not fetched.has_batches
    assert (offsets(fetched), fetched.next_offset) == ([], 12)


@pytest.mark.parametrize(("base_offset", "next_offset"), [(12, 13), (10, 13), (20, 21)])
def test_a_last_batch_that_ends_before_it_begins_is_stepped_over(
    base_offset: int, next_offset: int
) -> None:
    """It is damaged; a fetch that comes back to it would have the same answer for ever."""
    damaged = bytearray(batch(base_offset, 3))
    damaged[LAST_OFFSET_DELTA_POSITION] = 0x80
    fetched = FetchedPartition(TP, 12, bytes(damaged))
    assert fetched.next_offset == next_offset


def test_the_next_offset_is_after_records_that_compaction_removed() -> None:
    record = Record(11, 1000, b"k", b"v")
    buffer = encode_batch([record], base_offset=10, last_offset_delta=9)
    assert FetchedPartition(TP, 10, buffer).next_offset == 20
    assert offsets(FetchedPartition(TP, 15, buffer)) == []


def test_old_formats_are_read() -> None:
    records = [Record(7, 1000, b"k", b"v"), Record(8, 1001, None, b"w")]
    buffer = encode_legacy(records, magic=1)
    fetched = FetchedPartition(TP, 8, buffer)
    assert offsets(fetched) == [8]
    assert fetched.next_offset == 9
    assert [header for _, _, header in fetched.visible_batches()] == [None, None]


def test_a_batch_comes_with_its_header() -> None:
    buffer = batch(0, 1, leader_epoch=5, timestamp_type=TimestampType.LOG_APPEND_TIME)
    [(begin, end, header)] = FetchedPartition(TP, 0, buffer).visible_batches()
    assert (begin, end) == (0, len(buffer))
    assert header is not None
    assert (header.leader_epoch, header.timestamp_type) == (5, TimestampType.LOG_APPEND_TIME)


class Log(NamedTuple):
    """What a broker would store, and what readers should see of it."""

    batches: list[tuple[int, bytes]]
    all_offsets: list[int]
    aborted_offsets: set[int]
    #: First and last offset of each aborted transaction, and its producer.
    aborted: list[tuple[int, int, int]]


def random_log(rng: random.Random) -> Log:
    """Plain batches, and transactions of three producers that commit or abort between them."""
    log = Log([], [], set(), [])
    open_since: dict[int, int] = {}
    written: dict[int, list[int]] = {}
    next_offset = rng.randrange(100)
    for _ in range(rng.randrange(1, 25)):
        count = rng.randrange(1, 4)
        producer_id = rng.randrange(3)
        compression = rng.choice([Compression.NONE, Compression.GZIP])
        action = rng.random()
        if action < 0.3:
            encoded = batch(next_offset, count, compression=compression)
        elif action < 0.7 or producer_id not in open_since:
            open_since.setdefault(producer_id, next_offset)
            written.setdefault(producer_id, []).extend(range(next_offset, next_offset + count))
            encoded = batch(
                next_offset,
                count,
                compression=compression,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        else:
            is_abort = rng.random() < 0.5
            encoded = encode_end_transaction_marker(
                ControlType.ABORT if is_abort else ControlType.COMMIT,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp_ms=1,
                base_offset=next_offset,
            )
            first_offset = open_since.pop(producer_id)
            offsets_written = written.pop(producer_id)
            if is_abort:
                log.aborted.append((first_offset, next_offset, producer_id))
                log.aborted_offsets.update(offsets_written)
            log.batches.append((next_offset, encoded))
            next_offset += 1
            continue
        log.batches.append((next_offset, encoded))
        log.all_offsets.extend(range(next_offset, next_offset + count))
        next_offset += count
    # Below the last stable offset nothing is open.
    stable = min(open_since.values(), default=next_offset)
    return log._replace(
        batches=[(offset, encoded) for offset, encoded in log.batches if offset < stable],
        all_offsets=[offset for offset in log.all_offsets if offset < stable],
    )


@given(seed=st.integers(0, 2**32))
def test_committed_records_and_no_others(seed: int) -> None:
    rng = random.Random(seed)
    log = random_log(rng)
    if not log.batches:
        return
    start = rng.randrange(len(log.batches))
    fetch_offset = log.batches[start][0]
    buffer = b"".join(encoded for _, encoded in log.batches[start:])
    aborted = [
        AbortedRange(first, producer_id)
        for first, last, producer_id in log.aborted
        if last >= fetch_offset
    ]
    rng.shuffle(aborted)
    wanted = [offset for offset in log.all_offsets if offset >= fetch_offset]
    uncommitted = FetchedPartition(TP, fetch_offset, buffer)
    assert offsets(uncommitted) == wanted
    committed = FetchedPartition(
        TP,
        fetch_offset,
        buffer,
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted=aborted,
    )
    assert offsets(committed) == [offset for offset in wanted if offset not in log.aborted_offsets]
    assert committed.next_offset == uncommitted.next_offset
