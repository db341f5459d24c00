"""How a classic group is stored."""

import pytest

from headwater.coordinator.group.classic.stored.record import (
    GroupMetadataValue,
    MemberMetadata,
    group_metadata_record,
    group_metadata_tombstone,
    read_group_metadata_key,
    read_group_metadata_value,
)
from headwater.coordinator.stored_record import encode_versioned
from headwater.wire.codec import MalformedMessageError

_VALUE = GroupMetadataValue(
    protocol_type="consumer",
    generation=7,
    protocol="range",
    leader="anna",
    current_state_timestamp=1_700_000_000_000,
    members=[
        MemberMetadata(
            member_id="anna",
            group_instance_id="first",
            client_id="app",
            client_host="/192.0.2.9",
            rebalance_timeout=60_000,
            session_timeout=10_000,
            subscription=b"wants",
            assignment=b"gets",
        )
    ],
)


def test_a_group_comes_back_as_it_was() -> None:
    record = group_metadata_record("orders", _VALUE)
    assert read_group_metadata_key(record.key) == "orders"
    assert record.value is not None
    assert read_group_metadata_value(record.value) == _VALUE


def test_the_bytes_are_those_of_kafka() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        current_state_timestamp=2,
        members=[MemberMetadata(member_id="m", rebalance_timeout=3, session_timeout=4)],
    )
    record = group_metadata_record("g", value)
    assert record.key.hex() == "0002000167"
    assert record.value is not None
    assert record.value.hex() == (
        "0003" "0008" "636f6e73756d6572" "00000001" "0005" "72616e6765" "0001" "6d"
        "0000000000000002" "00000001"
        "0001" "6d" "ffff" "0000" "0000" "00000003" "00000004" "00000000" "00000000"
    )  # fmt: skip


def test_a_group_that_is_forgotten_has_no_value() -> None:
    record = group_metadata_tombstone("orders")
    assert read_group_metadata_key(record.key) == "orders"
    assert record.value is None


@pytest.mark.parametrize("version", range(5))
def test_all_versions_are_read(version: int) -> None:
    read = read_group_metadata_value(encode_versioned(_VALUE, version))
    assert read.members[0].assignment == b"gets"
    assert read.members[0].group_instance_id == ("first" if version >= 3 else None)
    assert read.members[0].rebalance_timeout == (60_000 if version >= 1 else -1)
    assert read.current_state_timestamp == (1_700_000_000_000 if version >= 2 else -1)


def test_what_no_version_writes_is_refused() -> None:
    with pytest.raises(MalformedMessageError):
        read_group_metadata_value(b"\0\x09rest")
    with pytest.raises(MalformedMessageError):
        read_group_metadata_value(b"\0\x03\0")
