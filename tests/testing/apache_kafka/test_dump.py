"""Reading the dumper's report, from reports as the pinned release writes them."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.testing.apache_kafka import (
    AbortedTransactionEntry,
    DumpedBatch,
    DumpedRecord,
    OffsetIndexEntry,
    ProducerSnapshotEntry,
    TimeIndexEntry,
    parse_dump,
)
from headwater.testing.apache_kafka.dump import ERRORS_FOLLOW, without_false_gaps

LOG = "/data/t-0/00000000000000000000.log"
BATCH = (
    "baseOffset: 5 lastOffset: 9 count: 3 baseSequence: 7 lastSequence: 11 producerId: 4000 "
    "producerEpoch: 2 partitionLeaderEpoch: 6 isTransactional: true isControl: false "
    "deleteHorizonMs: OptionalLong.empty position: 120 CreateTime: 1700000000003 size: 192 "
    "magic: 2 compresscodec: zstd crc: 2227233620 isvalid: true"
)
PARSED_BATCH = DumpedBatch(
    base_offset=5,
    last_offset=9,
    count=3,
    base_sequence=7,
    last_sequence=11,
    producer_id=4000,
    producer_epoch=2,
    partition_leader_epoch=6,
    is_transactional=True,
    is_control=False,
    delete_horizon_ms=None,
    position=120,
    timestamp_type="CreateTime",
    max_timestamp=1700000000003,
    size_bytes=192,
    magic=2,
    compression="zstd",
    crc=2227233620,
    is_valid=True,
)
RECORD = (
    "| offset: 5 CreateTime: 1700000000001 keySize: {} valueSize: {} sequence: 7 headerKeys: {}"
)


def report(*lines: str, errors: str = "") -> str:
    return "\n".join((f"Dumping {LOG}", *lines, ERRORS_FOLLOW, errors))


def test_a_batch() -> None:
    dump = parse_dump(report("Log starting offset: 0", BATCH))
    assert dump.file(LOG).batches == [PARSED_BATCH]
    assert dump.complaints == []


def test_a_batch_with_a_delete_horizon() -> None:
    line = BATCH.replace("OptionalLong.empty", "OptionalLong[1700000086400]")
    [batch] = parse_dump(report(line)).files[0].batches
    assert batch.delete_horizon_ms == 1_700_000_086_400


def test_a_batch_of_an_older_format() -> None:
    line = (
        "offset: 9 position: 0 CreateTime: 1700000000003 size: 40 magic: 1 "
        "compresscodec: gzip crc: 12 isvalid: true"
    )
    dump = parse_dump(report(line))
    [batch] = dump.files[0].batches
    assert (batch.last_offset, batch.magic, batch.compression) == (9, 1, "gzip")
    assert batch.base_offset == batch.producer_id == -1
    assert dump.complaints == []


def test_records_with_and_without_key_payload_and_headers() -> None:
    dump = parse_dump(
        report(
            BATCH,
            RECORD.format(-1, -1, "[]"),
            RECORD.format(1, 2, "[a,b]") + " key: k payload: vv",
            RECORD.format(0, -1, "[]") + " key: ",
            RECORD.format(-1, 0, "[]") + " payload: ",
        )
    )
    assert dump.complaints == []
    records = dump.file(LOG).records
    assert [(one.key, one.payload) for one in records] == [
        (None, None),
        ("k", "vv"),
        ("", None),
        (None, ""),
    ]
    assert records[1] == DumpedRecord(
        5, "CreateTime", 1700000000001, 1, 2, 7, ("a", "b"), "k", "vv"
    )


def test_transaction_markers() -> None:
    line = RECORD.format(4, 6, "[]") + " endTxnMarker: ABORT coordinatorEpoch: 3"
    [record] = parse_dump(report(BATCH, line)).files[0].records
    assert (record.marker, record.coordinator_epoch) == ("ABORT", 3)


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(st.characters(codec="utf-8")),
            st.none() | st.text(st.characters(codec="utf-8")),
        ),
        max_size=5,
    )
)
def test_any_text_is_read_back(pairs: list[tuple[str | None, str | None]]) -> None:
    def size(text: str | None) -> int:
        return -1 if text is None else len(text.encode())

    lines = []
    for key, payload in pairs:
        line = RECORD.format(size(key), size(payload), "[]")
        line += "" if key is None else f" key: {key}"
        line += "" if payload is None else f" payload: {payload}"
        lines.append(line)
    dump = parse_dump(report(BATCH, *lines))
    assert [(one.key, one.payload) for one in dump.files[0].records] == pairs
    assert dump.complaints == []


def test_what_a_decoder_renders_has_another_size_than_the_record() -> None:
    short = RECORD.format(20, 300, "[]") + ' key: {"type":"0"} payload: {"version":"4"}'
    long = RECORD.format(2, 2, "[]") + ' key: {"type":"10"} payload: {"version":"40"}'
    dump = parse_dump(report(BATCH, short, long, short))
    assert [one.payload for one in dump.files[0].records] == [
        '{"version":"4"}',
        '{"version":"40"}',
        '{"version":"4"}',
    ]
    assert dump.complaints == []


def test_the_start_of_a_segment_is_no_gap() -> None:
    real = "Non-consecutive offsets in b.log\n  5 is followed by 9\n"
    false = "Non-consecutive offsets in a.log\n  -1 is followed by 26\n"
    both = "Non-consecutive offsets in c.log\n  -1 is followed by 3\n  5 is followed by 9\n"
    assert without_false_gaps(false + real + both) == real + real.replace("b.log", "c.log")
    assert without_false_gaps(real + false) == real
    assert without_false_gaps("") == ""


def test_indexes_and_snapshots() -> None:
    dump = parse_dump(
        "Dumping a.index\noffset: 24 position: 4120\n"
        "Dumping a.timeindex\ntimestamp: 1700000000003 offset: 24\n"
        "Dumping a.txnindex\n"
        "version: 0 producerId: 7 firstOffset: 3 lastOffset: 9 lastStableOffset: 2\n"
        "Dumping a.snapshot\n"
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 0 currentTxnFirstOffset: "
        "OptionalLong[31] lastTimestamp: 1700000000009 firstSequence: 4 lastSequence: 5 "
        "lastOffset: 32 offsetDelta: 1 timestamp: 1700000000008\n"
        "producerId: 8 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: "
        "OptionalLong.empty lastTimestamp: -1\n"
    )
    assert dump.file("a.index").offset_entries == [OffsetIndexEntry(24, 4120)]
    assert dump.file("a.timeindex").time_entries == [TimeIndexEntry(1700000000003, 24)]
    assert dump.file("a.txnindex").aborted_transactions == [AbortedTransactionEntry(0, 7, 3, 9, 2)]
    assert dump.file("a.snapshot").producers == [
        ProducerSnapshotEntry(7, 1, 0, 31, 1700000000009, 4, 5, 32, 1, 1700000000008),
        ProducerSnapshotEntry(8, 0, -1, None, -1),
    ]
    assert dump.complaints == []


def test_everything_the_dumper_finds_wrong_is_a_complaint() -> None:
    errors = (
        "Mismatches in :/data/t-0/00000000000000000000.index\n"
        "  Index offset: 24, log offset: 23\n"
        "Found timestamp mismatch in :/data/t-0/00000000000000000000.timeindex\n"
        "  Index timestamp: 5, log timestamp: 6\n"
        "Found out of order timestamp in :/data/t-0/00000000000000000000.timeindex\n"
        "The following indexed offsets are not found in the log.\n"
        "Indexed offset: 9, found log offset: 10\n"
        "Non-consecutive offsets in /data/t-0/00000000000000000000.log\n"
        "  5 is followed by 8\n"
    )
    trailing = "Found 17 invalid bytes at the end of 00000000000000000000.log"
    invalid = BATCH.replace("isvalid: true", "isvalid: false")
    dump = parse_dump(report(invalid, trailing, errors=errors))
    assert dump.complaints == [
        trailing,
        "Mismatches in :/data/t-0/00000000000000000000.index\n  Index offset: 24, log offset: 23",
        "Found timestamp mismatch in :/data/t-0/00000000000000000000.timeindex\n"
        "  Index timestamp: 5, log timestamp: 6",
        "Found out of order timestamp in :/data/t-0/00000000000000000000.timeindex",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 9, found log offset: 10",
        "Non-consecutive offsets in /data/t-0/00000000000000000000.log\n  5 is followed by 8",
        f"isvalid: false at position 120 of {LOG}",
    ]


def test_a_line_that_nobody_foresaw_is_a_complaint() -> None:
    dump = parse_dump(
        report(BATCH, "offset: twelve position: 3", errors="Exception in x\n\tat y\n")
    )
    assert dump.complaints == ["offset: twelve position: 3", "Exception in x\n\tat y"]


def test_a_complaint_after_a_short_rendering_is_not_taken_for_payload() -> None:
    record = RECORD.format(-1, 300, "[]") + " payload: {}"
    trailing = "Found 1 invalid bytes at the end of 00000000000000000000.log"
    dump = parse_dump(report(BATCH, record, trailing, errors="Mismatches in :x\n"))
    assert dump.complaints == [trailing, "Mismatches in :x"]
