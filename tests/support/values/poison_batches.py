"""Batches that no reader can make sense of, of every kind, in the place of good ones.

Each stands for `SPAN` offsets from the one it is asked for.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from headwater.testing.running_broker import RunningBroker
from headwater.wire.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    Compression,
    Record,
    compress,
    encode_batch,
    read_batch_header,
)
from headwater.wire.records.batch_header import HEADER_STRUCT, write_crc
from headwater.wire.records.record_section import encode_section

SPAN: Final = 120

_NOISE: Final = bytes(range(255, 0, -1)) * 4


def good_batch(first: int, count: int = SPAN) -> bytes:
    """Values are the offsets in digits."""
    return encode_batch(_records(first, count), leader_epoch=0)


def _records(first: int, count: int) -> list[Record]:
    return [Record(first + i, 1_000 + i, None, b"%d" % (first + i)) for i in range(count)]


def _section(first: int, count: int = SPAN) -> bytes:
    return encode_section(_records(first, count), first, 1_000)


def _assembled(
    first: int, section: bytes, *, count: int = SPAN, codec: Compression = Compression.NONE
) -> bytes:
    """Whatever section it is, under a sound header with the right checksum."""
    template = read_batch_header(good_batch(first))
    header = template._replace(
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section), attributes=codec, record_count=count
    )
    batch = bytearray(HEADER_STRUCT.pack(*header) + section)
    write_crc(batch, 0, len(batch))
    return bytes(batch)


def _wrong_checksum(first: int) -> bytes:
    batch = bytearray(good_batch(first))
    batch[-1] ^= 1
    return bytes(batch)


def _lying_length(first: int) -> bytes:
    section = bytearray(_section(first))
    section[0] += 2
    return _assembled(first, bytes(section))


def _same_offset(first: int) -> bytes:
    """Every record has the offset delta 5."""
    record = encode_section([Record(first + 5, 1_000, None, b"5")], first, 1_000)
    return _assembled(first, record * SPAN)


def _noise_in(codec: Compression) -> Callable[[int], bytes]:
    return lambda first: _assembled(first, _NOISE, codec=codec)


def _compressed_noise(codec: Compression) -> Callable[[int], bytes]:
    return lambda first: _assembled(first, compress(codec, _NOISE, None), codec=codec)


_CODECS: Final = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)

POISONS: Final[dict[str, Callable[[int], bytes]]] = {
    "wrong checksum": _wrong_checksum,
    "noise": _noise_in(Compression.NONE),
    **{f"not {codec.name.lower()}": _noise_in(codec) for codec in _CODECS},
    **{f"noise in {codec.name.lower()}": _compressed_noise(codec) for codec in _CODECS},
    "truncated gzip": lambda first: _assembled(
        first, gzip.compress(_section(first))[:-20], codec=Compression.GZIP
    ),
    "lying record length": _lying_length,
    "more records than counted": lambda first: _assembled(first, _section(first), count=SPAN - 1),
    "fewer records than counted": lambda first: _assembled(first, _section(first, SPAN - 1)),
    "one offset for all": _same_offset,
}

#: A topic that has one poison of each kind, and good batches before, between and after them.
POISONED_TOPIC: Final = "poisoned"
POISONED_GOOD_OFFSETS: Final = [
    offset
    for number in range(len(POISONS) + 1)
    for offset in range(2 * number * SPAN, (2 * number + 1) * SPAN)
]
POISONED_END: Final = (2 * len(POISONS) + 1) * SPAN


@contextlib.contextmanager
def poisoned_broker(directory: Path) -> Iterator[RunningBroker]:
    """A broker that has that topic. None would write it, so that happens while it is away."""
    with RunningBroker(directory) as broker:
        broker.create_topic(POISONED_TOPIC)
    batches = [good_batch(0)]
    for number, make in enumerate(POISONS.values()):
        first = (2 * number + 1) * SPAN
        batches += [make(first), good_batch(first + SPAN)]
    [log] = directory.glob(f"**/{POISONED_TOPIC}-0/*.log")
    log.write_bytes(b"".join(batches))
    with RunningBroker(directory) as broker:
        yield broker
