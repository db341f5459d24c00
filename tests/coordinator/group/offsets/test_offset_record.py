"""Bytes of committed offsets, against ones that were put together by hand from Kafka's schema."""

import struct
import uuid

import pytest

from headwater.coordinator.group.offsets.record import (
    OffsetCommitKey,
    OffsetCommitValue,
    offset_record,
    offset_tombstone,
    read_offset_key,
    read_offset_value,
)
from headwater.wire.codec import MalformedMessageError

TOPIC_ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
COMMIT_MS = 1_538_843_128_354
EXPIRE_MS = 1_539_447_928_354

KEY = b"\x00\x01" + b"\x00\x02gr" + b"\x00\x06orders" + b"\x00\x00\x00\x1e"
OFFSET = struct.pack(">q", 2130)
COMMIT_TIME = struct.pack(">q", COMMIT_MS)
EXPIRE_TIME = struct.pack(">q", EXPIRE_MS)


def test_the_key() -> None:
    assert offset_tombstone("gr", "orders", 30) == (KEY, None)
    named = OffsetCommitKey(group="gr", topic="orders", partition=30)
    assert read_offset_key(KEY) == named
    # Version 0 is what the earliest brokers wrote.
    assert read_offset_key(b"\x00\x00" + KEY[2:]) == named


WRITTEN = [
    pytest.param(
        OffsetCommitValue(offset=2130, leader_epoch=7, metadata="né", commit_timestamp=COMMIT_MS),
        b"\x00\x04" + OFFSET + b"\x00\x00\x00\x07" + b"\x04n\xc3\xa9" + COMMIT_TIME + b"\x00",
        id="plain",
    ),
    pytest.param(
        OffsetCommitValue(offset=2130, commit_timestamp=COMMIT_MS),
        b"\x00\x04" + OFFSET + b"\xff\xff\xff\xff" + b"\x01" + COMMIT_TIME + b"\x00",
        id="nothing known",
    ),
    pytest.param(
        OffsetCommitValue(
            offset=2130, metadata="m", commit_timestamp=COMMIT_MS, expire_timestamp=EXPIRE_MS
        ),
        b"\x00\x01" + OFFSET + b"\x00\x01m" + COMMIT_TIME + EXPIRE_TIME,
        id="own retention",
    ),
    pytest.param(
        OffsetCommitValue(
            offset=2130, leader_epoch=7, metadata="m", commit_timestamp=COMMIT_MS, topic_id=TOPIC_ID
        ),
        b"\x00\x04"
        + OFFSET
        + b"\x00\x00\x00\x07"
        + b"\x02m"
        + COMMIT_TIME
        + b"\x01\x00\x10"
        + TOPIC_ID.bytes,
        id="topic id",
    ),
]


@pytest.mark.parametrize(("value", "stored"), WRITTEN)
def test_values_are_written_in_the_version_that_holds_them(
    value: OffsetCommitValue, stored: bytes
) -> None:
    record = offset_record("gr", "orders", 30, value)
    assert record.key == KEY
    assert record.value is not None
    assert record.value.hex(" ") == stored.hex(" ")
    assert read_offset_value(stored) == value


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        (
            b"\x00\x00" + OFFSET + b"\x00\x01m" + COMMIT_TIME,
            OffsetCommitValue(offset=2130, metadata="m", commit_timestamp=COMMIT_MS),
        ),
        (
            b"\x00\x02" + OFFSET + b"\x00\x01m" + COMMIT_TIME,
            OffsetCommitValue(offset=2130, metadata="m", commit_timestamp=COMMIT_MS),
        ),
        (
            b"\x00\x03" + OFFSET + b"\x00\x00\x00\x07" + b"\x00\x01m" + COMMIT_TIME,
            OffsetCommitValue(
                offset=2130, leader_epoch=7, metadata="m", commit_timestamp=COMMIT_MS
            ),
        ),
        (
            # A tagged field of a later Kafka is skipped.
            b"\x00\x04" + OFFSET + b"\x00\x00\x00\x07" + b"\x02m" + COMMIT_TIME + b"\x01\x09\x02xy",
            OffsetCommitValue(
                offset=2130, leader_epoch=7, metadata="m", commit_timestamp=COMMIT_MS
            ),
        ),
    ],
)
def test_other_versions_are_read(stored: bytes, value: OffsetCommitValue) -> None:
    assert read_offset_value(stored) == value


@pytest.mark.parametrize("stored", [b"", b"\x00", b"\x00\x05", b"\x00\x03\x00"])
def test_what_cannot_be_read_is_malformed(stored: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        read_offset_value(stored)
