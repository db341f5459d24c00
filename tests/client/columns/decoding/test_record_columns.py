import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding import record_columns
from headwater.client.columns.decoding.consumer_records import columns_to_records
from headwater.client.columns.decoding.record_columns import decode_batches
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.fetch.corrupt_batches import check_offsets_grow
from headwater.wire.records import (
    HEADER_SIZE,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    read_batch_header,
)
from headwater.wire.records.batch_header import write_crc
from tests.support.tiers import rounds
from tests.support.values.record_strategies import (
    compressions,
    nullable_bytes,
    record_lists,
    timestamp_types,
    timestamps,
)


@pytest.fixture(autouse=True, scope="module")
def arrays_for_few_records_too() -> Iterator[None]:
    """Small examples are good examples, so they should not avoid what is tested."""
    with pytest.MonkeyPatch.context() as patcher:
        patcher.setattr(record_columns, "ARRAY_RECORDS_MIN", 1)
        yield


def read_plainly(data: bytes) -> list[Record]:
    """What is read of one batch without any arrays."""
    records = decode_batch(data)
    check_offsets_grow(records)
    return records


@st.composite
def many_records(draw: st.DrawFn) -> list[Record]:
    """Runs of records of few kinds, as producers write them, without gaps."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = draw(
            st.lists(
                st.tuples(
                    timestamps,
                    nullable_bytes,
                    nullable_bytes,
                    st.lists(
                        st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=70)),
                        max_size=3,
                    ),
                ),
                min_size=1,
                max_size=3,
            )
        )
        for index in range(draw(st.integers(1, 150))):
            timestamp, key, value, headers = kinds[index % len(kinds)]
            records.append(Record(len(records), timestamp, key, value, tuple(headers)))
    return records


def plain(records: list[ConsumerRecord]) -> list[Record]:
    return [Record(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]


def read_back(batch: bytes, *, check_crc: bool = True) -> list[Record]:
    columns = decode_batches([(batch, read_batch_header(batch))], check_crc=check_crc)
    return plain(columns_to_records("topic", 0, columns))


def outcome(read: Callable[[], list[Record]]) -> list[Record] | tuple[type[KafkaError], str]:
    try:
        return read()
    except KafkaError as error:
        return type(error), str(error)


@settings(max_examples=rounds(50, 1000), deadline=None)
@given(record_lists() | many_records(), compressions, timestamp_types)
def test_reads_what_the_plain_reader_reads(
    records: list[Record], compression: Compression, timestamp_type: TimestampType
) -> None:
    batch = encode_batch(
        records, compression=compression, timestamp_type=timestamp_type, leader_epoch=7
    )
    header = read_batch_header(batch)
    expected = [
        ConsumerRecord("topic", 3, offset, timestamp, timestamp_type, key, value, headers, 7)
        for offset, timestamp, key, value, headers in decode_batch(batch)
    ]
    with pytest.MonkeyPatch.context() as patcher:
        # The arrays must do it alone, without the plain reader that they can fall back on.
        patcher.delattr(record_columns, "_decoded_by_records")
        columns = decode_batches([(batch, header)])
    assert columns_to_records("topic", 3, columns) == expected
    middle = len(records) // 2
    assert columns_to_records("topic", 3, columns.part(middle, len(columns))) == expected[middle:]
    later = columns.from_offset(records[middle].offset)
    assert columns_to_records("topic", 3, later) == expected[middle:]
    assert not len(columns.from_offset(records[-1].offset + 1))


@settings(max_examples=rounds(40, 1000), deadline=None)
@given(st.lists(st.tuples(record_lists(), compressions, timestamp_types), min_size=1, max_size=5))
def test_reads_many_batches_together(
    given_batches: list[tuple[list[Record], Compression, TimestampType]],
) -> None:
    batches = [
        encode_batch(records, compression=codec, timestamp_type=kind, leader_epoch=index)
        for index, (records, codec, kind) in enumerate(given_batches)
    ]
    together = decode_batches([(batch, read_batch_header(batch)) for batch in batches])
    one_by_one = [
        record
        for batch in batches
        for record in columns_to_records(
            "t", 1, decode_batches([(batch, read_batch_header(batch))])
        )
    ]
    assert together.batch_count == len(batches)
    assert columns_to_records("t", 1, together) == one_by_one
    for cut in range(0, len(together), 3):
        part = together.part(cut, cut + 2)
        assert columns_to_records("t", 1, part) == one_by_one[cut : cut + 2]


@settings(max_examples=rounds(120, 2000), deadline=None)
@given(
    record_lists(max_size=4) | many_records(),
    st.sampled_from((Compression.NONE, Compression.NONE, Compression.ZSTD)),
    st.lists(
        st.tuples(
            st.integers(0, 2000), st.integers(0, 255) | st.sampled_from((0, 1, 3, 0x7F, 0x80, 0xFF))
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_damaged_bytes_get_the_plain_readers_error(
    records: list[Record],
    compression: Compression,
    changes: list[tuple[int, int]],
    is_crc_right: bool,
) -> None:
    batch = bytearray(encode_batch(records, compression=compression))
    for position, byte in changes:
        batch[HEADER_SIZE + position % (len(batch) - HEADER_SIZE)] = byte
    if is_crc_right:
        write_crc(batch, 0, len(batch))
    data = bytes(batch)
    assert outcome(lambda: read_back(data)) == outcome(lambda: read_plainly(data))


@pytest.mark.parametrize("seed", range(rounds(3, 40)))
def test_noise_instead_of_records_gets_the_plain_readers_error(seed: int) -> None:
    generator = random.Random(seed)
    template = encode_batch([Record(index, 5, b"key", b"value" * 9) for index in range(80)])
    for _ in range(60):
        batch = bytearray(template)
        start = generator.randrange(HEADER_SIZE, len(batch))
        for position in range(start, min(len(batch), start + generator.randrange(1, 30))):
            batch[position] = generator.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))
        write_crc(batch, 0, len(batch))
        data = bytes(batch)
        assert outcome(lambda data=data: read_back(data)) == outcome(  # type: ignore[misc]
            lambda data=data: read_plainly(data)  # type: ignore[misc]
        )


def test_good_batches_before_a_bad_one_are_read() -> None:
    good = encode_batch([Record(index, 5, b"k", b"v") for index in range(100)])
    for bad in (
        bytearray(good[:-1]) + b"x",  # the checksum
        _with_right_crc(bytearray(good[:-1]) + b"\x09"),  # the last record's header count
    ):
        batches = [(data, read_batch_header(data)) for data in (good, good, bytes(bad), good)]
        columns = decode_batches(batches)
        assert columns.batch_count == 2
        assert len(columns) == 200
        with pytest.raises((CorruptRecordError, InvalidRecordError)):
            decode_batches(batches[2:])


def test_batches_of_one_shape_may_be_divided_differently() -> None:
    sizes = [10, 20, 30] * 20
    batches = [
        encode_batch([Record(index, 5, None, b"v" * size) for index, size in enumerate(order)])
        for order in (sizes, sizes, sorted(sizes), sizes[::-1])
    ]
    assert len({len(batch) for batch in batches}) == 1
    with pytest.MonkeyPatch.context() as patcher:
        patcher.delattr(record_columns, "_decoded_by_records")
        columns = decode_batches([(batch, read_batch_header(batch)) for batch in batches])
    assert plain(columns_to_records("t", 0, columns)) == [
        record for batch in batches for record in decode_batch(batch)
    ]


def test_a_short_batch_may_only_seem_to_have_equal_records() -> None:
    # The first, the second and the last are alike, and the mean size is theirs.
    sizes = [20, 20, 10, 30, 20]
    records = [Record(index, 5, None, b"v" * size) for index, size in enumerate(sizes)]
    batch = encode_batch(records)
    with pytest.MonkeyPatch.context() as patcher:
        patcher.delattr(record_columns, "_decoded_by_records")
        columns = decode_batches([(batch, read_batch_header(batch))])
    assert plain(columns_to_records("t", 0, columns)) == records


def _with_right_crc(batch: bytearray) -> bytearray:
    write_crc(batch, 0, len(batch))
    return batch


def test_claimed_counts_allocate_nothing() -> None:
    batch = bytearray(encode_batch([Record(index, 5, None, b"v") for index in range(200)]))
    # The last record claims very many headers.
    batch[-1:] = b"\xfe\xff\xff\xff\x0f"
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    write_crc(batch, 0, len(batch))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecordError):
            read_back(bytes(batch))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_one_record_may_have_very_many_headers() -> None:
    headers = tuple((f"h{index}", None if index % 3 else b"x" * index) for index in range(700))
    records = [Record(0, 5, b"k", b"v", headers)]
    records += [Record(index, 5, b"k", b"v", headers[: index % 3]) for index in range(1, 90)]
    assert read_back(encode_batch(records)) == records


def test_a_header_key_that_is_no_text_keeps_its_bytes() -> None:
    key = b"\xff\xfe".decode("utf-8", "surrogateescape")
    records = [Record(index, 5, None, b"v", ((key, b"x"),)) for index in range(60)]
    assert read_back(encode_batch(records)) == records


def test_deserializers_do_not_see_null() -> None:
    records = [Record(0, 5, None, b"1"), Record(1, 5, b"2", None), Record(2, 5, b"3", b"4")]
    batch = encode_batch(records)
    header = read_batch_header(batch)
    expected = [(None, 1), (2, None), (3, 4)]
    made = columns_to_records(
        "t", 0, decode_batches([(batch, header)]), deserialize_key=int, deserialize_value=int
    )
    assert [(record.key, record.value) for record in made] == expected
