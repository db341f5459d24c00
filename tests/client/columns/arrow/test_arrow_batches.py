from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.client.columns.arrow.batches import (
    ArrowPart,
    arrow_schema,
    check_arrow_schema,
    columns_to_arrow,
)
from headwater.client.columns.decoding import record_columns
from headwater.client.columns.decoding.record_columns import decode_batches
from headwater.wire.records import (
    Compression,
    Record,
    TimestampType,
    decode_batch,
    encode_batch,
    read_batch_header,
)
from tests.support.tiers import rounds
from tests.support.values.record_strategies import compressions, record_lists, timestamp_types


@pytest.fixture(autouse=True, scope="module")
def arrays_for_few_records_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patcher:
        patcher.setattr(record_columns, "ARRAY_RECORDS_MIN", 1)
        yield


def rows_of(topic: str, partition: int, batch: bytes) -> list[dict[str, object]]:
    kind = read_batch_header(batch).timestamp_type
    return [
        {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": int(kind),
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }
        for record in decode_batch(batch)
    ]


@settings(max_examples=rounds(40, 1000), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("orders", "payments")),
            st.integers(0, 3),
            record_lists(min_size=1, max_size=8),
            compressions,
            timestamp_types,
        ),
        max_size=4,
    )
)
def test_has_every_field_of_every_record(
    given_parts: list[tuple[str, int, list[Record], Compression, TimestampType]],
) -> None:
    parts: list[ArrowPart] = []
    expected: list[dict[str, object]] = []
    for topic, partition, records, compression, kind in given_parts:
        batch = encode_batch(records, compression=compression, timestamp_type=kind)
        parts.append(
            ArrowPart(topic, partition, decode_batches([(batch, read_batch_header(batch))]))
        )
        expected += rows_of(topic, partition, batch)
    table = columns_to_arrow(parts)
    table.validate(full=True)
    assert table.schema == arrow_schema()
    assert table.to_pylist() == expected


def test_a_part_of_many_batches() -> None:
    batches = [
        encode_batch(
            [
                Record(100 * start + index, 5, None, b"v" * index, (("h", b"x"),) * (index % 3))
                for index in range(60)
            ]
        )
        for start in range(3)
    ]
    columns = decode_batches([(batch, read_batch_header(batch)) for batch in batches])
    table = columns_to_arrow([ArrowPart("t", 0, columns.part(50, 130))])
    table.validate(full=True)
    assert table.to_pylist() == [row for batch in batches for row in rows_of("t", 0, batch)][50:130]


def test_a_header_key_that_is_no_text_is_readable() -> None:
    key = b"\xffname".decode("utf-8", "surrogateescape")
    batch = encode_batch([Record(0, 5, None, b"v", ((key, b"x"),))])
    columns = decode_batches([(batch, read_batch_header(batch))])
    table = columns_to_arrow([ArrowPart("t", 0, columns)])
    table.validate(full=True)
    assert table.column("headers").to_pylist() == [[{"key": "\ufffdname", "value": b"x"}]]


def test_nothing_is_an_empty_batch() -> None:
    table = columns_to_arrow([])
    assert isinstance(table, pa.RecordBatch)
    assert table.num_rows == 0
    assert table.schema == arrow_schema()


HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string(), False), ("value", pa.binary())]))
)
#: As Spark has them.
SPARK_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}


@settings(max_examples=rounds(30, 500), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(("orders", "payments")), record_lists(max_size=6)), max_size=3
    ),
    st.lists(st.sampled_from(sorted(SPARK_TYPES)), unique=True, min_size=1),
)
def test_a_schema_chooses_columns_and_types(
    given_parts: list[tuple[str, list[Record]]], names: list[str]
) -> None:
    schema = pa.schema([(name, SPARK_TYPES[name]) for name in names])
    batches = [(topic, encode_batch(records)) for topic, records in given_parts]
    table = columns_to_arrow(
        [
            ArrowPart(topic, 4, decode_batches([(batch, read_batch_header(batch))]))
            for topic, batch in batches
        ],
        schema,
    )
    table.validate(full=True)
    assert table.schema == schema
    expected = [row for topic, batch in batches for row in rows_of(topic, 4, batch)]
    ms_max = (2**63 - 1) // 1_000
    for row in expected:
        row["timestampType"] = row.pop("timestamp_type")
        # A record without headers has null, as in the rows of Spark's own connector.
        row["headers"] = row["headers"] or None
        row["timestamp"] = max(-ms_max, min(ms_max, int(str(row["timestamp"])))) * 1_000
    if "timestamp" in names:
        index = names.index("timestamp")
        table = table.set_column(index, "timestamp", table.column(index).cast(pa.int64()))
    assert table.to_pylist() == [{name: row[name] for name in names} for row in expected]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (("vlaue", pa.binary()), "no column 'vlaue'; the nearest is 'value'"),
        (("value", pa.string()), "'value' cannot be read as string"),
        (("timestamp", pa.timestamp("ns")), "'timestamp' cannot be read as timestamp"),
        (("headers", pa.list_(pa.binary())), "'headers' cannot be read as list"),
        (("headers", pa.binary()), "'headers' cannot be read as binary"),
    ],
)
def test_other_columns_and_types_are_refused(field: tuple[str, pa.DataType], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_arrow_schema(pa.schema([field]))
    check_arrow_schema(arrow_schema())
