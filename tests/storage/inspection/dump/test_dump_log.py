"""What `log dump` shows of log files, sound and damaged."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.storage.inspection.dump.as_text import COMPLAINTS_MAX
from headwater.storage.inspection.dump.dump import DumpOptions
from headwater.storage.inspection.dump.items import BatchItem, Fault, InvalidTail
from headwater.storage.inspection.dump.lines import readable
from headwater.wire.records import (
    MAGIC_V1,
    Compression,
    ControlType,
    Record,
    TimestampType,
    encode_batch,
    encode_end_transaction_marker,
    encode_legacy,
    read_batch_header,
)
from headwater.wire.records.batch_header import write_crc
from tests.support.logs.dumps import DEEP, LOG_NAME, items_of, text_of, write_log
from tests.support.logs.varied_log import varied_records
from tests.support.logs.verification import overwrite

# -- batches and records -------------------------------------------------------------------------


def test_a_batch_line_has_every_field_of_the_header(tmp_path: Path) -> None:
    batch = encode_batch(
        [Record(10, 5, b"k", b"v"), Record(11, 7, b"k", b"v")],
        compression=Compression.LZ4,
        leader_epoch=3,
        producer_id=21,
        producer_epoch=2,
        base_sequence=2**31 - 1,
        transactional=True,
        last_offset_delta=4,
        delete_horizon_ms=99,
    )
    crc = read_batch_header(batch).crc
    lines, complaints = text_of(write_log(tmp_path, batch))
    assert lines == [
        "Log starting offset: 0",
        "baseOffset: 10 lastOffset: 14 count: 2 baseSequence: 2147483647 lastSequence: 3 "
        "producerId: 21 producerEpoch: 2 partitionLeaderEpoch: 3 isTransactional: true "
        "isControl: false deleteHorizonMs: OptionalLong[99] position: 0 CreateTime: 7 "
        f"size: {len(batch)} magic: 2 compresscodec: lz4 crc: {crc} isvalid: true",
    ]
    assert complaints == []


def test_records_are_shown_below_their_batch(tmp_path: Path) -> None:
    batch = encode_batch(varied_records(1000), base_sequence=2**31 - 2, producer_id=1)
    path = write_log(tmp_path, batch)
    lines, complaints = text_of(path, options=DEEP)
    assert complaints == []
    assert lines[2:] == [
        "| offset: 0 CreateTime: 1000 keySize: -1 valueSize: 6 sequence: 2147483646 headerKeys: []",
        "| offset: 1 CreateTime: 1002 keySize: 8 valueSize: -1 sequence: 2147483647 headerKeys: []",
        "| offset: 2 CreateTime: 1001 keySize: 0 valueSize: 0 sequence: 0 "
        "headerKeys: [trace,empty]",
        "| offset: 3 CreateTime: 1001 keySize: 4 valueSize: 9 sequence: 1 headerKeys: []",
    ]
    with_data, _ = text_of(path, options=DEEP, print_data=True)
    added = [long.removeprefix(short) for long, short in zip(with_data, lines, strict=True)]
    assert added[2:] == [
        " payload: no key",
        " key: no value",
        " key:  payload: ",
        " key: clé payload: \\x00\\xffbinary\\n",
    ]


def test_decoders_and_what_is_left_out(tmp_path: Path) -> None:
    batch = encode_batch([Record(0, 0, b"\xff\x00", b"v"), Record(1, 0, None, b"w")])
    lines, _ = text_of(
        write_log(tmp_path, batch),
        options=DEEP,
        print_data=True,
        key_decoder="hex",
        value_decoder="base64",
        skip_batches=True,
        skip_record_metadata=True,
    )
    assert lines[1:] == ["| key: ff00 payload: dg==", " payload: dw=="]


def test_control_records_say_what_they_mark(tmp_path: Path) -> None:
    marker = encode_end_transaction_marker(
        ControlType.COMMIT, producer_id=5, producer_epoch=0, coordinator_epoch=8, timestamp_ms=3
    )
    leader_change = encode_batch(
        [
            Record(1, 4, struct.pack(">hh", 0, 2), b"\0\0"),
            Record(2, 4, struct.pack(">hh", 0, 77), b""),
        ],
        control=True,
    )
    lines, _ = text_of(write_log(tmp_path, marker, leader_change), options=DEEP, print_data=True)
    assert [line for line in lines if line.startswith("|")] == [
        "| offset: 0 CreateTime: 3 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        "endTxnMarker: COMMIT coordinatorEpoch: 8",
        "| offset: 1 CreateTime: 4 keySize: 4 valueSize: 2 sequence: -1 headerKeys: [] "
        "controlType: LEADER_CHANGE(2)",
        "| offset: 2 CreateTime: 4 keySize: 4 valueSize: 0 sequence: -1 headerKeys: [] "
        "controlType: UNKNOWN(-1)",
    ]


def test_old_messages(tmp_path: Path) -> None:
    records = [Record(0, 9, b"k", b"v")]
    plain = encode_legacy(records, magic=0)
    timed = encode_legacy(
        [records[0]._replace(offset=1)],
        magic=MAGIC_V1,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    lines, _ = text_of(write_log(tmp_path, plain, timed), options=DEEP)
    crcs = [int.from_bytes(message[12:16], "big") for message in (plain, timed)]
    assert lines[1:] == [
        f"offset: 0 position: 0 NoTimestampType: -1 size: 28 magic: 0 compresscodec: none "
        f"crc: {crcs[0]} isvalid: true",
        f"| offset: 0 NoTimestampType: -1 keySize: 1 valueSize: 1 isValid: true crc: {crcs[0]}",
        f"offset: 1 position: 28 LogAppendTime: 9 size: 36 magic: 1 compresscodec: none "
        f"crc: {crcs[1]} isvalid: true",
        f"| offset: 1 LogAppendTime: 9 keySize: 1 valueSize: 1 isValid: true crc: {crcs[1]}",
    ]


def test_only_as_many_bytes_as_wanted(tmp_path: Path) -> None:
    batches = [encode_batch([Record(number, 0, None, b"x")]) for number in range(3)]
    path = write_log(tmp_path, *batches)
    for max_bytes in (0, len(batches[0]) - 1, len(batches[0]), 2 * len(batches[0]) + 5, 10_000):
        items = items_of(path, DumpOptions(max_bytes=max_bytes))
        count = sum(isinstance(item, BatchItem) for item in items)
        assert count == min(3, max_bytes // len(batches[0]))
        assert not any(isinstance(item, Fault | InvalidTail) for item in items)


def test_gaps_between_records_are_told_but_no_fault(tmp_path: Path) -> None:
    path = write_log(tmp_path, encode_batch([Record(0, 0, None, b""), Record(4, 0, None, b"")]))
    _, complaints = text_of(path, options=DEEP)
    assert complaints == [f"Non-consecutive offsets in {path}", "  0 is followed by 4"]
    assert not any(isinstance(item, Fault) for item in items_of(path, DEEP))


@given(st.binary())
def test_readable_text_is_on_one_line(data: bytes) -> None:
    text = readable(data)
    assert len(text.splitlines()) == min(len(data), 1)
    assert text.encode().decode() == text


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert readable(text.encode()) == text


# -- damaged logs --------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, int]:
    """A log of three batches, and the size of each."""
    batches = [encode_batch([Record(number, 0, b"k", b"value")]) for number in range(3)]
    return write_log(tmp_path, *batches), len(batches[0])


def test_a_checksum_that_fails_is_shown_with_its_batch(three: tuple[Path, int]) -> None:
    path, size = three
    overwrite(path, size + 62, b"\x7f")
    lines, complaints = text_of(path, options=DEEP)
    valid = [line.rpartition(" ")[2] for line in lines if line.startswith("baseOffset")]
    assert valid == ["true", "false", "true"]
    assert sum(line.startswith("|") for line in lines) == 2
    sentence = f"{path}: position {size}: the checksum of the batch at offset 1 fails."
    assert complaints[0] == sentence


def test_the_walk_goes_on_behind_what_is_no_batch(three: tuple[Path, int]) -> None:
    path, size = three
    overwrite(path, size + 16, b"\x09")
    lines, complaints = text_of(path)
    assert [line.split()[1] for line in lines[1:]] == ["0", "2"]
    assert complaints == [
        f"{path}: position {size}: {size} bytes hold no batch: "
        "the magic is 9, and only 0, 1 and 2 are known."
    ]


@pytest.mark.parametrize("missing", [1, 30, 60])
def test_a_torn_end(three: tuple[Path, int], missing: int) -> None:
    path, size = three
    path.write_bytes(path.read_bytes()[:-missing])
    lines, (complaint,) = text_of(path)
    left = size - missing
    assert lines[-1] == f"Found {left} invalid bytes at the end of {LOG_NAME}"
    assert complaint.startswith(f"{path}: position {2 * size}: the last {left} bytes hold no")


def test_a_wild_length_ends_the_walk(three: tuple[Path, int]) -> None:
    path, size = three
    overwrite(path, size + 8, b"\xff\xff\xff\xff")
    lines, (complaint,) = text_of(path)
    assert lines[-1] == f"Found {2 * size} invalid bytes at the end of {LOG_NAME}"
    assert "the length field says -1" in complaint


def test_records_that_cannot_be_read(tmp_path: Path) -> None:
    batch = bytearray(encode_batch([Record(0, 0, b"key", b"value")]))
    batch[61] = 0x7F
    write_crc(batch, 0, len(batch))
    path = write_log(tmp_path, bytes(batch))
    lines, (complaint,) = text_of(path, options=DEEP)
    assert lines[1].endswith("isvalid: true")
    assert complaint.startswith(f"{path}: position 0: the batch's records cannot be read: ")


def test_complaints_without_end_are_counted(tmp_path: Path) -> None:
    gaps = [Record(2 * number, 0, None, None) for number in range(COMPLAINTS_MAX + 6)]
    _, complaints = text_of(write_log(tmp_path, encode_batch(gaps)), options=DEEP)
    assert len(complaints) == COMPLAINTS_MAX + 2
    assert complaints[-1] == "  and 5 more"
