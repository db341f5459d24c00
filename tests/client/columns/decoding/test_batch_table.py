"""Headers of many batches read together are what they are one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.client.columns.decoding.batch_table import read_batch_table, table_of_headers
from headwater.wire.records import (
    MAGIC_V1,
    BatchHeader,
    Record,
    TimestampType,
    encode_batch,
    encode_legacy,
    read_batch_header,
    validate_batch,
)
from headwater.wire.records.batch_header import HEADER_STRUCT
from tests.support.values.record_strategies import INT16, INT32, INT64

headers = st.builds(
    BatchHeader,
    INT64,
    st.just(0),
    INT32,
    st.just(2),
    st.integers(0, 2**32 - 1),
    INT16,
    INT32,
    INT64,
    INT64,
    INT64,
    INT16,
    INT32,
    INT32,
)


@settings(deadline=None)
@given(st.lists(st.tuples(headers, st.integers(0, 30)), max_size=6))
def test_both_ways_to_a_table_agree(given_headers: list[tuple[BatchHeader, int]]) -> None:
    whole = [
        header._replace(batch_length=49 + section_bytes) for header, section_bytes in given_headers
    ]
    data = b"".join(
        HEADER_STRUCT.pack(*header) + bytes(header.batch_length - 49) for header in whole
    )
    sizes = np.array([header.size_bytes for header in whole], np.int64)
    table = read_batch_table(np.frombuffer(data, np.uint8), np.cumsum(sizes) - sizes, sizes)
    assert table is not None
    expected = table_of_headers(whole)
    assert [column.tolist() for column in table] == [column.tolist() for column in expected]


@settings(deadline=None)
@given(
    st.sampled_from((0, 1, 7, 8, 14)),
    st.sampled_from((-1, 0, 1, 2, 2**31 - 1)),
    st.sampled_from((-1, 0, 1, 2)),
    st.sampled_from((0, 5, 2**63 - 2, 2**63 - 1, -1)),
    st.sampled_from((0, 4)),
)
def test_sound_is_what_the_plain_reader_accepts(
    section_bytes: int, last_offset_delta: int, count: int, base_offset: int, code: int
) -> None:
    template = read_batch_header(encode_batch([Record(0, 5, None, b"v")]))
    header = template._replace(
        base_offset=base_offset,
        batch_length=49 + section_bytes,
        attributes=code,
        last_offset_delta=last_offset_delta,
        record_count=count,
    )
    try:
        validate_batch(
            HEADER_STRUCT.pack(*header) + bytes(section_bytes), 0, header, check_crc=False
        )
        is_accepted = True
    except KafkaError:
        is_accepted = False
    sizes = np.array([header.size_bytes], np.int64)
    assert table_of_headers([header]).are_sound(sizes) == is_accepted


def test_an_old_batch_is_none_of_these() -> None:
    old = encode_legacy([Record(0, 5, b"k", b"v" * 90)], magic=MAGIC_V1)
    begins = np.zeros(1, np.int64)
    assert read_batch_table(np.frombuffer(old, np.uint8), begins, begins + len(old)) is None


def test_runs_join_batches_that_do_not_differ() -> None:
    records = [Record(index, 5, None, b"v") for index in range(3)]
    batches = [
        encode_batch(records, leader_epoch=epoch, timestamp_type=kind)
        for epoch, kind in (
            (1, TimestampType.CREATE_TIME),
            (1, TimestampType.CREATE_TIME),
            (1, TimestampType.LOG_APPEND_TIME),
            (2, TimestampType.LOG_APPEND_TIME),
        )
    ]
    runs = table_of_headers([read_batch_header(batch) for batch in batches]).runs()
    assert [tuple(run) for run in runs] == [
        (6, TimestampType.CREATE_TIME, 1),
        (3, TimestampType.LOG_APPEND_TIME, 1),
        (3, TimestampType.LOG_APPEND_TIME, 2),
    ]
