"""Records of a fetch in pieces of any size, as objects and as columns, up to what is bad."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.client.consumer.deserializers import (
    Deserializers,
    IntegerDeserializer,
    JsonDeserializer,
    StringDeserializer,
)
from headwater.client.consumer.errors import RecordDeserializationError
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.polling.record_reader import RecordReader
from headwater.client.fetch.corrupt_batches import CorruptBatchError
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.wire.records import (
    MAGIC_V1,
    Compression,
    Record,
    encode_batch,
    encode_legacy,
)

PARTITION = TopicPartition("orders", 3)


def reader_of(
    data: bytes, fetch_offset: int = 0, deserializers: Deserializers | None = None
) -> RecordReader:
    fetched = FetchedPartition(PARTITION, fetch_offset, data)
    return RecordReader(PartitionState(PARTITION), fetched, deserializers or Deserializers())


def batch(first: int, count: int, **how: object) -> bytes:
    records = [
        Record(first + i, 50 + i, b"k%d" % i if i % 2 else None, b"%d" % (first + i), ())
        for i in range(count)
    ]
    return encode_batch(records, leader_epoch=7, **how)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 120), st.integers(0, 5), st.sampled_from(list(Compression))),
        max_size=8,
    ),
    st.lists(st.tuples(st.booleans(), st.integers(1, 200)), min_size=1, max_size=20),
    st.integers(0, 50),
)
def test_any_pieces_in_any_form_are_the_records_from_the_offset_on(
    batches: list[tuple[int, int, Compression]],
    pieces: list[tuple[bool, int]],
    fetch_offset: int,
) -> None:
    data, expected, next_offset = b"", [], 0
    for count, gap, compression in batches:
        first = next_offset + gap
        data += batch(first, count, compression=compression)
        expected += [offset for offset in range(first, first + count) if offset >= fetch_offset]
        next_offset = first + count
    reader = reader_of(data, fetch_offset)
    got: list[int] = []
    for _ in range(1200):
        as_columns, count = pieces[len(got) % len(pieces)]
        if as_columns:
            columns = reader.take_columns(count)
            offsets = [] if columns is None else columns.offsets.tolist()
        else:
            records = reader.take(count)
            assert all(record.value == b"%d" % record.offset for record in records)
            assert all(record.topic_partition == PARTITION for record in records)
            offsets = [record.offset for record in records]
        assert len(offsets) <= count
        got += offsets
        if reader.is_exhausted:
            break
        assert reader.offset == got[-1] + 1
    assert got == expected
    assert reader.offset == max(fetch_offset, next_offset)
    if expected:
        assert reader.leader_epoch == 7


@pytest.mark.parametrize("count", [3, 100])
def test_what_stands_before_a_damage_is_handed_out_first(count: int) -> None:
    bad = bytearray(batch(count, count))
    bad[-1] ^= 1
    reader = reader_of(batch(0, count) + bytes(bad) + batch(2 * count, count))
    assert [record.offset for record in reader.take(1000)] == list(range(count))
    for _ in range(2):
        with pytest.raises(CorruptBatchError):
            reader.take(1000)
        with pytest.raises(CorruptBatchError):
            reader.take_columns(1000)
    assert reader.offset == count


def test_messages_of_an_old_format() -> None:
    old = encode_legacy([Record(0, 5, b"k", b"0"), Record(1, 6, None, b"1")], magic=MAGIC_V1)
    data = old + batch(2, 3)
    assert [record.value for record in reader_of(data).take(100)] == [b"0", b"1", b"2", b"3", b"4"]
    reader = reader_of(data, 1)
    taken = [reader.take_columns(100) for _ in range(3)]
    assert [None if part is None else part.offsets.tolist() for part in taken] == [
        [1],
        [2, 3, 4],
        None,
    ]


def test_deserializers() -> None:
    records = [Record(0, 1, b"\0\0\0\7", b'{"a": [1]}'), Record(1, 1, None, None)]
    data = encode_batch(records)
    reader = reader_of(data, 0, Deserializers(IntegerDeserializer(), JsonDeserializer()))
    assert [(record.key, record.value) for record in reader.take(9)] == [
        (7, {"a": [1]}),
        (None, None),
    ]
    text = reader_of(data, 0, Deserializers(None, StringDeserializer())).take(1)
    assert (text[0].key, text[0].value) == (b"\0\0\0\7", '{"a": [1]}')


@pytest.mark.parametrize("count", [5, 200])
def test_a_record_that_cannot_be_deserialized_is_told_where_it_stands(count: int) -> None:
    def only_small(data: bytes) -> int:
        number = int(data)
        if number == 3:
            raise ValueError("no threes")
        return number

    reader = reader_of(batch(0, count), 0, Deserializers(None, only_small))
    assert [record.value for record in reader.take(500)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            reader.take(500)
        assert (caught.value.topic_partition, caught.value.offset) == (PARTITION, 3)
    assert reader.offset == 3


def test_what_is_no_deserializer_is_refused() -> None:
    with pytest.raises(TypeError, match="deserialize"):
        Deserializers("utf-8", None)  # type: ignore[arg-type]
