import struct

import pytest

from headwater.wire.records import (
    ControlType,
    EndTransactionMarker,
    InvalidRecordError,
    Record,
    decode_batch,
    decode_control_record,
    encode_end_transaction_marker,
    read_batch_header,
    read_control_type,
    validate_batch,
)


def marker_batch(control_type: ControlType, coordinator_epoch: int = 7) -> bytes:
    return encode_end_transaction_marker(
        control_type,
        producer_id=4711,
        producer_epoch=3,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=5000,
        base_offset=90,
        leader_epoch=2,
    )


def control_record(key: bytes | None, value: bytes | None = b"\0\0\0\0\0\7") -> Record:
    return Record(90, 5000, key, value)


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
@pytest.mark.parametrize("coordinator_epoch", [0, 7, 2**31 - 1])
def test_a_marker_round_trips(control_type: ControlType, coordinator_epoch: int) -> None:
    batch = marker_batch(control_type, coordinator_epoch)
    header = read_batch_header(batch)
    validate_batch(batch, 0, header)
    assert header.is_control and header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, -1)
    assert (header.base_offset, header.next_offset, header.leader_epoch) == (90, 91, 2)
    (record,) = decode_batch(batch)
    assert decode_control_record(record) == EndTransactionMarker(control_type, coordinator_epoch)


def test_the_bytes_of_a_marker() -> None:
    (commit,) = decode_batch(marker_batch(ControlType.COMMIT))
    assert commit == Record(90, 5000, bytes.fromhex("00000001"), bytes.fromhex("000000000007"))
    (abort,) = decode_batch(marker_batch(ControlType.ABORT))
    assert abort.key == bytes.fromhex("00000000")


@pytest.mark.parametrize("control_type", [ControlType.LEADER_CHANGE, ControlType.UNKNOWN])
def test_only_commit_and_abort_end_a_transaction(control_type: ControlType) -> None:
    with pytest.raises(InvalidRecordError, match=control_type.name):
        marker_batch(control_type)
    with pytest.raises(InvalidRecordError, match="ends no transaction"):
        decode_control_record(control_record(struct.pack(">hh", 0, control_type)))


@pytest.mark.parametrize("control_type", list(ControlType))
def test_types_are_told_apart(control_type: ControlType) -> None:
    assert read_control_type(control_record(struct.pack(">hh", 0, control_type))) is control_type


def test_newer_versions_and_types_are_read_as_far_as_they_are_known() -> None:
    newer = control_record(struct.pack(">hhq", 5, 1, 99), struct.pack(">hiq", 3, 8, 99))
    assert decode_control_record(newer) == EndTransactionMarker(ControlType.COMMIT, 8)
    assert read_control_type(control_record(struct.pack(">hh", 0, 4000))) is ControlType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\0"])
def test_keys_that_are_none(key: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="key of"):
        decode_control_record(control_record(key))


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_values_that_are_none(value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="transaction marker at offset 90"):
        decode_control_record(control_record(b"\0\0\0\1", value))
