"""What a leader looks for in the records of a batch, and what their header should have said.

A checksum says that bytes arrived as they were sent, not that they make sense. A batch whose
records cannot be read stops every consumer that comes to it, for as long as it is kept; and a
header that gives its records another time makes retention drop them too early, or never. So
`records.validation` says how far a producer's batch is looked into before it is acknowledged:

    header     nothing but the header, which must agree with itself
    structure  uncompressed records are walked: their lengths, count, numbers and latest time
    full       compressed ones are decompressed and walked as well, which is what Kafka does

Where records have to be looked into for another reason (keys of a compacted topic, a bound on old
timestamps, another codec), they are checked in full on the way.

What a producer is told follows Kafka's LogValidator. INVALID_RECORD, after which clients do not try
again, says that the records contradict their header, themselves or a rule: they end in the middle
of one, or behind the last that is counted, their lengths do not fit, a key is missing. If it is
about some records of the batch, the answer has their numbers. INVALID_TIMESTAMP is for times out of
the topic's bounds, CORRUPT_MESSAGE for a wrong checksum; and for a stream that does not decompress,
where Kafka says UNKNOWN_SERVER_ERROR. Kafka also takes some batches that consumers fail at, and
Headwater does not: offset deltas other than 0, 1, 2, or compressed records of a wrong length.

A largest timestamp that is wrong is no reason to refuse a batch: it is corrected, as in Kafka. Of
records that nobody looks into, it is not known. But it cannot lie before the base timestamp, which
is the first record's; and 0 after a base of -1 is what librdkafka writes over records without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from headwater.base.errors import KafkaError
from headwater.storage.errors import InvalidTimestampError
from headwater.storage.log_config import LogConfig
from headwater.wire.records import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    CorruptRecordError,
    InvalidRecordError,
    Record,
    TimestampType,
    read_section,
)
from headwater.wire.records.batch_header import TIMESTAMP_TYPE_BIT
from headwater.wire.records.record_section import section_records
from headwater.wire.records.record_walk import walk_records

_OFFSET_DELTA_MAX = 0x7FFF_FFFF
#: A producer is told the numbers of so many wrong records at most.
_NUMBERS_TOLD_MAX = 1000


@dataclass(slots=True)
class _Findings:
    """What the records of one batch turned out to be, gathered while they pass."""

    latest: int = NO_TIMESTAMP
    keyless_count: int = 0
    keyless: list[int] = field(default_factory=list)
    too_old: list[int] = field(default_factory=list)


def check_records(
    data: Buffer,
    position: int,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    max_decompressed_bytes: int,
) -> int:
    """The largest timestamp that the batch at `position` should claim; an error if it is wrong."""
    latest = header.max_timestamp
    found: _Findings | None = None
    if not header.is_control:
        latest = plausible_max_timestamp(header.base_timestamp, latest)
        if config.reads_records or not _agrees(
            data, position, header, config, latest, max_decompressed_bytes
        ):
            records = producer_records(data, position, header, max_decompressed_bytes)
            found = _findings(records, now_ms - config.message_timestamp_before_max_ms)
            latest = found.latest
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        _check_not_ahead(data, position, header, latest, config, now_ms, max_decompressed_bytes)
        if found is not None and found.too_old:
            raise InvalidTimestampError(
                f"Record {found.too_old[0]} of the batch lies more than "
                "message.timestamp.before.max.ms="
                f"{config.message_timestamp_before_max_ms} behind {now_ms}.",
                record_numbers=tuple(found.too_old),
            )
    if found is not None and found.keyless and config.is_compacted:
        raise InvalidRecordError(
            f"A compacted topic takes no record without a key: {found.keyless_count} of the "
            f"batch's {header.record_count} have none.",
            record_numbers=tuple(found.keyless),
        )
    return latest


def plausible_max_timestamp(base_timestamp: int, max_timestamp: int) -> int:
    """What to make of a claim, as far as that can be told without the records."""
    if base_timestamp < 0 and max_timestamp <= 0:
        return NO_TIMESTAMP
    return max(base_timestamp, max_timestamp)


def _agrees(
    data: Buffer,
    position: int,
    header: BatchHeader,
    config: LogConfig,
    claimed: int,
    max_decompressed_bytes: int,
) -> bool:
    """Whether all is well with records that only their structure matters of."""
    compression = header.compression
    section: Buffer
    if compression is Compression.NONE:
        if not config.walks_records:
            return True
        section = memoryview(data)[position + HEADER_SIZE : position + header.size_bytes]
    else:
        changes_codec = config.compression is not None and config.compression is not compression
        if not config.walks_compressed_records and not (config.walks_records and changes_codec):
            return True
        section = read_section(data, position, header, max_decompressed_bytes)
    by_create_time = config.message_timestamp_type is TimestampType.CREATE_TIME
    return walk_records(
        section, 0, header.record_count, header.base_timestamp, claimed if by_create_time else None
    )


def producer_records(
    data: Buffer, position: int, header: BatchHeader, max_decompressed_bytes: int
) -> Iterator[Record]:
    """The records of a producer's batch by their own times; an error if they are not in order."""
    section = read_section(data, position, header, max_decompressed_bytes)
    as_counted_from_0 = header._replace(
        base_offset=0,
        last_offset_delta=_OFFSET_DELTA_MAX,
        attributes=header.attributes & ~TIMESTAMP_TYPE_BIT,
    )
    misnumbered: dict[int, int] = {}
    try:
        for number, record in enumerate(section_records(section, as_counted_from_0)):
            if record.offset != number and len(misnumbered) < _NUMBERS_TOLD_MAX:
                misnumbered[number] = record.offset
            yield record
    except CorruptRecordError as error:
        # The checksum was right, so this is how the producer made it: it need not try again.
        raise InvalidRecordError(str(error)) from None
    if misnumbered:
        first = next(iter(misnumbered))
        raise InvalidRecordError(
            f"Records are numbered from 0 on, but record {first} of the batch has the offset delta "
            f"{misnumbered[first]}.",
            record_numbers=tuple(misnumbered),
        )


def _findings(records: Iterator[Record], oldest_ms: int) -> _Findings:
    found = _Findings()
    for number, record in enumerate(records):
        timestamp = record.timestamp
        found.latest = max(found.latest, timestamp)
        if 0 <= timestamp < oldest_ms and len(found.too_old) < _NUMBERS_TOLD_MAX:
            found.too_old.append(number)
        if record.key is None:
            found.keyless_count += 1
            if found.keyless_count <= _NUMBERS_TOLD_MAX:
                found.keyless.append(number)
    return found


def _check_not_ahead(
    data: Buffer,
    position: int,
    header: BatchHeader,
    latest: int,
    config: LogConfig,
    now_ms: int,
    max_decompressed_bytes: int,
) -> None:
    after_max_ms = config.message_timestamp_after_max_ms
    if latest - now_ms > after_max_ms:
        records = producer_records(data, position, header, max_decompressed_bytes)
        raise InvalidTimestampError(
            f"Timestamp {latest} lies more than message.timestamp.after.max.ms="
            f"{after_max_ms} ahead of {now_ms}.",
            record_numbers=_numbers_behind(records, now_ms + after_max_ms),
        )


def _numbers_behind(records: Iterator[Record], latest_ms: int) -> tuple[int, ...]:
    """Which records have a later time; nothing, if the batch cannot be read."""
    numbers = (number for number, each in enumerate(records) if each.timestamp > latest_ms)
    try:
        return tuple(islice(numbers, _NUMBERS_TOLD_MAX))
    except KafkaError:
        return ()
