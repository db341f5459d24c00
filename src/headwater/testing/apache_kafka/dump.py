"""What Apache Kafka's log dumper says, as values.

The dumper writes for people. Each line is a run of `name: value` pairs, and which pairs tells what
the line is: a batch, a record below it (with `--deep-iteration` or `--print-data-log`), an entry of
an offset, time or transaction index, or a producer in a snapshot.

It finds faults without failing: it mentions them at the end, in several wordings, some of them on
standard error. So the rule here is the reverse one: **every line that is not understood is a
complaint**, and so is every batch that is not valid. `Dump.complaints` empty means that Apache
Kafka has nothing to say against the files.

Keys and payloads are printed as text. Their sizes, which are printed too, tell where they end, so
line breaks in them do no harm. That only works for UTF-8; compare other data by size and checksum.
"""

import re
from collections.abc import Mapping, Sequence

from headwater.testing.apache_kafka.dump_values import (
    AbortedTransactionEntry,
    Dump,
    DumpedBatch,
    DumpedFile,
    DumpedRecord,
    OffsetIndexEntry,
    ProducerSnapshotEntry,
    TimeIndexEntry,
)

# Stands alone on the line between what the dumper reported and what it wrote as errors.
ERRORS_FOLLOW = "-- standard error --"

_INTEGER = r"(-?\d+)"
_BATCH_TAIL = (
    r"position: (?P<position>\d+) (?P<timestamp_type>\w+): (?P<max_timestamp>-?\d+) "
    r"size: (?P<size>\d+) magic: (?P<magic>\d+) compresscodec: (?P<compression>\w+) "
    r"crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)"
)
_BATCH = re.compile(
    r"baseOffset: (?P<base_offset>-?\d+) lastOffset: (?P<last_offset>-?\d+) "
    r"count: (?P<count>-?\d+) "
    r"baseSequence: (?P<base_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"partitionLeaderEpoch: (?P<leader_epoch>-?\d+) "
    r"isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+) "
    r"deleteHorizonMs: OptionalLong(?:\.empty|\[(?P<horizon>\d+)\]) " + _BATCH_TAIL
)
# Before magic 2 a batch is one message, which may wrap others, and has fewer fields.
_LEGACY_BATCH = re.compile(r"offset: (?P<last_offset>\d+) " + _BATCH_TAIL)
_ABSENT_BEFORE_MAGIC_2 = {
    "base_offset": "-1",
    "count": "-1",
    "base_sequence": "-1",
    "last_sequence": "-1",
    "producer_id": "-1",
    "producer_epoch": "-1",
    "leader_epoch": "-1",
    "transactional": "false",
    "control": "false",
    "horizon": None,
}
_RECORD = re.compile(
    rf"\| offset: {_INTEGER} (\w+): {_INTEGER} keySize: {_INTEGER} valueSize: {_INTEGER}"
    rf"(?: sequence: {_INTEGER} headerKeys: \[(.*?)\])?"
    r"(?: isValid: \w+ crc: -?\d+\}?)?"
    rf"(?: endTxnMarker: (\w+) coordinatorEpoch: {_INTEGER}"
    r"| (?:controlType: )?(LeaderChange|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters"
    r"|\w+\(-?\d+\)).*)?"
    r"(?= key: | payload: |$)"
)
_OFFSET_ENTRY = re.compile(rf"offset: {_INTEGER} position: {_INTEGER}")
_TIME_ENTRY = re.compile(rf"timestamp: {_INTEGER} offset: {_INTEGER}")
_ABORTED = re.compile(
    rf"version: {_INTEGER} producerId: {_INTEGER} firstOffset: {_INTEGER} "
    rf"lastOffset: {_INTEGER} lastStableOffset: {_INTEGER}"
)
_PRODUCER = re.compile(
    rf"producerId: {_INTEGER} producerEpoch: {_INTEGER} coordinatorEpoch: {_INTEGER} "
    rf"currentTxnFirstOffset: (?:OptionalLong)?(?:\.empty|\[?{_INTEGER}\]?) "
    rf"lastTimestamp: {_INTEGER}"
    rf"(?: firstSequence: {_INTEGER} lastSequence: {_INTEGER} lastOffset: {_INTEGER} "
    rf"offsetDelta: {_INTEGER} timestamp: {_INTEGER})?"
)
# Where text in a record ends at the latest, whatever the sizes say.
_AFTER_RECORD = re.compile(
    r"\| offset: \d+ \w+: |baseOffset: \d+ lastOffset: |offset: \d+ position: \d+ "
    r"|Dumping |Found \d+ invalid bytes at the end of "
)
_REMARK = re.compile(
    r"Log starting offset: \d+|KRaft bootstrap snapshot|Snapshot end offset: \d+, epoch: \d+"
    r"|.* is empty\.|.* passed sanity check\.|"
)


# Of every segment but a log's first.
_FALSE_GAP = re.compile(r"^  -1 is followed by \d+\n", re.M)
_WITHOUT_GAPS = re.compile(r"^Non-consecutive offsets in .*\n(?! )", re.M)


def without_false_gaps(errors: str) -> str:
    """Errors without what the dumper says since it was written anew in Java, for Kafka 4.3.

    It takes the first offset of a segment for one that follows -1.
    """
    return _WITHOUT_GAPS.sub("", _FALSE_GAP.sub("", errors))


def parse_dump(text: str) -> Dump:
    """The values in what `dump_log` returned."""
    report, _, errors = text.partition(f"{ERRORS_FOLLOW}\n")
    dump = Dump()
    # Only "\n" ends a line of the dumper's; others may stand in a payload.
    lines = report.removesuffix("\n").split("\n")
    lines.reverse()
    while lines:
        line = lines.pop()
        if line.startswith("Dumping "):
            dump.files.append(DumpedFile(line.removeprefix("Dumping ")))
        elif not _REMARK.fullmatch(line) and not (
            dump.files and _add_to_file(dump.files[-1], line, lines)
        ):
            _complain(dump, line)
    for line in errors.splitlines():
        _complain(dump, line)
    for file in dump.files:
        for batch in file.batches:
            if not batch.is_valid:
                _complain(dump, f"isvalid: false at position {batch.position} of {file.path}")
    return dump


def _complain(dump: Dump, line: str) -> None:
    # The details of a complaint, or of a stack trace, are indented below it.
    if dump.complaints and line[:1].isspace():
        dump.complaints[-1] += "\n" + line
    else:
        dump.complaints.append(line)


def _add_to_file(file: DumpedFile, line: str, following: list[str]) -> bool:
    """Put what `line` says into `file`, and what it goes on with; whether it was understood.

    `following` has the next line last.
    """
    if match := _RECORD.match(line):
        if file.batches:
            file.batches[-1].records.append(_record(match, line[match.end() :], following))
        return bool(file.batches)
    if match := _BATCH.fullmatch(line):
        file.batches.append(_batch(match.groupdict()))
    elif match := _LEGACY_BATCH.fullmatch(line):
        file.batches.append(_batch(_ABSENT_BEFORE_MAGIC_2 | match.groupdict()))
    elif match := _OFFSET_ENTRY.fullmatch(line):
        file.offset_entries.append(OffsetIndexEntry(*map(int, match.groups())))
    elif match := _TIME_ENTRY.fullmatch(line):
        file.time_entries.append(TimeIndexEntry(*map(int, match.groups())))
    elif match := _ABORTED.fullmatch(line):
        file.aborted_transactions.append(AbortedTransactionEntry(*map(int, match.groups())))
    elif match := _PRODUCER.fullmatch(line):
        file.producers.append(_producer(match.groups()))
    else:
        return False
    return True


def _batch(fields: Mapping[str, str | None]) -> DumpedBatch:
    def number(name: str) -> int:
        return int(fields[name] or 0)

    horizon = fields["horizon"]
    return DumpedBatch(
        base_offset=number("base_offset"),
        last_offset=number("last_offset"),
        count=number("count"),
        base_sequence=number("base_sequence"),
        last_sequence=number("last_sequence"),
        producer_id=number("producer_id"),
        producer_epoch=number("producer_epoch"),
        partition_leader_epoch=number("leader_epoch"),
        is_transactional=fields["transactional"] == "true",
        is_control=fields["control"] == "true",
        delete_horizon_ms=None if horizon is None else int(horizon),
        position=number("position"),
        timestamp_type=fields["timestamp_type"] or "",
        max_timestamp=number("max_timestamp"),
        size_bytes=number("size"),
        magic=number("magic"),
        compression=fields["compression"] or "",
        crc=number("crc"),
        is_valid=fields["valid"] == "true",
    )


def _record(match: re.Match[str], rest: str, following: list[str]) -> DumpedRecord:
    offset, timestamp_type, timestamp, key_size, value_size, sequence, *others = match.groups()
    header_keys, end_marker, coordinator_epoch, control_type = others
    key, rest = _take(" key: ", int(key_size), rest, following)
    payload, _ = _take(" payload: ", int(value_size), rest, following)
    return DumpedRecord(
        offset=int(offset),
        timestamp_type=timestamp_type,
        timestamp=int(timestamp),
        key_size_bytes=int(key_size),
        value_size_bytes=int(value_size),
        sequence=-1 if sequence is None else int(sequence),
        header_keys=tuple(header_keys.split(",")) if header_keys else (),
        key=key,
        payload=payload,
        marker=end_marker or control_type,
        coordinator_epoch=None if coordinator_epoch is None else int(coordinator_epoch),
    )


def _take(label: str, size_bytes: int, rest: str, following: list[str]) -> tuple[str | None, str]:
    """The text after `label`, of the given size, and what comes after it."""
    if not rest.startswith(label):
        return None, rest
    text = rest.removeprefix(label)
    while len(text.encode()) < size_bytes and following:
        if _AFTER_RECORD.match(following[-1]):
            break
        text += "\n" + following.pop()
    encoded = text.encode()
    after = encoded[size_bytes:].decode(errors="replace")
    if not after or after.startswith(" payload: "):
        return encoded[:size_bytes].decode(), after
    # A decoder's rendering, or bytes that are no UTF-8, have another size than what they stand for.
    text, label_after, after = text.partition(" payload: ")
    return text, label_after + after


def _producer(fields: Sequence[str | None]) -> ProducerSnapshotEntry:
    numbers = [None if field is None else int(field) for field in fields]
    producer_id, epoch, coordinator_epoch, first_offset, last_timestamp, *batch = numbers
    return ProducerSnapshotEntry(
        producer_id or 0,
        epoch or 0,
        coordinator_epoch or 0,
        first_offset,
        last_timestamp or 0,
        *batch,
    )
