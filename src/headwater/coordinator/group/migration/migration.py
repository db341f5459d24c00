"""A group changes its protocol while its members go on: from classic to consumer, and back.

When a member joins a classic group by a heartbeat of the consumer protocol, the group becomes a
consumer group. Its members of the classic protocol stay, with what they were assigned, and go on
with JoinGroup and its kin inside of it. When the last member of the consumer protocol has gone, the
group becomes a classic one again, and its members join anew. `group.consumer.migration.policy`
tells which of both may happen. A group without members changes its protocol in any case.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.group.classic.protocol import ClassicProtocol as ClassicGroups
from headwater.coordinator.group.classic.state import ClassicState
from headwater.coordinator.group.classic.stored.embedded_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
)
from headwater.coordinator.group.classic.stored.group import record_of
from headwater.coordinator.group.classic.stored.subscription import CONSUMER_PROTOCOL_TYPE
from headwater.coordinator.group.consumer.assigning.assignment import (
    from_names,
    named_entries,
    together,
)
from headwater.coordinator.group.consumer.assigning.topics_hash import topics_hash
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import (
    ClassicProtocol,
    ClassicSide,
    ConsumerMember,
)
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.group import Group
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.outcome import Outcome
from headwater.wire.codec import MalformedMessageError

_UPGRADES: Final = frozenset({"upgrade", "bidirectional"})
_DOWNGRADES: Final = frozenset({"downgrade", "bidirectional"})


class Migration:
    def __init__(
        self, environment: GroupEnvironment, groups: Groups, classic: ClassicGroups
    ) -> None:
        self._environment = environment
        self._groups = groups
        self._classic = classic

    # -- to the consumer protocol ----------------------------------------------------------------

    def upgrade(self, group: Group) -> GroupDraft:
        """A consumer group in the place of a classic one that has members."""
        if not isinstance(group, ClassicGroup):
            raise _refusal(group, "it is of another kind")
        if self._policy() not in _UPGRADES:
            raise _refusal(group, "that is disabled")
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise _refusal(group, "its members are no consumers")
        if len(group.members) > self._environment.settings.integer("group.consumer.max.size"):
            raise _refusal(group, "it has too many members")
        image = self._environment.image()
        draft = GroupDraft(ConsumerGroup(group.group_id), group.tombstones())
        try:
            members = [_as_consumer(group, member, image) for member in group.members.values()]
        except MalformedMessageError:
            raise _refusal(group, "its members' subscriptions cannot be read") from None
        for member in members:
            draft.describe_member(member)
        topics = draft.group.subscribed_topics()
        draft.begin_at(group.generation, topics_hash(topics, image))
        for member in members:
            draft.put_target(member.member_id, member.assigned)
        draft.put_targets({})
        for member in members:
            draft.place_member(member)
        return draft

    # -- and back --------------------------------------------------------------------------------

    def downgrade_if_all_classic(self, draft: GroupDraft, now_ms: int) -> bool:
        """Make a classic group of what is left, if there is no reason against it."""
        group = draft.group
        size_max = self._environment.settings.integer("group.max.size")
        if (
            group.is_empty
            or len(group.classic_members) < len(group.members)
            or len(group.members) > size_max
            or self._policy() not in _DOWNGRADES
        ):
            return False
        classic = _as_classic(group, self._environment.image(), now_ms)
        draft.records += [*group.tombstones(), record_of(classic)]
        group_id, generation = group.group_id, group.epoch
        # When this runs the records were replayed, or there is nothing to do.
        self._environment.timers.schedule(
            ("consumer downgrade", group_id),
            0,
            lambda now_ms: self._adopt(group_id, generation, now_ms),
        )
        return True

    def _adopt(self, group_id: str, generation: int, now_ms: int) -> Outcome:
        if self._groups.find_of(ClassicGroup, group_id) is not None:
            group = self._classic.adopt(group_id, now_ms)
            # The rebalance that begins here is soft. So the record tells of a generation that no
            # member knows: if another coordinator takes over, they join again there. Here they may
            # go on in their own until the rebalance is done.
            group.generation = generation
        return Outcome()

    def _policy(self) -> str:
        return self._environment.settings.text("group.consumer.migration.policy").lower()


def _refusal(group: Group, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"The classic group {group.group_id} cannot become a consumer group: {reason}.",
    )


def _as_consumer(group: ClassicGroup, member: ClassicMember, image: ClusterImage) -> ConsumerMember:
    """A member with what it was last assigned; the new epoch will make it join again."""
    metadata = member.protocols.get(group.protocol_name or "")
    if metadata is None:
        metadata = next(iter(member.protocols.values()))
    subscription = read_subscription(metadata)
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _refusal(group, "its assignor keeps data of its own, which would be lost")
    assigned = ((entry.topic, entry.partitions) for entry in assignment.assigned_partitions)
    partitions = from_names(assigned, image)
    if not member.assignment and group.state is not ClassicState.STABLE:
        # Its assignment was dropped in a rebalance, but a cooperative member keeps what it has.
        owned = ((entry.topic, entry.partitions) for entry in subscription.owned_partitions)
        partitions = from_names(owned, image)
    return ConsumerMember(
        member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(
            member.session_timeout_ms,
            tuple(ClassicProtocol(name, bytes(data)) for name, data in member.protocols.items()),
        ),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=partitions,
    )


def _as_classic(group: ConsumerGroup, image: ClusterImage, now_ms: int) -> ClassicGroup:
    """The same members, with what they have as their assignments, until they join."""
    classic = ClassicGroup(
        group.group_id,
        state=ClassicState.STABLE,
        generation=group.epoch + 1,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        state_since_ms=now_ms,
    )
    for member in group.classic_members:
        classic.add(_as_classic_member(member, image))
    classic.protocol_name = classic.elect_protocol()
    return classic


def _as_classic_member(member: ConsumerMember, image: ClusterImage) -> ClassicMember:
    side = member.classic or ClassicSide(0, ())
    owned = named_entries(together(member.assigned, member.revoking), image)
    entries = [(name, numbers) for name, _, numbers in owned]
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=side.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=dict(side.protocols),
        assignment=write_assignment(entries, side.protocols[0].metadata),
    )
