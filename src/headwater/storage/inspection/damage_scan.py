"""Walking a log file that may be damaged.

`batch_scan` stops at the first thing that is not a batch, which is what recovery wants. The tools
want to see what lies behind it too. Where no batch can be read, the length field that stands there
is given one chance: if a batch starts where it says that the next one does, the walk goes on from
there, otherwise the rest of the file is one stretch of damage. Checksums are not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.storage.disk.files import File
from headwater.storage.segments.batch_scan import (
    CHUNK_BYTES,
    LEGACY_SIZE_MIN,
    PREFIX,
    ScannedBatch,
    read_entry_header,
    scan_batches,
)
from headwater.wire.records import HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2, CorruptRecordError


class Damage(NamedTuple):
    """A stretch of a log file that holds no batch."""

    position: int
    size: int
    reason: str
    #: It reaches to the end of the file and looks like a batch of which a part is missing, or like
    #: space that was never written: what an append leaves that is going on or was interrupted.
    is_torn_tail: bool


def scan_past_damage(file: File, start: int, end: int) -> Iterator[ScannedBatch | Damage]:
    """Every batch between two positions, and what lies between them that is none."""
    position = start
    while position < end:
        try:
            for batch in scan_batches(file, position, end):
                yield batch
                position = batch.position + batch.header.size_bytes
            return
        except CorruptRecordError:
            damage = _damage_at(file, position, end)
            yield damage
            position += damage.size


def describe_record_error(error: KafkaError) -> str:
    """What is wrong with a batch that was looked at on its own, as a clause.

    The errors name the position in the buffer, which is then 0 and not the one in the file.
    """
    text = str(error).replace(" at position 0", "", 1).rstrip(".")
    return text[:1].lower() + text[1:]


def _damage_at(file: File, position: int, end: int) -> Damage:
    rest = end - position
    prefix = file.read_at(position, PREFIX.size)
    if len(prefix) < PREFIX.size:
        return Damage(position, rest, f"{len(prefix)} bytes are too few for a batch header", True)
    offset, length, magic = PREFIX.unpack(prefix)
    size = LOG_OVERHEAD + length
    if _is_blank(file, position, end):
        return Damage(position, rest, "there are only zeros", True)
    if length < LEGACY_SIZE_MIN:
        reason = f"the length field says {length}, which is less than any header takes"
    elif size > rest:
        reason = f"a batch of {size} bytes starts here, of which {rest} are there"
        return Damage(position, rest, reason, magic in (0, 1, MAGIC_V2))
    elif magic not in (0, 1, MAGIC_V2):
        reason = f"the magic is {magic}, and only 0, 1 and 2 are known"
    else:
        reason = f"offset {offset}, length {length} and magic {magic} do not go together"
    if length >= LEGACY_SIZE_MIN and _batch_starts(file, position + size, end):
        return Damage(position, size, reason, False)
    return Damage(position, rest, reason, False)


def _batch_starts(file: File, position: int, end: int) -> bool:
    header_bytes = file.read_at(position, HEADER_SIZE) if 0 < position < end else b""
    if len(header_bytes) < LOG_OVERHEAD + LEGACY_SIZE_MIN:
        return False
    try:
        header = read_entry_header(header_bytes.ljust(HEADER_SIZE, b"\0"))
    except CorruptRecordError:
        return False
    return header.base_offset >= 0 and header.size_bytes <= end - position


def _is_blank(file: File, position: int, end: int) -> bool:
    """Whether there is nothing but zeros up to `end`, as after a crash of the machine."""
    while position < end:
        chunk = file.read_at(position, min(CHUNK_BYTES, end - position))
        if chunk.strip(b"\0"):
            return False
        if not chunk:
            break
        position += len(chunk)
    return True
