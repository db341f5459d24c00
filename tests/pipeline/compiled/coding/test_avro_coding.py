import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.compiled.coding.avro_coding import decode_record, encode_record

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "counts", "type": {"type": "map", "values": "int"}},
        ],
    }
)
_orders = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.none() | st.text(),
        "day": st.dates(date(1, 1, 1), date(9999, 1, 1)),
        "at": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
        "price": st.integers(-(10**8), 10**8).map(lambda cents: Decimal(cents) / 100),
        "counts": st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3),
    }
)


@given(_orders)
def test_a_row_comes_back_from_its_value(order: dict[str, object]) -> None:
    value = encode_record(order, SCHEMA)
    assert decode_record(value, SCHEMA, confluent_header=False) == order
    with_header = b"\x00\x00\x00\x00\x07" + value
    assert decode_record(with_header, SCHEMA, confluent_header=True) == order


@given(_orders, st.data())
def test_a_value_that_is_cut_short_or_goes_on_is_bad(
    order: dict[str, object], data: st.DataObject
) -> None:
    value = encode_record(order, SCHEMA)
    cut = data.draw(st.integers(0, len(value) - 1))
    for broken in (value[:cut], value + b"\x00"):
        with pytest.raises(ValueError, match=r"value|bytes are left"):
            decode_record(broken, SCHEMA, confluent_header=False)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_sentence(value: bytes) -> None:
    try:
        row = decode_record(value, SCHEMA, confluent_header=False)
    except ValueError as problem:
        assert "\n" not in str(problem)
        assert str(problem)
    else:
        assert row.keys() == {"id", "note", "day", "at", "price", "counts"}


@pytest.mark.parametrize("value", [b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x07\x02"])
def test_a_header_that_is_none_is_named(value: bytes) -> None:
    with pytest.raises(ValueError, match="does not begin with a zero"):
        decode_record(value, SCHEMA, confluent_header=True)
