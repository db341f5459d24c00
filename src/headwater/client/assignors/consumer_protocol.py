"""How members of a classic group write down what they want and what they get, for each other.

A coordinator passes these bytes on without a look into them. They begin with their version; a
later version than is known here only adds something at its end, so it is read as the latest known.
Java's and librdkafka's consumers speak the same, so a group may have members of all kinds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import MemberAssignment, MemberSubscription
from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.messages import (
    consumer_protocol_assignment as assignment_messages,
)
from headwater.wire.messages import (
    consumer_protocol_subscription as subscription_messages,
)
from headwater.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.schema import Message

#: The name by which a group says that its members are consumers.
PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")
#: Any member's client can read an assignment of this version: later ones add nothing to it.
_ASSIGNMENT_VERSION: Final = 1

T = TypeVar("T", bound=Message)


def write_subscription(subscription: MemberSubscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            subscription_messages.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _write(message, ConsumerProtocolSubscription.VERSIONS.highest)


def read_subscription(buffer: bytes, instance_id: str | None) -> MemberSubscription:
    """What a member wants; raises `MalformedMessageError`."""
    message = _read(ConsumerProtocolSubscription, buffer)
    return MemberSubscription(
        topics=tuple(message.topics),
        owned=frozenset(
            TopicPartition(entry.topic, number)
            for entry in message.owned_partitions
            for number in entry.partitions
        ),
        user_data=message.user_data,
        generation_id=message.generation_id,
        instance_id=instance_id,
        rack_id=message.rack_id,
    )


def write_assignment(assignment: MemberAssignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            assignment_messages.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return _write(message, _ASSIGNMENT_VERSION)


def read_assignment(buffer: bytes) -> MemberAssignment:
    """What this member gets; no bytes mean nothing. Raises `MalformedMessageError`."""
    if not buffer:
        return MemberAssignment()
    message = _read(ConsumerProtocolAssignment, buffer)
    partitions = (
        TopicPartition(entry.topic, number)
        for entry in message.assigned_partitions
        for number in entry.partitions
    )
    return MemberAssignment(tuple(partitions), message.user_data)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of each topic's partitions, in order."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return topics


def _write(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + encode(message, version)


def _read(message_class: type[T], buffer: bytes) -> T:
    if len(buffer) < _VERSION.size:
        raise MalformedMessageError("What a member of the group sent has no version.")
    version: int = _VERSION.unpack_from(buffer)[0]
    if version < 0:
        raise MalformedMessageError(f"There is no version {version} of the consumers' protocol.")
    known_version = min(version, message_class.VERSIONS.highest)
    message, _ = decode(message_class, buffer, known_version, _VERSION.size)
    return message
