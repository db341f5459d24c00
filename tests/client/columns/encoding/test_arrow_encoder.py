from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.client.columns.encoding.arrow_encoder import ArrowSection, encode_arrow
from headwater.client.columns.encoding.batch_assembly import assemble_batch
from headwater.client.partitioner import partition_for_key
from headwater.wire.records import Compression, Header, Record, decode_batch
from tests.support.tiers import rounds
from tests.support.values.record_strategies import headers, nullable_bytes, timestamps

NOW_MS = 1_700_000_000_000
KEYLESS_PARTITION = 2
KEPT = Kept(8 << 20, 32 << 20)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def sections(
    batch: pa.RecordBatch | pa.Table,
    *,
    partition: int | None = None,
    partition_count: int = 3,
    section_bytes_max: int = 1 << 20,
) -> list[ArrowSection]:
    return list(
        encode_arrow(
            batch,
            partition=partition,
            partition_count=partition_count,
            choose_partition=lambda: KEYLESS_PARTITION,
            section_bytes_max=section_bytes_max,
            now_ms=NOW_MS,
            memory=ReusedMemory(KEPT),
        )
    )


def records_of(section: ArrowSection, compression: Compression = Compression.NONE) -> list[Record]:
    data, count, base_timestamp, max_timestamp = section.section
    batch = assemble_batch(
        data,
        record_count=count,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        compression=compression,
        compression_level=None,
        is_transactional=False,
    )
    batch.assign(-1, -1, -1)
    records = decode_batch(bytes(batch))
    assert [record.offset for record in records] == list(range(count))
    assert max(record.timestamp for record in records) == max_timestamp
    return [record._replace(offset=0) for record in records]


Row = tuple[bytes | None, bytes | None, int | None, list[Header] | None]
rows = st.lists(
    st.tuples(nullable_bytes, nullable_bytes, st.none() | timestamps, st.none() | headers),
    max_size=40,
)


def table_of(given_rows: list[Row], columns: set[str]) -> pa.Table:
    arrays = {
        "key": pa.array([row[0] for row in given_rows], pa.binary()),
        "value": pa.array([row[1] for row in given_rows], pa.binary()),
        "timestamp": pa.array([row[2] for row in given_rows], pa.int64()),
        "headers": pa.array(
            [
                None if row[3] is None else [{"key": k, "value": v} for k, v in row[3]]
                for row in given_rows
            ],
            HEADERS,
        ),
    }
    return pa.table({name: array for name, array in arrays.items() if name in columns})


@settings(max_examples=rounds(60, 1000), deadline=None)
@given(
    rows,
    st.sets(st.sampled_from(("key", "timestamp", "headers"))),
    st.sampled_from((1, 300, 9000, 1 << 20)),
    st.none() | st.integers(0, 2),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_every_record_is_in_one_section_of_its_partition(
    given_rows: list[Row],
    columns: set[str],
    section_bytes_max: int,
    partition: int | None,
    chunk_count: int,
    skipped: int,
) -> None:
    table = table_of(given_rows, {*columns, "value"})
    if chunk_count > 1 and given_rows:
        step = max(1, len(given_rows) // chunk_count)
        table = pa.concat_tables(
            [table.slice(first, step) for first in range(0, len(given_rows), step)]
        )
    table = table.slice(skipped)
    expected: dict[int, list[Record]] = {}
    for key, value, timestamp, some_headers in given_rows[skipped:]:
        record = Record(
            0,
            timestamp if "timestamp" in columns and timestamp is not None else NOW_MS,
            key if "key" in columns else None,
            value,
            tuple(some_headers or ()) if "headers" in columns else (),
        )
        where = partition
        if where is None:
            where = KEYLESS_PARTITION if record.key is None else partition_for_key(record.key, 3)
        expected.setdefault(where, []).append(record)
    found: dict[int, list[Record]] = {}
    for section in sections(table, partition=partition, section_bytes_max=section_bytes_max):
        data = section.section
        assert len(data.data) <= section_bytes_max or data.record_count == 1
        found.setdefault(section.partition, []).extend(records_of(section))
    assert found == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "ü", None, "c"], pa.string()),
        pa.array(["a", "ü", None, "c"], pa.large_string()),
        pa.array([b"a", "ü".encode(), None, b"c"], pa.large_binary()),
        pa.array(["a", "ü", None, "c"], pa.string()).dictionary_encode(),
        pa.array(["a", "ü", None, "c"], pa.string_view()),
        pa.array([b"a", "ü".encode(), None, b"c"], pa.binary_view()),
    ],
    ids=lambda column: str(column.type),
)
def test_a_value_is_bytes_or_text_of_any_kind(column: pa.Array) -> None:
    batch = pa.record_batch([column.slice(1)], names=["value"])
    (section,) = sections(batch)
    assert section.partition == KEYLESS_PARTITION
    assert [record.value for record in records_of(section)] == ["ü".encode(), None, b"c"]


def test_timestamps_may_be_arrows() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
    for unit, zone in (("us", None), ("ns", "Europe/Berlin"), ("ms", "UTC")):
        times = pa.array([moment, None], pa.timestamp(unit, zone))
        batch = pa.record_batch([pa.array([b"a", b"b"]), times], names=["value", "timestamp"])
        (section,) = sections(batch)
        assert [record.timestamp for record in records_of(section)] == [
            int(moment.timestamp() * 1000),
            NOW_MS,
        ]


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch([pa.array([b"a"])], names=["values"]),
        pa.record_batch([pa.array([b"a"]), pa.array([1])], names=["value", "offset"]),
        pa.record_batch([pa.array([b"a"]), pa.array([b"b"])], names=["value", "value"]),
        pa.record_batch([pa.array([1])], names=["value"]),
        pa.record_batch([pa.array([b"a"]), pa.array([1.5])], names=["value", "timestamp"]),
        pa.record_batch([pa.array([b"a"]), pa.array([b"h"])], names=["value", "headers"]),
        pa.record_batch(
            [pa.array([b"a"]), pa.array([[{"key": None, "value": b"x"}]], HEADERS)],
            names=["value", "headers"],
        ),
    ],
)
def test_a_wrong_schema_is_told_in_one_sentence(batch: pa.RecordBatch) -> None:
    with pytest.raises(KafkaError) as caught:
        sections(batch)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert caught.value.detail.count(". ") == 0


def test_a_wrong_schema_is_told_before_the_first_section_is_asked_for() -> None:
    with pytest.raises(KafkaError):
        encode_arrow(
            pa.record_batch([pa.array([1])], names=["value"]),
            partition=None,
            partition_count=1,
            choose_partition=lambda: 0,
            section_bytes_max=1000,
            now_ms=NOW_MS,
            memory=ReusedMemory(KEPT),
        )
    with pytest.raises(TypeError, match="RecordBatch or Table"):
        sections([b"a"])


@pytest.mark.parametrize("compression", list(Compression))
def test_a_section_can_be_compressed(compression: Compression) -> None:
    values = [b"%d" % number for number in range(1000)]
    found = sections(pa.table({"value": pa.array(values)}), section_bytes_max=9000)
    assert len(found) > 2
    read = [record.value for section in found for record in records_of(section, compression)]
    assert read == values


def test_a_large_table_comes_in_pieces() -> None:
    values = pa.array([b"x" * 1000] * 12_000)
    found = sections(pa.table({"value": values}), section_bytes_max=500_000)
    assert sum(section.section.record_count for section in found) == 12_000
    assert all(len(section.section.data) <= 500_000 for section in found)
    assert len(found) < 40


def test_every_batch_of_records_without_keys_may_go_elsewhere() -> None:
    batch = pa.table({"value": pa.array([b"x" * 1000] * 30)})
    found = encode_arrow(
        batch,
        partition=None,
        partition_count=9,
        choose_partition=iter(range(9)).__next__,
        section_bytes_max=10_500,
        now_ms=NOW_MS,
        memory=ReusedMemory(KEPT),
    )
    assert [(number, section.record_count) for number, section in found] == [
        (0, 10),
        (1, 10),
        (2, 10),
    ]
