"""The id by which an audit tells single records apart: who sent it, for which partition, which one.

It stands in the header `headwater-audit`, 29 bytes, big-endian, and stays with the record wherever
it is copied to:

    1 byte    version, 1
    8 bytes   process: drawn at random by whoever sends, for each topic that it writes to
    4 bytes   partition that the record is sent to; -1 if that is not known yet
    8 bytes   number, counted up by 1 from 0 for each process and partition, in the order of sending
    8 bytes   the sender's time for the record, in ms since 1970

A process and a partition are a *stream*: its numbers leave nothing out, so whoever sees some of
them knows which others there were.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

AUDIT_HEADER: Final = "headwater-audit"
#: The partition of ids that were given before the partition was known.
ANY_PARTITION: Final = -1

_VERSION: Final = 1
_FORM: Final = Struct(">BQiqq")
AUDIT_ID_BYTES: Final = _FORM.size


class AuditStream(NamedTuple):
    """What numbers without gaps belong to."""

    process: int
    partition: int

    def __str__(self) -> str:
        partition = "" if self.partition == ANY_PARTITION else f"/{self.partition}"
        return f"{self.process:016x}{partition}"


class AuditId(NamedTuple):
    process: int
    partition: int
    number: int
    time_ms: int

    @property
    def stream(self) -> AuditStream:
        return AuditStream(self.process, self.partition)

    def __str__(self) -> str:
        return f"{self.stream}#{self.number}"

    def encode(self) -> bytes:
        """The header's content."""
        return _FORM.pack(_VERSION, *self)


class TakenNumbers(NamedTuple):
    """Numbers of a stream, from the first on, that nobody else gets."""

    stream: AuditStream
    first: int


def decode_audit_id(content: bytes | memoryview | None) -> AuditId | None:
    """The id of a header's content; None if it is none, or of a later version."""
    if content is None or len(content) != AUDIT_ID_BYTES:
        return None
    version, process, partition, number, time_ms = _FORM.unpack(content)
    if version != _VERSION or number < 0 or partition < ANY_PARTITION:
        return None
    return AuditId(process, partition, number, time_ms)


def audit_id_of(headers: Iterable[tuple[str, bytes | None]]) -> AuditId | None:
    """The id of a record with these headers; None if it has none."""
    for name, content in headers:
        if name == AUDIT_HEADER:
            return decode_audit_id(content)
    return None
