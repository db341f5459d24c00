"""Records of coordinators as `headwater consume --formatter` prints them."""

from __future__ import annotations

import json
import uuid

import pytest
import typer

from headwater.base.ids import topic_id_to_text
from headwater.cli.records.coordinator_format import (
    GROUP_METADATA,
    OFFSETS,
    TRANSACTION_LOG,
    OffsetsFormat,
    StoredJsonFormat,
)
from headwater.cli.records.formatter_option import ALIASES, NAMES, parse_formatter
from headwater.client.consumer.record import ConsumerRecord
from headwater.coordinator.group.classic.stored.record import (
    GroupMetadataValue,
    MemberMetadata,
    group_metadata_record,
    group_metadata_tombstone,
)
from headwater.coordinator.group.offsets.record import (
    OffsetCommitValue,
    offset_record,
    offset_tombstone,
)
from headwater.coordinator.stored_record import StoredRecord, encode_versioned
from headwater.coordinator.txn.transaction_record import (
    TopicPartitions,
    TransactionLogKey,
    TransactionLogValue,
)
from headwater.wire.records import TimestampType

COMMIT_MS = 1_538_843_128_354
WEEK_MS = 604_800_000
TOPIC_ID = uuid.UUID(int=77)


def printed(format_records: OffsetsFormat | StoredJsonFormat, *stored: StoredRecord) -> str:
    records = [consumed(number, each.key, each.value) for number, each in enumerate(stored)]
    return format_records(records).decode()


def consumed(offset: int, key: bytes | None, value: bytes | None) -> ConsumerRecord:
    kind = TimestampType.CREATE_TIME
    return ConsumerRecord("__consumer_offsets", 20, offset, 0, kind, key, value, (), 0)


def value(offset: int = 2130, **fields: object) -> OffsetCommitValue:
    made = OffsetCommitValue(offset=offset, commit_timestamp=COMMIT_MS)
    for name, each in fields.items():
        setattr(made, name, each)
    return made


def test_offsets_as_the_notes_show_them() -> None:
    assert printed(
        OffsetsFormat(WEEK_MS),
        offset_record("consumerGroupId", "topic-offsets", 30, value()),
        offset_record("consumerGroupId", "topic-offsets", 8, value(5, metadata="größer")),
        offset_record("consumerGroupId", "topic-offsets", 9, value(5, expire_timestamp=77)),
        offset_record("consumerGroupId", "topic-offsets", 7, value(5, topic_id=TOPIC_ID)),
        offset_tombstone("consumerGroupId", "topic-offsets", 30),
        group_metadata_tombstone("consumerGroupId"),
    ).splitlines() == [
        "[consumerGroupId,topic-offsets,30]::[OffsetMetadata[2130,NO_METADATA],"
        "CommitTime 1538843128354,ExpirationTime 1539447928354]",
        "[consumerGroupId,topic-offsets,8]::[OffsetMetadata[5,größer],"
        "CommitTime 1538843128354,ExpirationTime 1539447928354]",
        "[consumerGroupId,topic-offsets,9]::[OffsetMetadata[5,NO_METADATA],"
        "CommitTime 1538843128354,ExpirationTime 77]",
        "[consumerGroupId,topic-offsets,7]::[OffsetMetadata[5,NO_METADATA],"
        "CommitTime 1538843128354,ExpirationTime 1539447928354]",
        "[consumerGroupId,topic-offsets,30]::NULL",
    ]


def test_offsets_as_json() -> None:
    lines = printed(
        StoredJsonFormat(OFFSETS),
        offset_record("g", "t", 3, value(5, leader_epoch=2, metadata="é")),
        offset_record("g", "t", 3, value(5, expire_timestamp=77)),
        offset_record("g", "t", 3, value(5, topic_id=TOPIC_ID)),
        offset_tombstone("g", "t", 3),
        group_metadata_tombstone("g"),
    ).splitlines()
    key = {"type": 1, "data": {"group": "g", "topic": "t", "partition": 3}}
    assert lines[0] == (
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":3}},"value":{"version":4,'
        '"data":{"offset":5,"leaderEpoch":2,"metadata":"é","commitTimestamp":1538843128354}}}'
    )
    assert [json.loads(line) for line in lines[1:]] == [
        {
            "key": key,
            "value": {
                "version": 1,
                "data": {
                    "offset": 5,
                    "metadata": "",
                    "commitTimestamp": COMMIT_MS,
                    "expireTimestamp": 77,
                },
            },
        },
        {
            "key": key,
            "value": {
                "version": 4,
                "data": {
                    "offset": 5,
                    "leaderEpoch": -1,
                    "metadata": "",
                    "commitTimestamp": COMMIT_MS,
                    "topicId": topic_id_to_text(TOPIC_ID),
                },
            },
        },
        {"key": key, "value": None},
    ]


def test_groups_as_json() -> None:
    member = MemberMetadata(member_id="m", subscription=b"\x00\x01", session_timeout=10_000)
    group = GroupMetadataValue(protocol_type="consumer", generation=4, members=[member])
    [line] = printed(
        StoredJsonFormat(GROUP_METADATA),
        offset_tombstone("g", "t", 3),
        group_metadata_record("g", group),
    ).splitlines()
    assert json.loads(line) == {
        "key": {"type": 2, "data": {"group": "g"}},
        "value": {
            "version": 3,
            "data": {
                "protocolType": "consumer",
                "generation": 4,
                "protocol": None,
                "leader": None,
                "currentStateTimestamp": -1,
                "members": [
                    {
                        "memberId": "m",
                        "groupInstanceId": None,
                        "clientId": "",
                        "clientHost": "",
                        "rebalanceTimeout": -1,
                        "sessionTimeout": 10_000,
                        "subscription": "AAE=",
                        "assignment": "",
                    }
                ],
            },
        },
    }


def test_transactions_as_json() -> None:
    transaction = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[TopicPartitions(topic="t", partition_ids=[0, 2])],
        transaction_last_update_timestamp_ms=12,
        transaction_start_timestamp_ms=11,
        client_transaction_version=2,
    )
    stored = StoredRecord(
        encode_versioned(TransactionLogKey(transactional_id="tx"), 0),
        encode_versioned(transaction, 1),
    )
    assert json.loads(printed(StoredJsonFormat(TRANSACTION_LOG), stored)) == {
        "key": {"type": 0, "data": {"transactionalId": "tx"}},
        "value": {
            "version": 1,
            "data": {
                "producerId": 7,
                "producerEpoch": 1,
                "transactionTimeoutMs": 60_000,
                "transactionStatus": 1,
                "transactionPartitions": [{"topic": "t", "partitionIds": [0, 2]}],
                "transactionLastUpdateTimestampMs": 12,
                "transactionStartTimestampMs": 11,
                "clientTransactionVersion": 2,
            },
        },
    }


def test_what_nobody_can_read() -> None:
    key = offset_tombstone("g", "t", 3).key
    strange = (
        StoredRecord(b"", b""),
        StoredRecord(b"\x00", b""),
        StoredRecord(b"\x00\x01\x00", None),
        StoredRecord(key, b"\x00\x09"),
        StoredRecord(key, b"\x00\x03\x01"),
        StoredRecord(key, b"\x00"),
    )
    assert printed(OffsetsFormat(WEEK_MS), *strange) == "[g,t,3]::unknown\n" * 3
    shown = [json.loads(line) for line in printed(StoredJsonFormat(OFFSETS), *strange).splitlines()]
    assert [each["value"] for each in shown] == [
        {"version": 9, "data": "unknown"},
        {"version": 3, "data": "unknown"},
        {"version": None, "data": "unknown"},
    ]
    assert OffsetsFormat(WEEK_MS)([consumed(0, None, b"")]) == b""


def test_names_of_formatters() -> None:
    assert [parse_formatter(name) for name in NAMES] == list(NAMES)
    assert (
        parse_formatter("kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter")
        == "offsets"
    )
    assert {parse_formatter(name) for name in ALIASES} == set(NAMES)
    with pytest.raises(typer.BadParameter, match="not one of default, offsets"):
        parse_formatter("org.example.Formatter")
