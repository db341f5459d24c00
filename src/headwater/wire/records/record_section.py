"""The records of a v2 batch, between its header and its end, decompressed.

    record:  length, attributes (one byte, unused), timestamp delta, offset delta,
             key length, key, value length, value, header count, headers
    header:  key length, key, value length, value

All numbers are variable-length; a length of -1 means null, which a header's key may not be. Both
loops below are the slowest code that a record passes through, which is why they are long and flat:
a call or an attribute costs as much as a field. How the reader stays safe: `data` is a bytes object
that ends where the records end, positions only grow, and a record whose fields do not end exactly
where its length says is refused. So an overlong field is found at the latest at the record's end,
running off the end of `data` is an IndexError, and no length is used to allocate anything.
"""

from collections.abc import Iterable, Iterator, Sequence

from headwater.wire.records.batch_header import RECORD_SIZE_MIN, BatchHeader
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import Buffer, Header, Record
from headwater.wire.records.timestamp_type import TimestampType
from headwater.wire.records.varint import (
    SMALL_LIMIT,
    SMALL_VARINTS,
    VARLONG_BYTES_MAX,
    encode_varint,
    encode_varlong,
    read_raw_varint,
    unzigzag,
)

_LONG_MIN = -0x8000_0000_0000_0000
_LONG_MAX = 0x7FFF_FFFF_FFFF_FFFF
_LONG_MASK = 0xFFFF_FFFF_FFFF_FFFF
_NULL = b"\x01"
_RAW_NULL = 1
_HEADER_SIZE_MIN = 2
#: How many records `section_records` makes at a time, so that it holds few objects at once.
_CHUNK_RECORDS = 1000


def encode_section(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytes:
    """The records relative to a base; their offsets must grow."""
    parts: list[bytes] = []
    append = parts.append
    join = b"".join
    small = SMALL_VARINTS
    previous_delta = -1
    for offset, timestamp, key, value, headers in records:
        offset_delta = offset - base_offset
        if offset_delta <= previous_delta:
            raise InvalidRecordError(
                f"Offset {offset} does not follow {base_offset + previous_delta} in its batch."
            )
        previous_delta = offset_delta
        delta = timestamp - base_timestamp
        if key is None:
            key = b""
            key_length = _NULL
        else:
            size = len(key)
            key_length = small[size] if size < SMALL_LIMIT else encode_varint(size)
        if value is None:
            value = b""
            value_length = _NULL
        else:
            size = len(value)
            value_length = small[size] if size < SMALL_LIMIT else encode_varint(size)
        body = join(
            (
                b"\0",
                small[delta] if 0 <= delta < SMALL_LIMIT else encode_varlong(wrapped_long(delta)),
                small[offset_delta] if offset_delta < SMALL_LIMIT else encode_varint(offset_delta),
                key_length,
                key,
                value_length,
                value,
                encode_headers(headers) if headers else b"\0",
            )
        )
        size = len(body)
        append(small[size] if size < SMALL_LIMIT else encode_varint(size))
        append(body)
    return join(parts)


def encode_headers(headers: Sequence[Header]) -> bytes:
    """The count of a record's headers, and the headers."""
    small = SMALL_VARINTS
    parts = [encode_varint(len(headers))]
    for key, value in headers:
        if key is None:
            raise InvalidRecordError("A header's key may not be null.")
        try:
            encoded_key = key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidRecordError(f"The header key {key!r} is no valid text.") from None
        size = len(encoded_key)
        parts.append(small[size] if size < SMALL_LIMIT else encode_varint(size))
        parts.append(encoded_key)
        if value is None:
            parts.append(_NULL)
        else:
            size = len(value)
            parts.append(small[size] if size < SMALL_LIMIT else encode_varint(size))
            parts.append(value)
    return b"".join(parts)


def check_record_count(header: BatchHeader, data: Buffer) -> None:
    """Refuse a count that these bytes cannot hold, before anything is made of it."""
    if not 0 <= header.record_count * RECORD_SIZE_MIN <= len(data):
        raise InvalidRecordError(
            f"A batch claims {header.record_count} records, but its {len(data)} bytes of records "
            f"hold {len(data) // RECORD_SIZE_MIN} at most."
        )


def check_section_end(header: BatchHeader, data: bytes, position: int) -> None:
    """Refuse bytes after the last record that the header counts."""
    if position != len(data):
        raise InvalidRecordError(
            f"{len(data) - position} bytes follow the {header.record_count} records of a batch."
        )


def read_records(
    data: bytes, position: int, count: int, header: BatchHeader
) -> tuple[list[Record], int]:
    """The next `count` records from `position` on, and the position after them."""
    records: list[Record] = []
    try:
        return records, _read_into(records, data, position, count, header)
    except IndexError:
        raise CorruptRecordError(
            f"The records of a batch end inside one, after {len(records)} whole ones."
        ) from None


def section_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """All records of a batch, made while they are asked for."""
    position = 0
    for done in range(0, header.record_count, _CHUNK_RECORDS):
        count = min(_CHUNK_RECORDS, header.record_count - done)
        records, position = read_records(data, position, count, header)
        yield from records
    check_section_end(header, data, position)


def _read_into(
    records: list[Record], data: bytes, position: int, count: int, header: BatchHeader
) -> int:
    append = records.append
    new_tuple = tuple.__new__
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    raw_delta_max = header.last_offset_delta << 1
    append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    timestamp = header.max_timestamp
    for _ in range(count):
        # The record's length.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        end = position + (raw >> 1)
        if raw & 1:
            raise _negative_length("record", raw)
        # The timestamp's delta, after the byte of attributes.
        raw = data[position + 1]
        if raw < 0x80:
            position += 2
        elif (high := data[position + 2]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 3
        else:
            raw, position = read_raw_varint(data, position + 1, VARLONG_BYTES_MAX)
        if not append_time:
            timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
            if timestamp > _LONG_MAX or timestamp < _LONG_MIN:
                timestamp = wrapped_long(timestamp)
        # The offset's delta.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        if raw & 1 or raw > raw_delta_max:
            raise InvalidRecordError(
                f"A record has the offset delta {unzigzag(raw)} "
                f"in a batch whose last is {header.last_offset_delta}."
            )
        offset = base_offset + (raw >> 1)
        # The key.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        key = None
        if not raw & 1:
            start = position
            position += raw >> 1
            key = data[start:position]
        elif raw != _RAW_NULL:
            raise _negative_length("key", raw)
        # The value.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        value = None
        if not raw & 1:
            start = position
            position += raw >> 1
            value = data[start:position]
        elif raw != _RAW_NULL:
            raise _negative_length("value", raw)
        headers: tuple[Header, ...] = ()
        if data[position]:
            headers, position = read_headers(data, position, end)
        else:
            position += 1
        if position != end:
            raise InvalidRecordError(
                f"The fields of a record end {abs(end - position)} bytes "
                f"{'before' if position < end else 'after'} the end that its length gives."
            )
        append(new_tuple(Record, (offset, timestamp, key, value, headers)))
    return position


def read_headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    """The headers of the record that ends at `end`, from their count on, and where they end."""
    raw = data[position]
    if raw < 0x80:
        position += 1
    else:
        raw, position = read_raw_varint(data, position)
    count = raw >> 1
    if raw & 1 or count * _HEADER_SIZE_MIN > end - position:
        raise InvalidRecordError(
            f"A record claims {unzigzag(raw)} headers in {max(0, end - position)} bytes."
        )
    headers: list[Header] = []
    for _ in range(count):
        raw = data[position]
        if raw < 0x80:
            position += 1
        else:
            raw, position = read_raw_varint(data, position)
        if raw & 1:
            raise _negative_length("header key", raw)
        start = position
        position += raw >> 1
        key = data[start:position].decode("utf-8", "surrogateescape")
        raw = data[position]
        if raw < 0x80:
            position += 1
        else:
            raw, position = read_raw_varint(data, position)
        value = None
        if not raw & 1:
            start = position
            position += raw >> 1
            value = data[start:position]
        elif raw != _RAW_NULL:
            raise _negative_length("header value", raw)
        headers.append((key, value))
    return tuple(headers), position


def _negative_length(what: str, raw: int) -> InvalidRecordError:
    return InvalidRecordError(f"A {what} has the length {unzigzag(raw)}.")


def wrapped_long(value: int) -> int:
    """`value` as a 64-bit number that overflowed, which is what Java's arithmetic does."""
    return ((value - _LONG_MIN) & _LONG_MASK) + _LONG_MIN
