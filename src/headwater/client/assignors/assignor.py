"""What an assignor is: the rule by which a group's leader deals partitions out to its members.

Any object with these names will do, and a user's own is written as the ones here are: `assign` gets
how many partitions each topic has and what each member wants, and returns what each member gets. It
runs in the leader of a classic group only, so all members must name the same rule. A rule knows
nothing of requests: what members tell it, and it tells them, are the bytes of `user_data`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, runtime_checkable

from headwater.base.ids import TopicPartition


class RebalanceProtocol(IntEnum):
    """What members do with their partitions while the group rebalances."""

    #: They let go of all of them before they join again.
    EAGER = 0
    #: They keep them, and let go of what they are not assigned any more.
    COOPERATIVE = 1


class MemberSubscription(NamedTuple):
    """What a member said when it joined."""

    topics: tuple[str, ...]
    #: What it has and keeps while it joins; none if the group is eager.
    owned: frozenset[TopicPartition] = frozenset()
    user_data: bytes | None = None
    #: The generation in which it came to have it; -1 if it did not say.
    generation_id: int = -1
    instance_id: str | None = None
    rack_id: str | None = None


class MemberAssignment(NamedTuple):
    """What a member is given."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


Subscriptions = Mapping[str, MemberSubscription]


@runtime_checkable
class Assignor(Protocol):
    @property
    def name(self) -> str:
        """What members call the rule; those of a group must have one in common."""
        ...

    @property
    def protocol(self) -> RebalanceProtocol:
        """The most that it can do. A consumer with several assignors does what all of them can."""
        ...

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        """What a member tells the leader's assignor, when it joins with these topics."""
        ...

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        """What each member gets; topics that do not exist are not in `partition_counts`."""
        ...

    def on_assignment(self, assignment: MemberAssignment, generation_id: int) -> None:
        """This member was assigned that, by whichever member leads the group."""
        ...


#: The name of one, one, or a class to make one of.
AssignorLike = str | Assignor | type[Assignor]


class PlainAssignor:
    """The parts of an assignor that has nothing to remember, to build others on."""

    protocol = RebalanceProtocol.EAGER

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: MemberAssignment, generation_id: int) -> None:
        """Nothing is remembered."""


def in_order(subscriptions: Subscriptions) -> list[str]:
    """The members in the order in which rules go through them.

    Static members come first, by their instance id, which stays theirs when they come back; the
    others by their member id, which does not.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].instance_id
        return (instance_id is None, member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=place)


def takers_by_topic(subscriptions: Subscriptions) -> dict[str, list[str]]:
    """Who wants each topic, in the order of the members; the topics by name."""
    takers: dict[str, list[str]] = {topic: [] for topic in subscribed_topics(subscriptions)}
    for member_id in in_order(subscriptions):
        for topic in dict.fromkeys(subscriptions[member_id].topics):
            takers[topic].append(member_id)
    return takers


def partitions_of(topic: str, partition_counts: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(partition_counts.get(topic, 0))]


def subscribed_topics(subscriptions: Subscriptions) -> list[str]:
    """All topics that any member wants, by name."""
    return sorted({topic for wanted in subscriptions.values() for topic in wanted.topics})


def as_assignments(
    dealt: Mapping[str, Sequence[TopicPartition]],
) -> dict[str, MemberAssignment]:
    return {
        member_id: MemberAssignment(tuple(partitions)) for member_id, partitions in dealt.items()
    }
