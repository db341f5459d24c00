"""Sticky: as even as can be, and otherwise as it was; members let go of everything meanwhile.

Members have nothing while they join, so each remembers what it was assigned last, and in which
generation, and tells that in its user data, in the form that Java's assignor of this name reads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    MemberAssignment,
    PlainAssignor,
    Subscriptions,
    as_assignments,
)
from headwater.client.assignors.claims import NO_GENERATION, Claim, settle_claims
from headwater.client.assignors.consumer_protocol import by_topic
from headwater.client.assignors.sticky_dealing import StickyDealing

_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")


class StickyAssignor(PlainAssignor):
    name = "sticky"

    def __init__(self) -> None:
        self._remembered: Claim | None = None

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None if self._remembered is None else write_claim(self._remembered)

    def on_assignment(self, assignment: MemberAssignment, generation_id: int) -> None:
        self._remembered = Claim(assignment.partitions, generation_id)

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        claims = {
            member_id: read_claim(subscription.user_data)
            for member_id, subscription in subscriptions.items()
        }
        owned = settle_claims(claims)
        return as_assignments(StickyDealing(partition_counts, subscriptions, owned).deal())


def write_claim(claim: Claim) -> bytes:
    """An array of topics with their partitions, then the generation; all numbers are big-endian."""
    topics = by_topic(claim.partitions)
    pieces = [_INT32.pack(len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode()
        pieces += [_INT16.pack(len(name)), name, _INT32.pack(len(numbers))]
        pieces += [_INT32.pack(number) for number in numbers]
    return b"".join([*pieces, _INT32.pack(claim.generation_id)])


def read_claim(user_data: bytes | None) -> Claim:
    """The inverse. What cannot be read claims nothing; old members do not tell the generation."""
    if not user_data:
        return Claim()
    partitions: set[TopicPartition] = set()
    position = 0

    def take(form: struct.Struct) -> int:
        nonlocal position
        (number,) = form.unpack_from(user_data, position)
        position += form.size
        return int(number)

    try:
        for _ in range(take(_INT32)):
            size = take(_INT16)
            topic = user_data[position : position + size].decode()
            position += size
            partitions.update(TopicPartition(topic, take(_INT32)) for _ in range(take(_INT32)))
        generation_id = take(_INT32) if position < len(user_data) else NO_GENERATION
    except (struct.error, UnicodeDecodeError):
        return Claim()
    return Claim(partitions, generation_id)
