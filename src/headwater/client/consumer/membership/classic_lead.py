"""What the leader of a classic group does: it deals the partitions out, and watches the topics.

The coordinator makes one member the leader and tells it what all members want. The leader needs to
know the topics of all of them, also those that it does not read itself, and joins again when one of
these gets more partitions, comes or goes: nobody else would notice.

A cooperative assignor gives what changes hands to nobody at first. Whoever has it lets go of it and
joins again, and then it is dealt out. But a static member that was restarted meanwhile is back with
its new assignment and without a rebalance: it has nothing to let go of. So the leader remembers
whether something was left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    Assignor,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
    subscribed_topics,
)
from headwater.client.assignors.consumer_protocol import read_subscription, write_assignment
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.wire.messages.join_group import JoinGroupResponse

#: The first answer may be to a question from before, which did not name all of the topics.
_LOOKS_MAX: Final = 2


class AssignorError(KafkaError):
    """An assignor failed, or did what it must not do."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class ClassicLead:
    """The lead of one generation. Raises `MalformedMessageError` for what no consumer sends."""

    def __init__(self, answer: JoinGroupResponse) -> None:
        self._subscriptions: dict[str, MemberSubscription] = {
            member.member_id: read_subscription(member.metadata, member.group_instance_id)
            for member in answer.members
        }
        #: The assignment is the group's from before: the leader, a static member, has come back.
        self.is_over = answer.skip_assignment
        self.topics = frozenset(subscribed_topics(self._subscriptions))
        #: Whether partitions were dealt to nobody, for their owners to let go of them first.
        self.has_left_some = False
        self._look_count = 0
        self._counts: dict[str, int] = {}

    def is_informed(self, metadata: ClusterMetadata) -> bool:
        """Whether all topics are known, or those that are not were looked for."""
        known = all(metadata.topic(topic) is not None for topic in self.topics)
        return known or self._look_count >= _LOOKS_MAX

    def look(self) -> None:
        """There are new metadata."""
        self._look_count += 1

    def deal(self, assignor: Assignor, metadata: ClusterMetadata) -> dict[str, bytes]:
        """What each member gets, as it is sent; raises `AssignorError`."""
        self._counts = self._partition_counts(metadata)
        try:
            dealt = assignor.assign(dict(self._counts), dict(self._subscriptions))
            if assignor.protocol is RebalanceProtocol.COOPERATIVE:
                self._check_cooperative(assignor.name, dealt)
                self.has_left_some = self._leaves_some(dealt)
            return {
                member_id: write_assignment(assignment) for member_id, assignment in dealt.items()
            }
        except AssignorError:
            raise
        except Exception as error:
            # It may be the user's, and may raise anything.
            raise AssignorError(
                f"The assignor {assignor.name!r} failed: {type(error).__name__}: {error}"
            ) from error

    def keep(self, metadata: ClusterMetadata) -> None:
        """Lead on with what was dealt before."""
        self._counts = self._partition_counts(metadata)

    def come_back(self, assigned: Iterable[TopicPartition]) -> None:
        """The leader of a cooperative group was restarted, and this is what it had been dealt.

        What nobody is known to have may have been left to nobody, for the leader to let go of.
        """
        known = {*assigned, *self._owned()}
        self.has_left_some = any(
            TopicPartition(topic, number) not in known
            for topic, count in self._counts.items()
            for number in range(count)
        )

    def has_changed(self, metadata: ClusterMetadata) -> bool:
        """Whether the topics are others than those that were dealt out."""
        return self._partition_counts(metadata) != self._counts

    def _partition_counts(self, metadata: ClusterMetadata) -> dict[str, int]:
        found = (metadata.topic(topic) for topic in sorted(self.topics))
        return {topic.name: len(topic.partitions) for topic in found if topic is not None}

    def _leaves_some(self, dealt: Mapping[str, MemberAssignment]) -> bool:
        given = {each for assignment in dealt.values() for each in assignment.partitions}
        return any(
            each not in given
            for each in self._owned()
            if each.partition < self._counts.get(each.topic, 0)
        )

    def _owned(self) -> Iterator[TopicPartition]:
        """What members had when they joined."""
        for member in self._subscriptions.values():
            yield from member.owned

    def _check_cooperative(self, name: str, dealt: Mapping[str, MemberAssignment]) -> None:
        """A partition that has an owner may be given to nobody else before he has let go of it."""
        owners: dict[TopicPartition, str] = {
            partition: member_id
            for member_id, subscription in self._subscriptions.items()
            for partition in subscription.owned
        }
        for member_id, assignment in dealt.items():
            mine = self._subscriptions[member_id].owned
            for partition in assignment.partitions:
                if partition in owners and partition not in mine:
                    raise AssignorError(
                        f"The assignor {name!r} calls itself cooperative, but gave {partition} to "
                        f"member {member_id!r} while {owners[partition]!r} still has it."
                    )
