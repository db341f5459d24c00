"""The batches and records of a log file, read a chunk at a time.

Damage is reported where it stands, and the walk goes on behind it where a batch can be found there.
A batch whose checksum fails is shown, for its header may well be sound, but not looked into.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.storage.disk.files import File
from headwater.storage.inspection.damage_scan import Damage, describe_record_error, scan_past_damage
from headwater.storage.inspection.dump.items import (
    BatchItem,
    ChecksumFault,
    DumpItem,
    Fault,
    InvalidTail,
    OffsetGap,
    RecordItem,
)
from headwater.storage.segments.batch_scan import ScannedBatch, validate_entry
from headwater.wire.delayed.delayed_batch import DelayedKind, decode_delayed_batch
from headwater.wire.records import (
    BatchHeader,
    ControlType,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    UnsupportedCompressionError,
    decode_batch,
    decode_control_record,
    read_control_type,
)

RECORD_ERRORS = (CorruptRecordError, InvalidRecordError, UnsupportedCompressionError)


def dump_log(
    file: File, path: str, *, deep: bool, max_bytes: int | None = None
) -> Iterator[DumpItem]:
    """Every batch, with its records if `deep`; with `max_bytes` only those that end within them."""
    size = file.size()
    end = size if max_bytes is None else min(size, max_bytes)
    last_offset = -1
    for found in scan_past_damage(file, 0, end):
        if isinstance(found, Damage):
            if found.is_torn_tail and end < size:
                return  # The limit cut the batch, not damage.
            reaches_end = found.position + found.size == size
            if reaches_end:
                yield InvalidTail(path.rpartition("/")[2], found.size)
            yield Fault(path, _describe(found, reaches_end), found.position)
            continue
        fault = _fault_of(path, found)
        crc_is_valid = not isinstance(fault, ChecksumFault)
        yield BatchItem(found.position, found.header, crc_is_valid)
        if fault is not None:
            yield fault
        elif deep:
            for item in _records(path, found):
                if isinstance(item, RecordItem):
                    offset = item.record.offset
                    if last_offset >= 0 and offset != last_offset + 1:
                        yield OffsetGap(path, last_offset, offset)
                    last_offset = offset
                yield item


def _describe(damage: Damage, reaches_end: bool) -> str:
    if reaches_end:
        return f"the last {damage.size} bytes hold no batches: {damage.reason}"
    return f"{damage.size} bytes hold no batch: {damage.reason}"


def _fault_of(path: str, batch: ScannedBatch) -> Fault | None:
    try:
        validate_entry(batch.data, 0, batch.header)
    except CorruptRecordError:
        sentence = f"the checksum of the batch at offset {batch.header.base_offset} fails"
        return ChecksumFault(path, sentence, batch.position)
    except RECORD_ERRORS as error:
        return Fault(path, describe_record_error(error), batch.position)
    return None


def _records(path: str, batch: ScannedBatch) -> Iterator[RecordItem | Fault]:
    header = batch.header
    try:
        records = decode_batch(batch.data, check_crc=False)
        # A broker's own records are few: their types are looked at before any is shown.
        items = None
        if header.is_control:
            items = [_item(header, record) for record in records]
            if items and items[0].control_type is ControlType.DELAYED:
                items = _delayed_items(batch, records)
    except RECORD_ERRORS as error:
        sentence = f"the batch's records cannot be read: {describe_record_error(error)}"
        yield Fault(path, sentence, batch.position)
        return
    if items is not None:
        yield from items
        return
    for record in records:
        yield RecordItem(header, record)


def _delayed_items(batch: ScannedBatch, records: list[Record]) -> list[RecordItem]:
    decoded = decode_delayed_batch(batch.data, check_crc=False)
    return [
        RecordItem(
            batch.header,
            record,
            ControlType.DELAYED,
            delayed=each,
            sent=each.record() if each.kind is DelayedKind.MESSAGE else None,
        )
        for record, each in zip(records, decoded, strict=True)
    ]


def _item(header: BatchHeader, record: Record) -> RecordItem:
    control_type = read_control_type(record)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        return RecordItem(header, record, control_type, decode_control_record(record))
    return RecordItem(header, record, control_type)
