"""Records found without decoding them, against records decoded."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from headwater.storage.compaction.record_slices import (
    batch_of_slices,
    batch_without_records,
    read_section,
    slice_records,
)
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
    validate_batch,
)
from tests.support.values.record_strategies import compressions, record_lists, timestamp_types


@given(record_lists(), compressions, st.booleans())
def test_slices_say_what_decoding_says(
    records: list[Record], compression: Compression, has_horizon: bool
) -> None:
    horizon = 1_700_000_000_000 if has_horizon else None
    batch = encode_batch(records, compression=compression, delete_horizon_ms=horizon)
    header = read_batch_header(batch)
    slices = slice_records(read_section(batch, header), header)
    assert [(offset, key, has_value) for _, _, offset, key, has_value in slices] == [
        (record.offset, record.key, record.value is not None) for record in records
    ]


@given(record_lists(), compressions, timestamp_types, st.data())
def test_a_batch_of_some_records_is_the_old_one_without_the_others(
    records: list[Record],
    compression: Compression,
    timestamp_type: TimestampType,
    data: st.DataObject,
) -> None:
    batch = encode_batch(
        records,
        compression=compression,
        timestamp_type=timestamp_type,
        producer_id=5,
        producer_epoch=2,
        base_sequence=77,
        leader_epoch=9,
        transactional=True,
    )
    header = read_batch_header(batch)
    section = read_section(batch, header)
    slices = slice_records(section, header)
    kept = data.draw(st.lists(st.sampled_from(slices), min_size=1, unique=True).map(sorted))
    made = batch_of_slices(header, section, kept)
    made_header = read_batch_header(made)
    offsets = {offset for _, _, offset, _, _ in kept}
    expected = [record for record in decode_batch(batch) if record.offset in offsets]
    assert decode_batch(made) == expected
    assert made_header.max_timestamp == max(record.timestamp for record in expected)
    same = {"batch_length": 0, "crc": 0, "max_timestamp": 0, "record_count": 0}
    assert made_header._replace(**same) == header._replace(**same)


@given(record_lists(), compressions)
def test_a_batch_without_records_keeps_its_header(
    records: list[Record], compression: Compression
) -> None:
    batch = encode_batch(
        records,
        compression=compression,
        producer_id=5,
        producer_epoch=2,
        base_sequence=2**31 - 1,
        delete_horizon_ms=17,
        control=True,
        transactional=True,
    )
    header = read_batch_header(batch)
    empty = batch_without_records(header)
    empty_header = read_batch_header(empty)
    validate_batch(empty, 0, empty_header)
    assert decode_batch(empty) == []
    assert len(empty) == HEADER_SIZE
    for name in ("base_offset", "last_offset", "max_timestamp", "producer_id", "producer_epoch"):
        assert getattr(empty_header, name) == getattr(header, name)
    assert empty_header.last_sequence == header.last_sequence
    assert empty_header.is_control and empty_header.is_transactional
    assert empty_header.delete_horizon_ms is None
    assert empty_header.compression is Compression.NONE


@given(record_lists(max_size=3), st.integers(0, 10_000), st.integers(0, 255), st.integers(-2, 5))
def test_damaged_records_raise_the_errors_of_records(
    records: list[Record], position: int, byte: int, extra_count: int
) -> None:
    batch = encode_batch(records)
    header = read_batch_header(batch)
    section = bytearray(read_section(batch, header))
    section[position % len(section)] = byte
    damaged = header._replace(record_count=header.record_count + extra_count)
    with contextlib.suppress(CorruptRecordError, InvalidRecordError):
        slices = slice_records(bytes(section), damaged)
        assert len(slices) == damaged.record_count
        assert not slices or slices[-1][1] == len(section)
