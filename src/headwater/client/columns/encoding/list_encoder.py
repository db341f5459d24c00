"""Lists of keys, values and timestamps to the records section of a batch, without a loop over them.

A batch of one producer has few different timestamps, no headers, and often no keys and values of
one size. So it is cut into stretches of records that have the timestamp and the width of the offset
delta in common. In a stretch all that stands around keys and values depends on their sizes and on
the record's place alone, and comes from tables: comprehensions look it up, slices put it side by
side, and one join makes the section. What is not worth it or does not fit the tables (headers, null
among others, short stretches) goes through the loop of `wire.records`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Final, cast

from headwater.wire.records import Header, Record
from headwater.wire.records.record_section import encode_section, wrapped_long
from headwater.wire.records.varint import (
    SMALL_LIMIT,
    SMALL_VARINTS,
    encode_varint,
    encode_varlong,
)

#: A stretch of fewer records costs more than the loop does.
_STRETCH_RECORDS_MIN: Final = 16
#: The first offset deltas that take one more byte than those before them.
_WIDTH_LIMITS: Final = (1 << 6, 1 << 13, 1 << 20, 1 << 27)

_ATTRIBUTES: Final = b"\0"
_NULL: Final = b"\x01"
_NO_HEADERS: Final = b"\0"

#: By the size of a key or value, its size together with the length that stands before it.
_FIELD_SIZES: Final = [size + len(SMALL_VARINTS[size]) for size in range(SMALL_LIMIT)]
#: By a record's length, the end of the record before it, which has no headers, and that length.
_RECORD_HEADS: Final = [_NO_HEADERS + length for length in SMALL_VARINTS]


def encode_records(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Sequence[Header]] | None,
) -> bytes:
    """The section of records with offset deltas from 0 on, relative to the first timestamp.

    None for the keys or the headers says that no record has any.
    """
    if headers is None and len(values) >= _STRETCH_RECORDS_MIN:
        pieces: list[bytes] = []
        try:
            for first, last in _stretches(timestamps):
                time_head = _ATTRIBUTES + _delta(timestamps[first] - timestamps[0])
                if keys is None:
                    pieces += _keyless(time_head, values[first:last], first)
                else:
                    pieces += _keyed(time_head, keys[first:last], values[first:last], first)
            return b"".join(pieces)
        except (TypeError, IndexError, _ShortStretch):
            pass  # Null has no length, and a size beyond the tables has no entry.
    # The loop unpacks what it is given, so plain tuples are records enough.
    records = zip(
        range(len(values)),
        timestamps,
        repeat(None) if keys is None else keys,
        values,
        repeat(()) if headers is None else headers,
        strict=False,
    )
    return encode_section(cast("Iterable[Record]", records), 0, timestamps[0] if values else 0)


class _ShortStretch(Exception):
    """There are too many different timestamps."""


def _stretches(timestamps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where each stretch begins and ends."""
    count = len(timestamps)
    limits = [limit for limit in _WIDTH_LIMITS if limit < count]
    if timestamps.count(timestamps[0]) != count:
        changes = [
            index
            for index, (one, next_one) in enumerate(pairwise(timestamps), 1)
            if one != next_one
        ]
        if len(changes) * _STRETCH_RECORDS_MIN > count:
            raise _ShortStretch
        limits = sorted({*limits, *changes})
    first = 0
    for last in (*limits, count):
        yield first, last
        first = last


def _keyless(time_head: bytes, values: Sequence[bytes | None], first: int) -> list[bytes]:
    """Each record is a head, the timestamp, the offset with the key's null, a length and a value.

    The head begins with the last byte of the record before, which says that it has no headers.
    """
    count = len(values)
    offset_heads = _offset_heads(first, first + count, _NULL)
    rest_bytes = len(time_head) + len(offset_heads[0]) + len(_NO_HEADERS)
    sizes = list(map(len, values))  # type: ignore[arg-type]
    pieces: list[bytes] = [time_head] * (5 * count + 1)
    if sizes.count(sizes[0]) == count:
        value_head = _length(sizes[0])
        body_bytes = rest_bytes + len(value_head) + sizes[0]
        pieces[0:-1:5] = [_NO_HEADERS + _length(body_bytes)] * count
        pieces[3::5] = [value_head] * count
    else:
        field_sizes, record_heads, small = _FIELD_SIZES, _RECORD_HEADS, SMALL_VARINTS
        pieces[0:-1:5] = [record_heads[rest_bytes + field_sizes[size]] for size in sizes]
        pieces[3::5] = [small[size] for size in sizes]
    pieces[0] = pieces[0][len(_NO_HEADERS) :]
    pieces[2::5] = offset_heads
    pieces[4::5] = values  # type: ignore[assignment]
    pieces[-1] = _NO_HEADERS
    return pieces


def _keyed(
    time_head: bytes, keys: Sequence[bytes | None], values: Sequence[bytes | None], first: int
) -> list[bytes]:
    """As above, with the key's length and the key after the offset."""
    count = len(values)
    offset_heads = _offset_heads(first, first + count, b"")
    rest_bytes = len(time_head) + len(offset_heads[0]) + len(_NO_HEADERS)
    field_sizes, record_heads, small = _FIELD_SIZES, _RECORD_HEADS, SMALL_VARINTS
    key_sizes = list(map(len, keys))  # type: ignore[arg-type]
    value_sizes = list(map(len, values))  # type: ignore[arg-type]
    pieces: list[bytes] = [time_head] * (7 * count + 1)
    pieces[0:-1:7] = [
        record_heads[rest_bytes + field_sizes[key_size] + field_sizes[value_size]]
        for key_size, value_size in zip(key_sizes, value_sizes, strict=True)
    ]
    pieces[0] = pieces[0][len(_NO_HEADERS) :]
    pieces[2::7] = offset_heads
    pieces[3::7] = [small[size] for size in key_sizes]
    pieces[4::7] = keys  # type: ignore[assignment]
    pieces[5::7] = [small[size] for size in value_sizes]
    pieces[6::7] = values  # type: ignore[assignment]
    pieces[-1] = _NO_HEADERS
    return pieces


def _length(size: int) -> bytes:
    return SMALL_VARINTS[size] if size < SMALL_LIMIT else encode_varint(size)


def _delta(delta: int) -> bytes:
    if 0 <= delta < SMALL_LIMIT:
        return SMALL_VARINTS[delta]
    return encode_varlong(wrapped_long(delta))


def _offset_heads(first: int, last: int, rest: bytes) -> list[bytes]:
    """The offset deltas from `first` to before `last`, each with `rest` after it."""
    if last <= SMALL_LIMIT:
        return _small_offset_heads(rest)[first:last]
    return [encode_varint(delta) + rest for delta in range(first, last)]


@lru_cache(maxsize=2)
def _small_offset_heads(rest: bytes) -> list[bytes]:
    return [delta + rest for delta in SMALL_VARINTS]
