"""The walk says yes to what the reader reads and the header says of it, and to nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.wire.records import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    Record,
    decode_batch,
    encode_batch,
    read_batch_header,
)
from headwater.wire.records.record_walk import walk_records
from tests.support.values.record_strategies import headers, nullable_bytes, record_lists

NOW_MS = 1_700_000_000_000


def walk(batch: Buffer, header: BatchHeader | None = None) -> bool:
    header = header or read_batch_header(batch)
    return walk_records(
        batch, HEADER_SIZE, header.record_count, header.base_timestamp, header.max_timestamp
    )


def is_sound(batch: bytes) -> bool:
    """The same question to the reader that makes records."""
    try:
        records = decode_batch(batch, check_crc=False)
    except KafkaError:
        return False
    return [record.offset for record in records] == list(range(len(records))) and max(
        record.timestamp for record in records
    ) == read_batch_header(batch).max_timestamp


def batch_of(
    count: int, value_bytes: int, *, key: bytes | None = b"key", step_ms: float = 0
) -> bytes:
    """Records of one layout but for their timestamps."""
    return encode_batch(
        [
            Record(number, NOW_MS + int(number * step_ms), key, bytes(value_bytes))
            for number in range(count)
        ]
    )


@st.composite
def producer_batches(draw: st.DrawFn) -> bytes:
    """Stretches of records that are alike, between some that are not."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 4))):
        key, value = draw(nullable_bytes), draw(nullable_bytes)
        some_headers = tuple(draw(headers))
        longer_max = draw(st.sampled_from((0, 0, 100)))
        count = draw(st.sampled_from((1, 1, 3, 20, 70)))
        back_ms = draw(st.integers(0, 70))
        records += [
            Record(
                len(records) + number,
                NOW_MS + draw(st.integers(-back_ms, 200)),
                key,
                value if not longer_max else bytes(64 + (number * 37) % longer_max),
                some_headers if not longer_max else (),
            )
            for number in range(count if longer_max or len(value or b"") < 100 else 1)
        ]
    return encode_batch(records)


@given(producer_batches())
def test_whatever_a_producer_makes_passes(batch: bytes) -> None:
    assert walk(batch)
    assert walk(memoryview(batch))


@given(record_lists(max_size=20))
def test_any_timestamps_pass_or_are_left_to_the_reader(records: list[Record]) -> None:
    batch = encode_batch([r._replace(offset=number) for number, r in enumerate(records)])
    assert not walk(batch) or is_sound(batch)
    header = read_batch_header(batch)
    if header.base_timestamp >= -1 and all(-1 <= r.timestamp < 2**60 for r in records):
        assert walk(batch)


@given(producer_batches(), st.data())
def test_no_change_passes_that_the_reader_does_not_take(batch: bytes, data: st.DataObject) -> None:
    changed = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 2))):
        position = data.draw(st.integers(HEADER_SIZE, len(changed) - 1))
        if data.draw(st.booleans()):
            del changed[position]
        else:
            changed[position] = data.draw(st.integers(0, 255))
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    assert not walk(bytes(changed)) or is_sound(bytes(changed))


@pytest.mark.parametrize(
    "batch",
    [
        batch_of(70, 3),
        batch_of(70, 3, key=None, step_ms=2.9),
        batch_of(12, 70, step_ms=1),
        encode_batch(
            [Record(n, NOW_MS, None, b"v", (("a", b"1"), ("b", None))) for n in range(20)]
        ),
        encode_batch([Record(n, NOW_MS + n, b"k", bytes(64 + n % 3)) for n in range(32)]),
    ],
    ids=["alike", "later and later", "two bytes of length", "with headers", "other values"],
)
def test_every_byte_counts_where_records_are_alike(batch: bytes) -> None:
    assert walk(batch)
    refused = 0
    for position in range(HEADER_SIZE, len(batch)):
        for flipped in (0x01, 0x02, 0x80):
            changed = bytearray(batch)
            changed[position] ^= flipped
            passes = walk(changed)
            refused += not passes
            assert passes == is_sound(bytes(changed))
    # Of each record at least a length, an offset delta, two more lengths and a count.
    assert refused > 3 * 5 * read_batch_header(batch).record_count


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 8191, 8192, 8193, 17_000])
def test_offset_deltas_of_any_width_are_counted(count: int) -> None:
    batch = batch_of(count, 0, key=None)
    assert walk(batch)
    header = read_batch_header(batch)
    for other in (count - 1, count + 1):
        assert not walk(batch, header._replace(record_count=other))
    for number in random.Random(count).sample(range(count), min(count, 8)):
        skipped = encode_batch(
            [Record(each + (each >= number), NOW_MS, None, b"") for each in range(count)],
            base_offset=0,
        )
        assert not walk(skipped)


@pytest.mark.parametrize("value_bytes", [0, 55, 56, 200, 1_500, 8_180, 8_192, 70_000])
@pytest.mark.parametrize("count", [1, 7, 9, 30])
def test_lengths_of_any_width_are_read(value_bytes: int, count: int) -> None:
    batch = memoryview(bytearray(batch_of(count, value_bytes, step_ms=3)))
    assert walk(batch)
    assert not walk(batch[:-1])
    assert not walk(memoryview(bytes(batch) + b"\0"))


@pytest.mark.parametrize("step_ms", [0, 0.5, 1, 40, 700, 100_000])
def test_the_latest_timestamp_must_be_what_the_header_claims(step_ms: float) -> None:
    batch = batch_of(100, 10, step_ms=step_ms)
    header = read_batch_header(batch)
    assert walk(batch)
    for wrong in (-1, 1, 64, -NOW_MS, NOW_MS):
        assert not walk(batch, header._replace(max_timestamp=header.max_timestamp + wrong))
    assert walk_records(batch, HEADER_SIZE, 100, header.base_timestamp, None)


def test_timestamps_may_go_back() -> None:
    times = [NOW_MS + (number * 37) % 60 - 20 for number in range(100)]
    batch = encode_batch([Record(number, ms, b"k", b"v") for number, ms in enumerate(times)])
    assert walk(batch)
    header = read_batch_header(batch)
    assert not walk(batch, header._replace(max_timestamp=header.max_timestamp - 1))


@pytest.mark.parametrize("first_ms", [-1, 0, 5])
@pytest.mark.parametrize("other_ms", [2**63 - 1, -(2**63), -(2**63) + 5])
@pytest.mark.parametrize("count", [1, 40])
def test_a_sum_that_overflows_is_left_to_the_reader(
    first_ms: int, other_ms: int, count: int
) -> None:
    records = [Record(0, first_ms, None, b"")]
    records += [Record(number, other_ms, None, b"") for number in range(1, count + 1)]
    batch = encode_batch(records)
    assert not walk(batch)
    assert decode_batch(batch) == records


@pytest.mark.parametrize("step_ms", [0, 3])
@pytest.mark.parametrize("sizes", [(100, 300), (40, 90), (8_000, 8_300), (64, 8_192)])
def test_values_of_any_lengths_are_walked(sizes: tuple[int, int], step_ms: int) -> None:
    lengths = random.Random(sizes[0]).choices(range(*sizes), k=300)
    records = [
        Record(number, NOW_MS + step_ms * number, b"key", b"\xff" * length)
        for number, length in enumerate(lengths)
    ]
    batch = encode_batch(records)
    header = read_batch_header(batch)
    assert walk(batch)
    assert not walk(batch, header._replace(max_timestamp=header.max_timestamp + 1))
    skipped = [r if r.offset < 200 else r._replace(offset=r.offset + 1) for r in records]
    assert not walk(encode_batch(skipped))


def test_records_that_are_alike_in_length_only_are_walked_one_by_one() -> None:
    records = [
        Record(number, NOW_MS, b"k" * (number % 5), b"v" * (4 - number % 5))
        for number in range(200)
    ]
    batch = encode_batch(records)
    assert walk(batch)
    assert decode_batch(batch) == records
