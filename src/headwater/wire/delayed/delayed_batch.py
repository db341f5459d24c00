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
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Final, NamedTuple

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
)
from headwater.wire.records.compression import Compression, compress, compression_of, decompress
from headwater.wire.records.control import ControlType
from headwater.wire.records.errors import InvalidRecordError
from headwater.wire.records.record import Buffer, Record
from headwater.wire.records.record_section import encode_section, read_records

#: An original that is the record itself, a time that there is none of.
NONE: Final = -1

#: When a dead letter is due in its own partition: never, for it leaves it another way.
NEVER_MS: Final = 2**62
#: The latest time at which a message can be due that is to be delivered.
DUE_MS_MAX: Final = NEVER_MS - 1

#: The places of so many records share an entry.
PLACES_STEP: Final = 16
_PLACES: Final = "places"
_VERSION: Final = 0
_KEY: Final = struct.Struct(">hhbbqqqq")
#: What a record has around its key and value: seven fields, most of one byte.
_FRAME_BYTES: Final = 10
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

    @property
    def stored_bytes(self) -> int:
        """How much of its batch it takes, to a few bytes."""
        return _KEY.size + len(self.sender_id) + len(self.value) + _FRAME_BYTES

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
    return [
        read_delayed_record(record)
        for record in decode_batch(buffer, position, check_crc=check_crc)
    ]


def check_is_delayed(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise `InvalidRecordError` unless the batch at `position` begins as a delayed one does."""
    batch = bytes(memoryview(buffer)[position : position + header.size_bytes])
    records, _ = read_records(batch, HEADER_SIZE, 1, header)
    read_delayed_record(records[0])


def read_delayed_record(record: Record) -> DelayedRecord:
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
