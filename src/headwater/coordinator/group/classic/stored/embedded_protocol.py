"""What consumers tell each other through the classic protocol: subscriptions and assignments.

A broker does not look into these bytes, except when a group moves from one protocol to the other.
They begin with their version. A later version than is known here only adds something at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from headwater.coordinator.stored_record import encode_versioned, read_version
from headwater.wire.codec import MalformedMessageError, decode
from headwater.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.schema import Message

_VERSION: Final = struct.Struct(">h")

T = TypeVar("T", bound=Message)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member of a classic group wants; raises `MalformedMessageError`."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """What it was assigned; no bytes mean nothing. Raises `MalformedMessageError`."""
    if not assignment:
        return ConsumerProtocolAssignment()
    return _read(ConsumerProtocolAssignment, assignment)


def write_assignment(entries: Iterable[tuple[str, list[int]]], metadata: bytes) -> bytes:
    """An assignment, in the version of the member's subscription."""
    value = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=partitions) for name, partitions in entries
        ]
    )
    return encode_versioned(value, _known_version(ConsumerProtocolAssignment, metadata))


def _read(message_class: type[T], buffer: bytes) -> T:
    version = _known_version(message_class, buffer)
    message, _ = decode(message_class, buffer, version, _VERSION.size)
    return message


def _known_version(message_class: type[Message], buffer: bytes) -> int:
    version = read_version(buffer)
    if version < 0:
        raise MalformedMessageError(f"There is no version {version} of the consumers' protocol.")
    return min(version, message_class.VERSIONS.highest)
