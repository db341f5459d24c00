"""Runs of records that are alike, whose structure is checked at once, a column at a time.

Records of one batch mostly have one layout, and then nobody has to look at them one by one. After a
record that was walked come others that are like it:

- `alike`: of the same size S. The bytes that give their structure stand S bytes apart, so that
  `data[at::S]` has one of them of each record: a column. One comparison checks a length in all of
  them, or that their offset deltas count upwards.
- `alike_but_for_values`: with values of other lengths. From the end of one value to the length of
  the next they have the same fields in the same places, their *joint*. A short loop takes the
  joints out, as each tells where the next one is; behind one another, they have columns again.

The one thing that may differ is the timestamp's delta, of which the columns are checked to hold
nothing later than the header claims. Both say how many records they have tried, and whether the
latest is among them: None if not all is well, and then the walk has to look at them itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from headwater.wire.records.record import Buffer
from headwater.wire.records.varint import SMALL_VARINTS

#: Fewer records than this are sooner walked than compared, and those with joints are from here on.
RUN_RECORDS_MIN: Final = 8
JOINED_RECORDS_MIN: Final = 24
#: So many joints are taken out at a time, which bounds the objects that a batch makes.
_JOINED_RECORDS_MAX: Final = 512
#: Up to so many offset deltas have columns.
RECORDS_MAX: Final = 1 << 20

# An offset delta in zigzag form takes one byte below 64, two below 8,192 and three up to the
# maximum. Its bytes come from these tables; the third is the same for 8,192 records in a row.
_ONE_BYTE_RECORDS: Final = 64
_TWO_BYTE_RECORDS: Final = 8192
_ONLY_DELTA_BYTES: Final = bytes(range(0, 0x80, 2))
_FIRST_DELTA_BYTES: Final = bytes([raw & 0x7F | 0x80 for raw in range(0, 2 * _TWO_BYTE_RECORDS, 2)])
_LAST_DELTA_BYTES: Final = bytes([raw >> 7 for raw in range(0, 2 * _TWO_BYTE_RECORDS, 2)])
_MIDDLE_DELTA_BYTES: Final = bytes([byte | 0x80 for byte in _LAST_DELTA_BYTES])

#: The bytes that are a whole number, and those that must be followed by another.
_WHOLE: Final = bytes(range(0x80))
_CONTINUED: Final = bytes(range(0x80, 0x100))
#: Longer deltas of timestamps may overflow.
_TIMESTAMP_BYTES_MAX: Final = 8
#: Each byte as a column of one.
_BYTES: Final = [bytes((byte,)) for byte in range(0x100)]
#: By the latest: timestamp deltas of one byte that are not later. Odd bytes are negative ones.
_NOT_LATER: Final = [
    bytes([raw for raw in range(0x80) if raw & 1 or raw <= latest]) for latest in range(0, 0x80, 2)
]
#: What lengths of two bytes stand for: those of values from 64 bytes to 8 KB.
_TWO_BYTE_LENGTHS: Final = {
    encoded: length for length, encoded in enumerate(SMALL_VARINTS) if len(encoded) == 2
}


class Run(NamedTuple):
    """Records behind one that was walked, which are like it or not."""

    record_count: int
    #: Where they end.
    end: int
    #: Whether the latest of the batch is among them; None if they must be walked.
    has_latest: bool | None


def alike(
    data: Buffer,
    record: tuple[int, int, int, int],
    header_structure: list[int],
    number: int,
    count: int,
    latest: int,
) -> Run:
    """The records from `number` on that have the layout of the one in front of them.

    `record` is where that starts, where its value and its headers do, and where it ends;
    `header_structure` is where the count and the lengths of its headers stand.
    """
    start, value_at, _, end = record
    size = end - start
    deltas = _delta_columns(number, min(count - number, (len(data) - end) // size))
    run = len(deltas[0])
    lengths = bytes(data[end : end + run * size : size])
    run -= len(lengths.lstrip(lengths[:1]))
    after = end + run * size
    if run < RUN_RECORDS_MIN:
        return Run(run, after, None)
    attributes_at = _number_end(data, start)
    delta_at = _number_end(data, attributes_at + 1)
    key_at = _number_end(data, delta_at)
    structure = [
        *range(start + 1, attributes_at),
        *range(key_at, _number_end(data, key_at)),
        *range(value_at, _number_end(data, value_at)),
        *header_structure,
    ]
    for at in structure:
        if data[at + size : after : size] != _BYTES[data[at]] * run:
            return Run(run, after, None)
    if len(deltas) != key_at - delta_at:
        return Run(run, after, None)
    for at, column in enumerate(deltas, delta_at):
        if data[at + size : after : size] != column[:run]:
            return Run(run, after, None)
    timestamps = [
        bytes(data[at + size : after : size]) for at in range(attributes_at + 1, delta_at)
    ]
    return Run(run, after, _has_latest(timestamps, latest))


def alike_but_for_values(
    data: bytes, record: tuple[int, int, int, int], number: int, count: int, latest: int
) -> Run:
    """The same for records whose values differ in length.

    Their own lengths and those of their values take two bytes, a key's one; they have no headers.
    """
    start, value_at, headers_at, end = record
    deltas = _delta_columns(number, min(count - number, _JOINED_RECORDS_MAX))
    if len(deltas[0]) < JOINED_RECORDS_MIN:
        return Run(0, end, None)
    delta_at = _number_end(data, start + 3)
    key_at = _number_end(data, delta_at)
    if not (
        data[start + 1] < 0x80 <= data[start]
        and data[value_at + 1] < 0x80 <= data[value_at]
        and data[key_at] < 0x80
        and data[headers_at] == 0
        and len(deltas) == key_at - delta_at
    ):
        return Run(0, end, None)
    # The joint begins with the number of headers, 0, and ends with the length of the value.
    size = value_at + 3 - start
    tail = size - 2
    joints: list[bytes] = []
    append = joints.append
    position = headers_at
    try:
        for _ in range(len(deltas[0])):
            joint = data[position : position + size]
            position += size + _TWO_BYTE_LENGTHS[joint[tail:]]
            append(joint)
    except KeyError:
        pass
    run = len(joints)
    end = position + 1
    if run < RUN_RECORDS_MIN or end > len(data) or data[position]:
        return Run(run, end, None)
    block = b"".join(joints)
    key_column = 1 + key_at - start
    length_first, length_second = block[1::size], block[2::size]
    if (
        block[0::size].strip(b"\0")
        or block[key_column::size] != _BYTES[data[key_at]] * run
        or [block[at::size] for at in range(1 + delta_at - start, key_column)]
        != [column[:run] for column in deltas]
        or length_first.translate(None, _CONTINUED)
        or length_second.translate(None, _WHOLE)
        # A record's length is that of its value and of the joint, but for its own two bytes.
        or _lanes(length_first, length_second)
        != _lanes(block[tail::size], block[tail + 1 :: size]) + 2 * (size - 2) * _ones(run)
    ):
        return Run(run, end, None)
    timestamps = [block[at::size] for at in range(4, 1 + delta_at - start)]
    return Run(run, end, _has_latest(timestamps, latest))


def _lanes(first: bytes, second: bytes) -> int:
    """Raw numbers of two bytes as one large number, in lanes of 16 bits."""
    low, high = bytearray(2 * len(first)), bytearray(2 * len(first))
    low[::2], high[::2] = first, second
    numbers = int.from_bytes(low, "little") + (int.from_bytes(high, "little") << 7)
    return numbers - 0x80 * _ones(len(first))


def _ones(count: int) -> int:
    """A one in each of so many lanes."""
    return int.from_bytes(b"\1\0" * count, "little")


def _number_end(data: Buffer, position: int) -> int:
    while data[position] >= 0x80:
        position += 1
    return position + 1


def _delta_columns(number: int, run: int) -> list[bytes]:
    """The offset deltas of so many records, or of as many as have them in the same bytes."""
    if number < _ONE_BYTE_RECORDS:
        return [_ONLY_DELTA_BYTES[number : number + run]]
    first = number % _TWO_BYTE_RECORDS
    columns = [_FIRST_DELTA_BYTES[first : first + run]]
    if number < _TWO_BYTE_RECORDS:
        columns.append(_LAST_DELTA_BYTES[first : first + run])
    else:
        columns.append(_MIDDLE_DELTA_BYTES[first : first + run])
        columns.append(bytes((number // _TWO_BYTE_RECORDS,)) * len(columns[0]))
    return columns


def _has_latest(columns: list[bytes], latest: int) -> bool | None:
    """Whether one of these timestamp deltas is the latest; None if one is later, or no number."""
    *continued, last = columns
    if len(continued) >= _TIMESTAMP_BYTES_MAX:
        return None
    if not continued and latest < 0x80:
        if last.translate(None, _NOT_LATER[latest >> 1]):
            return None
        return latest in last
    if last.translate(None, _WHOLE):
        return None
    if not continued:
        return False
    raws: Iterable[int] = last
    for column in reversed(continued):
        if column.translate(None, _CONTINUED):
            return None
        raws = [raw << 7 | byte & 0x7F for raw, byte in zip(raws, column, strict=True)]
    largest = max([raw for raw in raws if not raw & 1], default=0)
    return largest == latest if largest <= latest else None
