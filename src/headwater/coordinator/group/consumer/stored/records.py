"""What consumer groups write to `__consumer_offsets`: values of the state machine as records.

A function per kind of record and one per tombstone, and readers for the values. Lists are sorted,
so that the same state always gives the same bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from headwater.coordinator.group.consumer.assigning.assignment import (
    Assignment,
    from_entries,
    sorted_entries,
)
from headwater.coordinator.group.consumer.member import (
    ClassicProtocol,
    ClassicSide,
    ConsumerMember,
    MemberState,
)
from headwater.coordinator.group.consumer.stored.schemas import (
    CURRENT_KEY,
    GROUP_KEY,
    MEMBER_KEY,
    PARTITION_METADATA_KEY,
    REGEX_KEY,
    TARGET_KEY,
    TARGET_MEMBER_KEY,
    ClassicMemberMetadata,
    ConsumerCurrentValue,
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    ConsumerRegexKey,
    ConsumerRegexValue,
    ConsumerTargetMemberValue,
    ConsumerTargetValue,
    StoredPartitions,
    SupportedProtocol,
)
from headwater.coordinator.stored_record import StoredRecord, decode_versioned, encode_versioned
from headwater.wire.schema import Message

_VALUE_VERSION = 0


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression stands for, and when that was found out."""

    topics: frozenset[str]
    resolved_ms: int


def group_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    value = ConsumerGroupValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(_group_key(group_id, GROUP_KEY), value)


def target_epoch_record(group_id: str, epoch: int) -> StoredRecord:
    value = ConsumerTargetValue(assignment_epoch=epoch)
    return _record(_group_key(group_id, TARGET_KEY), value)


def member_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """What the member said of itself."""
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                SupportedProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in member.classic.protocols
            ],
        )
    value = ConsumerMemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return _record(_member_key(group_id, member.member_id, MEMBER_KEY), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> StoredRecord:
    value = ConsumerTargetMemberValue(topic_partitions=_stored(assignment))
    return _record(_member_key(group_id, member_id, TARGET_MEMBER_KEY), value)


def current_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """Where the member stands."""
    value = ConsumerCurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_stored(member.assigned),
        partitions_pending_revocation=_stored(member.revoking),
    )
    return _record(_member_key(group_id, member.member_id, CURRENT_KEY), value)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> StoredRecord:
    # The version is that of KRaft's metadata, of which there is none here.
    value = ConsumerRegexValue(topics=sorted(resolved.topics), timestamp=resolved.resolved_ms)
    return _record(_regex_key(group_id, regex), value)


def group_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(_group_key(group_id, GROUP_KEY), None)


def partition_metadata_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(_group_key(group_id, PARTITION_METADATA_KEY), None)


def target_epoch_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(_group_key(group_id, TARGET_KEY), None)


def regex_tombstone(group_id: str, regex: str) -> StoredRecord:
    return StoredRecord(_regex_key(group_id, regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """All that is stored of a member; what it has goes first, and it itself last."""
    return [
        StoredRecord(_member_key(group_id, member_id, kind), None)
        for kind in (CURRENT_KEY, TARGET_MEMBER_KEY, MEMBER_KEY)
    ]


def read_member(value: bytes, member: ConsumerMember) -> ConsumerMember:
    """The member with what the stored value says of it."""
    stored = decode_versioned(ConsumerMemberValue, value)
    classic = None
    if stored.classic_member_metadata is not None:
        classic = ClassicSide(
            stored.classic_member_metadata.session_timeout_ms,
            tuple(
                ClassicProtocol(protocol.name, bytes(protocol.metadata))
                for protocol in stored.classic_member_metadata.supported_protocols
            ),
        )
    return replace(
        member,
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        topics=frozenset(stored.subscribed_topic_names),
        regex=stored.subscribed_topic_regex,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        assignor=stored.server_assignor,
        classic=classic,
    )


def read_current(value: bytes, member: ConsumerMember) -> ConsumerMember:
    """The member with what the stored value says of its assignment."""
    stored = decode_versioned(ConsumerCurrentValue, value)
    return replace(
        member,
        epoch=stored.member_epoch,
        previous_epoch=stored.previous_member_epoch,
        state=MemberState.from_stored(stored.state),
        assigned=from_entries(stored.assigned_partitions),
        revoking=from_entries(stored.partitions_pending_revocation),
    )


def read_target(value: bytes) -> Assignment:
    return from_entries(decode_versioned(ConsumerTargetMemberValue, value).topic_partitions)


def read_regex(value: bytes) -> ResolvedRegex:
    stored = decode_versioned(ConsumerRegexValue, value)
    return ResolvedRegex(frozenset(stored.topics), stored.timestamp)


def _record(key: bytes, value: Message) -> StoredRecord:
    return StoredRecord(key, encode_versioned(value, _VALUE_VERSION))


def _group_key(group_id: str, kind: int) -> bytes:
    return encode_versioned(ConsumerGroupKey(group_id=group_id), kind)


def _member_key(group_id: str, member_id: str, kind: int) -> bytes:
    return encode_versioned(ConsumerMemberKey(group_id=group_id, member_id=member_id), kind)


def _regex_key(group_id: str, regex: str) -> bytes:
    key = ConsumerRegexKey(group_id=group_id, regular_expression=regex)
    return encode_versioned(key, REGEX_KEY)


def _stored(assignment: Assignment) -> list[StoredPartitions]:
    return [
        StoredPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in sorted_entries(assignment)
    ]
