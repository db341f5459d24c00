"""Reads the rows of `__audit` that tell of some places, from when they were written on.

All rows of one partition's broker tier are in one partition of `__audit`, and all of one group's in
one. They are read forwards in time, and no further than until all is told that was asked for, or
until so many bytes are read. Rows of other topics are passed over without being decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from headwater.audit.rows import AUDIT_TOPIC, Row, decode_row
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin import TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError
from headwater.delivery.trace.audit_moments import PlaceMoments, moments_of
from headwater.delivery.trace.batch_reader import SCAN_BYTES, BatchReader, BatchTest, mentions
from headwater.wire.records import decode_batch

#: Clocks of producers and brokers differ, and a record's time is when it was made.
MARGIN_MS: Final = 60_000
#: A bound for all partitions of `__audit` together.
AUDIT_BYTES_MAX: Final = 64 << 20


@dataclass(slots=True)
class AuditRows:
    """What was read."""

    #: Whether there is an `__audit`.
    is_there: bool
    rows: list[Row] = field(default_factory=list)
    #: Whether all was read that there is, and nothing was left out for being too much.
    is_complete: bool = True

    def moments(self, place: MessageId) -> PlaceMoments:
        return moments_of(self.rows, place.topic, place.partition, place.offset)


async def read_audit(
    connection: ClusterConnection,
    topics: Collection[str],
    from_ms: int,
    is_enough: Callable[[AuditRows], bool],
    max_bytes: int = AUDIT_BYTES_MAX,
) -> AuditRows:
    """The rows of these topics that were published from then on; `is_enough` may end it."""
    outcome = (await TopicOperations(connection).describe_topics([AUDIT_TOPIC]))[AUDIT_TOPIC]
    if isinstance(outcome, UnknownTopicError):
        return AuditRows(is_there=False)
    info = require_all({AUDIT_TOPIC: outcome})[AUDIT_TOPIC]
    reader = BatchReader(connection)
    partitions = [TopicPartition(AUDIT_TOPIC, each.partition) for each in info.partitions]
    ends = {each: bounds.end for each, bounds in (await reader.bounds(partitions)).items()}
    left = {
        each: start
        for each, start in (await reader.starts(partitions, from_ms - MARGIN_MS)).items()
        if start < ends[each]
    }
    found = AuditRows(is_there=True)
    is_wanted = mentions(f'"topic":"{topic}"'.encode() for topic in topics)
    while left:
        read_bytes = await _read_on(reader, left, ends, topics, is_wanted, found)
        max_bytes -= read_bytes
        if left and is_enough(found):
            break
        if left and max_bytes <= 0:
            found.is_complete = False
            break
    return found


async def _read_on(
    reader: BatchReader,
    left: dict[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    topics: Collection[str],
    is_wanted: BatchTest,
    found: AuditRows,
) -> int:
    """One fetch of each partition, so that all of them get on in time at about one pace."""
    read_bytes = 0
    for partition, offset in list(left.items()):
        fetched = await reader.fetch(partition, offset, SCAN_BYTES)
        read_bytes += fetched.size_bytes
        data = memoryview(fetched.buffer)
        for begin, end, header in fetched.visible_batches():
            if not is_wanted(header, data[begin:end]):
                continue
            for record in decode_batch(data[begin:end]):
                value = record.value
                row = None if value is None else decode_row(value)
                if row is not None and row["topic"] in topics:
                    found.rows.append(row)
        left[partition] = fetched.next_offset
        if fetched.next_offset >= ends[partition] or fetched.next_offset <= offset:
            del left[partition]
    return read_bytes
