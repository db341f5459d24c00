"""Batches whose headers agree with themselves, whatever their records are.

The encoder of `headwater.wire` makes nothing wrong, and no client can be told to; here a test says
what each number of a record is.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.sim.campaigns.logs import NOW_MS
from headwater.wire.records import HEADER_SIZE, Compression, compress
from headwater.wire.records.batch_header import HEADER_STRUCT, write_crc
from headwater.wire.records.varint import encode_varint, encode_varlong


def raw_record(
    delta: int,
    value: bytes = b"value",
    *,
    key_length: int = -1,
    value_length: int | None = None,
    header_count: int = 0,
    length_error: int = 0,
    timestamp_delta: int = 0,
) -> bytes:
    """A record as no encoder would make it, if it is told so."""
    body = b"".join(
        (
            b"\0",
            encode_varlong(timestamp_delta),
            encode_varint(delta),
            encode_varint(key_length),
            encode_varint(len(value) if value_length is None else value_length),
            value,
            encode_varint(header_count),
        )
    )
    return encode_varint(len(body) + length_error) + body


def raw_batch(
    section: bytes,
    count: int,
    *,
    compression: Compression = Compression.NONE,
    base_timestamp: int = NOW_MS,
    max_timestamp: int = NOW_MS,
    producer_id: int = -1,
    attributes: int = 0,
) -> bytes:
    """A batch with a header that agrees with itself, whatever its records are."""
    stored = section if compression is Compression.NONE else compress(compression, section)
    return sealed(
        stored, count, attributes | compression, base_timestamp, max_timestamp, producer_id
    )


def sealed(
    stored: bytes,
    count: int,
    attributes: int,
    base_timestamp: int = NOW_MS,
    max_timestamp: int = NOW_MS,
    producer_id: int = -1,
) -> bytes:
    numbers = (producer_id, 0, 0) if producer_id >= 0 else (-1, -1, -1)
    batch = bytearray(
        HEADER_STRUCT.pack(
            0,
            HEADER_SIZE - 12 + len(stored),
            -1,
            2,
            0,
            attributes,
            count - 1,
            base_timestamp,
            max_timestamp,
            *numbers,
            count,
        )
        + stored
    )
    write_crc(batch, 0, len(batch))
    return bytes(batch)


class Poison(NamedTuple):
    """Records that would stop every consumer. The answer to them is INVALID_RECORD."""

    section: bytes
    record_count: int
    #: The records at fault, where it is about some of them.
    record_numbers: tuple[int, ...] = ()


THREE = b"".join(raw_record(number) for number in range(3))
POISON: dict[str, Poison] = {
    "fewer counted than there are": Poison(THREE, 2),
    "more counted than there are": Poison(THREE, 4),
    "cut short": Poison(THREE[:-3], 3),
    "bytes behind": Poison(THREE + b"\0", 3),
    "the same delta again": Poison(
        raw_record(5) + raw_record(5) + raw_record(5),
        3,
        (0, 1, 2),
    ),
    "a delta left out": Poison(
        raw_record(0) + raw_record(2) + raw_record(2),
        3,
        (1,),
    ),
    "negative delta": Poison(raw_record(0) + raw_record(-1), 2),
    "length too large": Poison(
        raw_record(0, length_error=1) + raw_record(1) + raw_record(2),
        3,
    ),
    "length too small": Poison(
        raw_record(0) + raw_record(1) + raw_record(2, length_error=-1),
        3,
    ),
    "negative length": Poison(raw_record(0, length_error=-50), 1),
    "negative key length": Poison(raw_record(0, key_length=-2), 1),
    "key too long": Poison(raw_record(0, key_length=7000), 1),
    "value too long": Poison(
        raw_record(0, value_length=6) + raw_record(1),
        2,
    ),
    "headers that are not there": Poison(
        raw_record(0, header_count=3) + raw_record(1),
        2,
    ),
    "noise": Poison(bytes(range(7, 207)), 3),
}
