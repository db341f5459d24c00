"""Whether uncompressed records are what their header says, found out without making a record.

A broker asks this of every batch that a producer sends it, so it has to cost little beside the
append. It only says yes or no: yes means that the records fill their bytes exactly, field by
field, that they are as many as the header counts and numbered 0, 1, 2 and so on, and that the
latest of them has the header's largest timestamp. After a no, which also meets what is merely
unusual (overlong numbers, more than a million records), the reader in `record_section` tells what
is wrong, if anything is.

The walk reads one record, asks `record_runs` how many of the next ones are like it, and goes on
behind them.

What it adds to an append (`append_plain_batch` to the page cache, on one core of a small machine
with Python 3.11), in microseconds and per GB:

    records                  batch    append    all of one size    of sizes that vary
    one of 100 B                        4.3     + 0.8
    100 B                    16 KB       13     +  13   0.8 s      +  45   2.7 s
                             64 KB       26     +  19   0.3 s      + 129   2.0 s
    1 KB                     16 KB       13     +   7   0.4 s      +  11   0.7 s
                             64 KB       25     +   8   0.1 s      +  27   0.4 s
                            256 KB       66     +  25   0.1 s      +  95   0.4 s
    10 KB                    64 KB       24     +   6   0.1 s      +   5   0.1 s
                            256 KB       66     +  11   0.04 s     +  24   0.1 s

Records that have no layout in common (keys of many lengths, values around 64 bytes, where a length
takes one byte or two) take 0.7 microseconds each: with 100 B that is 6 s per GB.
"""

from __future__ import annotations

from typing import Final

from headwater.wire.records.errors import CorruptRecordError
from headwater.wire.records.record import NO_TIMESTAMP, Buffer
from headwater.wire.records.record_runs import (
    JOINED_RECORDS_MIN,
    RECORDS_MAX,
    RUN_RECORDS_MIN,
    Run,
    alike,
    alike_but_for_values,
)
from headwater.wire.records.varint import VARLONG_BYTES_MAX, read_raw_varint

_RAW_NULL: Final = 1
#: No sum with a base from -1 on leaves 64 bits if its negative delta fits these, zigzag and all.
_SURELY_NO_OVERFLOW_BITS: Final = 62
#: How many records are walked after it was tried in vain to do many at once; then twice as many.
_VAIN_RECORDS: Final = 16
#: Smaller records are copied first, since a walk through bytes is quicker than one through a view.
#: Of larger ones too few bytes are looked at to make up for it.
_COPIED_RECORD_BYTES_MAX: Final = 8192


def walk_records(
    data: Buffer, position: int, count: int, base_timestamp: int, max_timestamp: int | None
) -> bool:
    """Whether `data` from `position` to its end is just as these fields of a header say.

    Without a `max_timestamp` any timestamps will do.
    """
    if max_timestamp is None:
        latest, is_latest_found = 1 << 64, True
    else:
        latest, is_latest_found = (max_timestamp - base_timestamp) << 1, False
        if latest < 0 or latest >> _SURELY_NO_OVERFLOW_BITS or base_timestamp < NO_TIMESTAMP:
            return False
    if not 0 < count <= RECORDS_MAX:
        return False
    if len(data) - position < count * _COPIED_RECORD_BYTES_MAX and count >= RUN_RECORDS_MIN:
        data = bytes(data[position:])
        position = 0
    try:
        return _walk(data, position, count, latest, is_latest_found)
    except (IndexError, CorruptRecordError):
        return False


def _walk(data: Buffer, position: int, count: int, latest: int, is_latest_found: bool) -> bool:
    number = 0
    next_try = 1
    vain_records = _VAIN_RECORDS
    size = len(data)
    while True:
        start = position
        # The record's length.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        elif (third := data[position + 2]) < 0x80:
            raw = raw & 0x7F | (high & 0x7F) << 7 | third << 14
            position += 3
        else:
            raw, position = read_raw_varint(data, position)
        end = position + (raw >> 1)
        if raw & 1:
            return False
        # The timestamp's delta, after the byte of attributes.
        raw = data[position + 1]
        if raw < 0x80:
            position += 2
        elif (high := data[position + 2]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 3
        else:
            raw, position = read_raw_varint(data, position + 1, VARLONG_BYTES_MAX)
        if raw >= latest:
            if raw & 1:
                if raw >> _SURELY_NO_OVERFLOW_BITS:
                    return False
            elif raw > latest:
                return False
            else:
                is_latest_found = True
        # The offset's delta.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        if raw != number << 1:
            return False
        # The key.
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        else:
            raw, position = read_raw_varint(data, position)
        if not raw & 1:
            position += raw >> 1
        elif raw != _RAW_NULL:
            return False
        # The value.
        value_at = position
        raw = data[position]
        if raw < 0x80:
            position += 1
        elif (high := data[position + 1]) < 0x80:
            raw = raw & 0x7F | high << 7
            position += 2
        elif (third := data[position + 2]) < 0x80:
            raw = raw & 0x7F | (high & 0x7F) << 7 | third << 14
            position += 3
        else:
            raw, position = read_raw_varint(data, position)
        if not raw & 1:
            position += raw >> 1
        elif raw != _RAW_NULL:
            return False
        headers_at = position
        if data[position]:
            position = _walk_headers(data, position, end)
        else:
            position += 1
        if position != end:
            return False
        number += 1
        if number == count:
            return end == size and is_latest_found
        left = count - number
        if (
            left < RUN_RECORDS_MIN
            or number < next_try
            or (left < JOINED_RECORDS_MIN and data[end] != data[start])
        ):
            continue
        record = start, value_at, headers_at, end
        run = _run_behind(data, record, number, count, latest)
        if run.has_latest is None:
            # So that trying in vain costs no more than walking.
            next_try = number + max(run.record_count, vain_records)
            vain_records *= 2
            continue
        is_latest_found = is_latest_found or run.has_latest
        number += run.record_count
        position = run.end
        if number == count:
            return position == size and is_latest_found


def _run_behind(
    data: Buffer, record: tuple[int, int, int, int], number: int, count: int, latest: int
) -> Run:
    """What can be told at once of the records behind this one, which was walked."""
    start, _, headers_at, end = record
    run = Run(0, end, None)
    if data[end] == data[start]:
        header_structure = [headers_at]
        if data[headers_at]:
            header_structure = []
            _walk_headers(data, headers_at, end, header_structure)
        run = alike(data, record, header_structure, number, count, latest)
    if run.has_latest is None and isinstance(data, bytes):
        other = alike_but_for_values(data, record, number, count, latest)
        if other.has_latest is not None or other.record_count > run.record_count:
            return other
    return run


def _walk_headers(data: Buffer, position: int, end: int, structure: list[int] | None = None) -> int:
    """Where the headers of a record end, from their count on; -1 if they are wrong.

    `structure` is told where their count and lengths stand.
    """
    start = position
    raw, position = read_raw_varint(data, position)
    if structure is not None:
        structure += range(start, position)
    if raw & 1 or raw > end - position:  # It is twice the count, and a header takes two bytes.
        return -1
    for field in range(raw):  # Keys and values in turn.
        start = position
        length = data[position]
        if length < 0x80:
            position += 1
        else:
            length, position = read_raw_varint(data, position)
        if structure is not None:
            structure += range(start, position)
        if not length & 1:
            position += length >> 1
        elif length != _RAW_NULL or not field & 1:
            return -1
    return position
