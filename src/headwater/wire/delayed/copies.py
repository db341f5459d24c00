"""Copies: what waited is delivered as an ordinary record at the end of its partition's log.

A batch of copies is of the producer `DELIVERY_PRODUCER_ID`, which no client can be. The timestamp
of a copy is its due time, and its last headers say where it comes from and what its place in the
order is. One that comes much too late, after an outage say, has the time of the append, or
retention might take it before anybody reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.wire.delayed.delayed_batch import DelayedRecord
from headwater.wire.delayed.headers import (
    DELAYED_OFFSET_HEADER,
    ORDER_HEADER,
    ORIGIN_HEADER,
    SENT_AT_HEADER,
)
from headwater.wire.records.batch import assemble_batch
from headwater.wire.records.batch_header import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_SEQUENCE,
    BatchHeader,
)
from headwater.wire.records.compression import Compression, compress
from headwater.wire.records.errors import InvalidRecordError
from headwater.wire.records.record import Header, Record
from headwater.wire.records.record_section import encode_section

#: Who writes the copies. No producer is ever given this id, and Produce refuses it.
DELIVERY_PRODUCER_ID: Final = 2**63 - 1
DELIVERY_PRODUCER_EPOCH: Final = 0

#: A copy that is appended so much later than it was due counts as of then.
LATE_MS: Final = 60_000


class OrderKey(NamedTuple):
    """The place of a message among all that are delivered in its partition.

    Messages are delivered in this order, and the last one's key is the watermark: whatever waits
    has a greater one. That holds because `due_ms` is never below the watermark's at `armed_offset`.
    """

    due_ms: int
    #: The offset of what made the message deliverable: its own, that of the marker which committed
    #: its transaction, or of what moved or rescheduled it.
    armed_offset: int
    #: Where its record lies.
    offset: int


#: In front of every key.
NOTHING_DELIVERED: Final = OrderKey(-1, -1, -1)


class Delivery(NamedTuple):
    """A message whose time has come, and its place in the order."""

    key: OrderKey
    message: DelayedRecord


def encode_deliveries(
    deliveries: Sequence[Delivery],
    *,
    append_ms: int,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    origin: str = "",
) -> bytes:
    """The batch of copies that delivers messages, in their order.

    With `origin`, which is the partition, they say by a header of retries what they are called.

    Its base timestamp is when the last of them was due, which is all that a broker has to know of
    how far deliveries are.
    """
    base_timestamp = deliveries[-1].key.due_ms
    records = [
        _copy(number, key, message, append_ms, origin)
        for number, (key, message) in enumerate(deliveries)
    ]
    section = encode_section(records, 0, base_timestamp)
    if compression is not Compression.NONE:
        section = compress(compression, section, compression_level)
    header = BatchHeader(
        base_offset=0,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section),
        leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=compression,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=DELIVERY_PRODUCER_ID,
        producer_epoch=DELIVERY_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(records),
    )
    return assemble_batch(header, section)


def _copy(
    number: int, key: OrderKey, message: DelayedRecord, append_ms: int, origin: str
) -> Record:
    sent = message.record()
    headers = with_origin(sent.headers, origin, message.id_offset) if origin else sent.headers
    is_late = append_ms - key.due_ms > LATE_MS
    return Record(
        number,
        append_ms if is_late else key.due_ms,
        sent.key,
        sent.value,
        (
            *headers,
            (SENT_AT_HEADER, str(message.sent_ms).encode()),
            (DELAYED_OFFSET_HEADER, str(message.id_offset).encode()),
            (ORDER_HEADER, f"{key.due_ms}/{key.armed_offset}/{key.offset}".encode()),
        ),
    )


def with_origin(headers: tuple[Header, ...], origin: str, offset: int) -> tuple[Header, ...]:
    """The headers of a message that failed, with its name among them.

    Who does not tell where a message was read first has it named by where it waits first.
    """
    if any(name == ORIGIN_HEADER for name, _ in headers):
        return headers
    return (*headers, (ORIGIN_HEADER, f"{origin}@{offset}".encode()))


def read_order_key(copy: Record) -> OrderKey:
    """The place in the order that a delivered record says it has."""
    name, value = copy.headers[-1] if copy.headers else ("", None)
    try:
        if name != ORDER_HEADER or value is None:
            raise ValueError
        due_ms, armed_offset, offset = map(int, value.split(b"/"))
    except ValueError:
        raise InvalidRecordError(
            f"The record at offset {copy.offset} does not say what it is a copy of."
        ) from None
    return OrderKey(due_ms, armed_offset, offset)
