"""Delayed batches: records that lie in their partition's log until their time has come.

A delayed batch is a control batch, so that whoever meets one does not take it for data, but it has
the producer id, epoch, first sequence number, offsets and transactional bit of the batch that its
producer sent: to whoever keeps track of producers and transactions it is that batch. Its own times
are those of the append. It is never compressed as a whole, so that one record can be read without
the others. Each of its records is what became of one that was sent:

    key     int16 version 0, int16 type, int8 kind, int8 codec of the value,
            int64 original: the offset that names the message, -1 if that is this record's own
            int64 due       when it is to be delivered, in ms
            int64 sent      the time that its sender gave it
            int64 expires   from when on it is not delivered any more, -1 if there is no such time
            and to the end the id that its sender gave it, if it did
    value   the record as it was sent, in the format of records, alone and from offset 0 on;
            nothing, if the record only changes what becomes of another

The first record of many has a header `places`: where every 16th record begins, in bytes behind the
batch's header, as uint32. So one record of ten thousand is read with three small reads.

What waits is delivered as a copy at the end of the log, an ordinary record in a batch of the
producer `DELIVERY_PRODUCER_ID`, which no client can be. Its timestamp is the due time, and its last
headers say where it comes from and what its place in the order is. One that comes much too late,
after an outage say, has the time of the append, or retention might take it before anybody reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from headwater.wire.records.batch import assemble_batch, decode_batch
from headwater.wire.records.batch_header import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_batch_header,
)
from headwater.wire.records.compression import Compression, compress, compression_of, decompress
from headwater.wire.records.control import ControlType
from headwater.wire.records.errors import CorruptRecordError, InvalidRecordError
from headwater.wire.records.record import Buffer, Record
from headwater.wire.records.record_section import encode_section, read_records
from headwater.wire.records.varint import VARLONG_BYTES_MAX, read_raw_varint

#: Who writes the copies. No producer is ever given this id, and Produce refuses it.
DELIVERY_PRODUCER_ID: Final = 2**63 - 1
DELIVERY_PRODUCER_EPOCH: Final = 0

#: The headers by which a record asks for a delay, and what else it may say.
DELAY_HEADER: Final = "headwater-delay"
DELIVER_AT_HEADER: Final = "headwater-deliver-at"
DELAY_ID_HEADER: Final = "headwater-delay-id"
EXPIRE_AT_HEADER: Final = "headwater-expire-at"

#: The headers of a delivered record, behind those that were sent.
SENT_AT_HEADER: Final = "headwater-sent-at"
DELAYED_OFFSET_HEADER: Final = "headwater-delayed-offset"
ORDER_HEADER: Final = "headwater-order"

#: A copy that is appended so much later than it was due counts as of then.
LATE_MS: Final = 60_000

#: An original that is the record itself, a time that there is none of.
NONE: Final = -1

#: The places of so many records share an entry.
PLACES_STEP: Final = 16
_PLACES: Final = "places"
#: The header of a batch, and of its first record all but the value.
_START_BYTES: Final = 1024

_VERSION: Final = 0
_KEY: Final = struct.Struct(">hhbbqqqq")
#: Compressing less than this for itself gains nothing.
_COMPRESSED_BYTES_MIN: Final = 512
#: What reads one record that stands alone.
_ALONE: Final = BatchHeader(0, 0, -1, 2, 0, 0, 0, 0, 0, NO_PRODUCER_ID, -1, NO_SEQUENCE, 1)


class DelayedKind(IntEnum):
    """What a record of a delayed batch is about."""

    #: A message that waits; where `original` names another offset, it replaces what waits there.
    MESSAGE = 0
    #: The message `original`, or all of the sender's id, shall not be delivered.
    CANCEL = 1
    #: The same shall be delivered when this is due.
    RESCHEDULE = 2


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


class DelayedRecord(NamedTuple):
    """One record of a delayed batch."""

    offset: int
    kind: DelayedKind
    original: int
    due_ms: int
    sent_ms: int
    expires_ms: int
    sender_id: bytes
    codec: Compression
    value: bytes

    @property
    def id_offset(self) -> int:
        """The offset that names the message."""
        return self.offset if self.original == NONE else self.original

    def record(self) -> Record:
        """The record as it was sent, but for its offset, which is this one's."""
        alone = self.value
        if self.codec is not Compression.NONE:
            alone = decompress(self.codec, alone)
        records, _ = read_records(alone, 0, 1, _ALONE)
        _, _, key, value, headers = records[0]
        return Record(self.offset, self.sent_ms, key, value, headers)


def delayed_message(
    record: Record,
    due_ms: int,
    *,
    expires_ms: int = NONE,
    sender_id: bytes = b"",
    codec: Compression = Compression.NONE,
) -> DelayedRecord:
    """What becomes of a record that was sent; `codec` is that of its batch."""
    alone = encode_section((record._replace(offset=0, timestamp=0),), 0, 0)
    value = alone
    if codec is not Compression.NONE:
        value = compress(codec, alone) if len(alone) >= _COMPRESSED_BYTES_MIN else alone
        if len(value) >= len(alone):
            codec, value = Compression.NONE, alone
    return DelayedRecord(
        record.offset,
        DelayedKind.MESSAGE,
        NONE,
        due_ms,
        record.timestamp,
        expires_ms,
        sender_id,
        codec,
        value,
    )


def delayed_change(
    offset: int,
    kind: DelayedKind,
    *,
    original: int = NONE,
    sender_id: bytes = b"",
    due_ms: int = NONE,
) -> DelayedRecord:
    """A cancellation or another due time, for what an offset or a sender's id names."""
    return DelayedRecord(
        offset, kind, original, due_ms, NONE, NONE, sender_id, Compression.NONE, b""
    )


def encode_delayed_batch(
    records: Sequence[DelayedRecord],
    *,
    append_ms: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytes:
    """A batch of records whose offsets count from the first one's; it needs one at least."""
    base_offset = records[0].offset
    stored = [_stored(each, append_ms) for each in records]
    parts = [encode_section((each,), base_offset, append_ms) for each in stored]
    count = len(parts)
    if count > PLACES_STEP:
        parts[0] = _with_places(stored[0], parts)
    section = b"".join(parts)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(section),
        leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=CONTROL_BIT | (TRANSACTIONAL_BIT if transactional else 0),
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=append_ms,
        max_timestamp=append_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return assemble_batch(header, section)


def _stored(each: DelayedRecord, append_ms: int) -> Record:
    key = _KEY.pack(
        _VERSION,
        ControlType.DELAYED,
        each.kind,
        each.codec,
        each.original,
        each.due_ms,
        each.sent_ms,
        each.expires_ms,
    )
    return Record(each.offset, append_ms, key + each.sender_id, each.value)


def _with_places(first: Record, parts: list[bytes]) -> bytes:
    """The first record of a batch, encoded, with the places of others in a header."""
    step_count = (len(parts) - 1) // PLACES_STEP
    room = bytes(4 * step_count)
    first = first._replace(headers=((_PLACES, room),))
    size = len(encode_section((first,), first.offset, first.timestamp))
    ends = list(accumulate(map(len, parts[1:]), initial=size))
    # The record number n, which is not the first, begins where the one in front of it ends.
    places = [ends[number - 1] for number in range(PLACES_STEP, len(parts), PLACES_STEP)]
    packed = struct.pack(f">{step_count}I", *places)
    first = first._replace(headers=((_PLACES, packed),))
    return encode_section((first,), first.offset, first.timestamp)


def decode_delayed_batch(
    buffer: Buffer, position: int = 0, *, check_crc: bool = True
) -> list[DelayedRecord]:
    """The records of the delayed batch at `position`; `InvalidRecordError` if it is none."""
    return [_read(record) for record in decode_batch(buffer, position, check_crc=check_crc)]


#: Reads so many bytes from a position of a batch, fewer where the file ends.
ReadAt: TypeAlias = Callable[[int, int], bytes]


class DelayedBatchReader:
    """Reads single records of one delayed batch, and no other whole.

    What was read for one record is kept for the next, which is often its neighbour. The batch's
    checksum is not looked at.
    """

    def __init__(self, read_at: ReadAt) -> None:
        """`InvalidRecordError` if it is no delayed batch that `read_at` reads."""
        self._read_at = read_at
        self._start = read_at(0, _START_BYTES)
        self._header = read_batch_header(self._start)
        if not self._header.is_delayed:
            raise InvalidRecordError("There is no delayed batch where one was expected.")
        self._places_at: int | None = None
        self._step = -1
        self._chunk = b""

    def read(self, offset: int) -> DelayedRecord:
        """The record at an offset; `InvalidRecordError` if there is none."""
        number = offset - self._header.base_offset
        if not 0 <= number < self._header.record_count:
            raise InvalidRecordError(f"There is no delayed record at offset {offset}.")
        try:
            chunk, at = self._chunk_of(number // PLACES_STEP), 0
            for _ in range(number % PLACES_STEP):
                at = _record_end(chunk, at)
            alone = chunk[at : _record_end(chunk, at)]
            records, _ = read_records(alone, 0, 1, self._header)
        except (IndexError, CorruptRecordError):
            raise InvalidRecordError(f"The delayed record at offset {offset} is damaged.") from None
        if records[0].offset != offset:
            raise InvalidRecordError(f"There is no delayed record at offset {offset}.")
        return _read(records[0])

    def _chunk_of(self, step: int) -> bytes:
        """The records that share an entry of the table."""
        if step == self._step:
            return self._chunk
        position, end = HEADER_SIZE, self._header.size_bytes
        has_next = (step + 1) * PLACES_STEP < self._header.record_count
        if step > 0 or has_next:
            if self._places_at is None:
                self._places_at = _find_places(self._start, self._read_at)
            packed = self._read_at(self._places_at + 4 * max(step - 1, 0), 8)
            first, second = int.from_bytes(packed[:4], "big"), int.from_bytes(packed[4:], "big")
            if step > 0:
                position += first
            if has_next:
                end = HEADER_SIZE + (second if step > 0 else first)
        self._chunk = (
            self._start[position:end]
            if end <= len(self._start)
            else self._read_at(position, end - position)
        )
        self._step = step
        return self._chunk


def _record_end(chunk: bytes, at: int) -> int:
    raw = chunk[at]
    if raw < 0x80:
        return at + 1 + (raw >> 1)
    raw, position = read_raw_varint(chunk, at)
    return position + (raw >> 1)


def _find_places(start: bytes, read_at: ReadAt) -> int:
    """Where in a batch the table of places begins: behind the value of its first record."""
    _, position = read_raw_varint(start, HEADER_SIZE)
    position += 1  # Its attributes.
    for _ in range(2):  # Its time and its offset.
        _, position = read_raw_varint(start, position, VARLONG_BYTES_MAX)
    for _ in range(2):  # Its key, which is short, and its value, which may not be.
        raw, position = read_raw_varint(start, position)
        position += raw >> 1
    rest = read_at(position, 32)
    _, at = read_raw_varint(rest, 0)  # The number of headers.
    raw, at = read_raw_varint(rest, at)
    at += raw >> 1
    _, at = read_raw_varint(rest, at)
    return position + at


def check_is_delayed(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise `InvalidRecordError` unless the batch at `position` begins as a delayed one does."""
    batch = bytes(memoryview(buffer)[position : position + header.size_bytes])
    records, _ = read_records(batch, HEADER_SIZE, 1, header)
    _read(records[0])


def _read(record: Record) -> DelayedRecord:
    key, value = record.key, record.value
    if key is None or value is None or len(key) < _KEY.size:
        raise InvalidRecordError(
            f"The control record at offset {record.offset} is of no type that is known here."
        )
    version, code, kind, codec, original, due_ms, sent_ms, expires_ms = _KEY.unpack_from(key)
    if code != ControlType.DELAYED or version < 0:
        raise InvalidRecordError(
            f"The control record at offset {record.offset} is of type {code} "
            f"in version {version}, where a delayed one was expected."
        )
    try:
        kind = DelayedKind(kind)
    except ValueError:
        raise InvalidRecordError(
            f"The delayed record at offset {record.offset} is of kind {kind}."
        ) from None
    return DelayedRecord(
        record.offset,
        kind,
        original,
        due_ms,
        sent_ms,
        expires_ms,
        key[_KEY.size :],
        compression_of(codec),
        value,
    )


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
) -> bytes:
    """The batch of copies that delivers messages, in their order.

    Its base timestamp is when the last of them was due, which is all that a broker has to know of
    how far deliveries are.
    """
    base_timestamp = deliveries[-1].key.due_ms
    records = [
        _copy(number, key, message, append_ms) for number, (key, message) in enumerate(deliveries)
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


def _copy(number: int, key: OrderKey, message: DelayedRecord, append_ms: int) -> Record:
    sent = message.record()
    is_late = append_ms - key.due_ms > LATE_MS
    return Record(
        number,
        append_ms if is_late else key.due_ms,
        sent.key,
        sent.value,
        (
            *sent.headers,
            (SENT_AT_HEADER, str(message.sent_ms).encode()),
            (DELAYED_OFFSET_HEADER, str(message.id_offset).encode()),
            (ORDER_HEADER, f"{key.due_ms}/{key.armed_offset}/{key.offset}".encode()),
        ),
    )


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
