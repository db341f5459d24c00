import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.records import CorruptRecordError, InvalidRecordError
from headwater.wire.records.varint import (
    SMALL_LIMIT,
    SMALL_VARINTS,
    VARLONG_BYTES_MAX,
    encode_varint,
    encode_varlong,
    read_raw_varint,
    unzigzag,
)
from tests.support.values.record_strategies import INT32, INT64

#: The values at which the encoding changes its length or its sign, as Java's clients write them.
VARINTS = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (-8192, "ff7f"),
    (8192, "808001"),
    (-8193, "818001"),
    (1048575, "feff7f"),
    (-1048576, "ffff7f"),
    (1048576, "80808001"),
    (134217727, "feffff7f"),
    (134217728, "8080808001"),
    (2147483647, "feffffff0f"),
    (-2147483648, "ffffffff0f"),
]
VARLONGS = [
    (2147483648, "8080808010"),
    (-2147483649, "8180808010"),
    (17179869183, "feffffff7f"),
    (17179869184, "808080808001"),
    (9223372036854775807, "feffffffffffffffff01"),
    (-9223372036854775808, "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "encoded"), VARINTS)
def test_varint_vectors(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    raw, position = read_raw_varint(b"?" + bytes.fromhex(encoded) + b"?", 1)
    assert (unzigzag(raw), position) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize(("value", "encoded"), VARINTS + VARLONGS)
def test_varlong_vectors(value: int, encoded: str) -> None:
    assert encode_varlong(value).hex() == encoded
    raw, _ = read_raw_varint(bytes.fromhex(encoded), 0, VARLONG_BYTES_MAX)
    assert unzigzag(raw) == value


@given(INT32)
def test_varint_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    raw, position = read_raw_varint(encoded, 0)
    assert (unzigzag(raw), position) == (value, len(encoded))


@given(INT64)
def test_varlong_round_trip(value: int) -> None:
    encoded = encode_varlong(value)
    raw, position = read_raw_varint(encoded, 0, VARLONG_BYTES_MAX)
    assert (unzigzag(raw), position) == (value, len(encoded))


def test_the_table_holds_what_the_function_gives() -> None:
    assert [encode_varint(value) for value in range(SMALL_LIMIT)] == SMALL_VARINTS


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_a_varint_that_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="32-bit"):
        encode_varint(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_varlong_that_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="64-bit"):
        encode_varlong(value)


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="longer than 5 bytes"):
        read_raw_varint(b"\x80" * 5 + b"\x00", 0)
    with pytest.raises(CorruptRecordError, match="longer than 10 bytes"):
        read_raw_varint(b"\xff" * 100, 0, VARLONG_BYTES_MAX)


def test_a_number_that_overflows_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="too large"):
        read_raw_varint(b"\xff\xff\xff\xff\x10", 0)
    with pytest.raises(CorruptRecordError, match="too large"):
        read_raw_varint(b"\xff" * 9 + b"\x02", 0, VARLONG_BYTES_MAX)


@given(st.integers(0, 4))
def test_a_number_cut_short_is_refused(length: int) -> None:
    with pytest.raises(CorruptRecordError, match="end inside"):
        read_raw_varint(b"\x80" * length, 0)
