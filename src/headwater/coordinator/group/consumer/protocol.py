"""The consumer group protocol (KIP-848): members only send heartbeats, the coordinator assigns.

A heartbeat says what has changed of a member, and may say which partitions it has. The answer tells
its epoch, and what it may have now if that is new. Joining is a heartbeat with epoch 0, leaving one
with -1, or with -2 for a static member that will be back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from headwater.base.errors import KafkaError
from headwater.base.ids import topic_id_to_text
from headwater.cluster.image.change import ImageChange
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.classic.protocol import ClassicProtocol
from headwater.coordinator.group.consumer.assigning.assignment import (
    NOTHING,
    Assignment,
    from_entries,
)
from headwater.coordinator.group.consumer.assigning.rebalance import ConsumerRebalance
from headwater.coordinator.group.consumer.assigning.target import (
    check_assignor,
    supported_assignors,
)
from headwater.coordinator.group.consumer.departure import ConsumerDeparture
from headwater.coordinator.group.consumer.description import describe_group
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.heartbeat import (
    answered,
    check_epoch,
    check_heartbeat,
    is_complete,
    updated_member,
)
from headwater.coordinator.group.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    MemberState,
)
from headwater.coordinator.group.consumer.membership import (
    check_metadata,
    check_size,
    check_static_member,
    not_a_consumer_group,
    take_static_place,
)
from headwater.coordinator.group.consumer.stored.records import current_record
from headwater.coordinator.group.consumer.stored.replay import ConsumerReplay, Replay
from headwater.coordinator.group.consumer.timers import ConsumerTimers, Deadline
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.groups import Groups
from headwater.coordinator.group.latest_image import LatestImage
from headwater.coordinator.group.migration.members import MigratingMembers
from headwater.coordinator.group.migration.migration import Migration
from headwater.coordinator.outcome import Change, Outcome
from headwater.wire.messages.consumer_group_describe import DescribedGroup
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

#: After a shard was loaded, until groups compare their topics with the cluster's once more.
_LOOK_AGAIN_MS = 10_000


class ConsumerProtocol:
    def __init__(
        self, environment: GroupEnvironment, groups: Groups, classic: ClassicProtocol
    ) -> None:
        self._image = LatestImage(environment.image)
        environment = replace(environment, image=self._image)
        self._environment = environment
        self._groups = groups
        self._timers = ConsumerTimers(environment.timers, self._fence)
        self._rebalance = ConsumerRebalance(environment, self._timers)
        self._migration = Migration(environment, groups, classic)
        self._departure = ConsumerDeparture(self._rebalance, self._migration)
        self._replay = ConsumerReplay(groups)
        classic.consumer_groups = MigratingMembers(
            environment,
            groups,
            self._timers,
            self._rebalance,
            self._migration,
            self._departure,
        )

    # -- requests --------------------------------------------------------------------------------

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: JoiningClient, now_ms: int
    ) -> Change[ConsumerGroupHeartbeatResponse]:
        check_heartbeat(request, client.api_version)
        check_assignor(request.server_assignor, self._environment.settings)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request, now_ms)
        draft = self._draft(request)
        check_size(draft.group, request.member_id, self._environment.settings)
        owned = None
        if request.topic_partitions is not None:
            owned = from_entries(request.topic_partitions)
        before = self._member(draft, request, owned)
        member = updated_member(before, request, client)
        check_metadata(draft.group, before, member, self._environment.settings)
        placed = self._rebalance.advance(draft, before, member, owned, now_ms)
        group_integer = self._environment.settings.group_integer
        session_ms = group_integer(request.group_id, "consumer.session.timeout.ms")
        self._timers.start(Deadline.SESSION, request.group_id, placed, session_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=placed.member_id,
            member_epoch=placed.epoch,
            heartbeat_interval_ms=group_integer(request.group_id, "consumer.heartbeat.interval.ms"),
        )
        if is_complete(request) or placed.assigned != before.assigned:
            response.assignment = answered(placed.assigned)
        return Change(response, draft.records)

    def _draft(self, request: ConsumerGroupHeartbeatRequest) -> GroupDraft:
        """The group, made or taken over from the classic protocol if a member joins it."""
        group = self._groups.find(request.group_id)
        if isinstance(group, ConsumerGroup):
            return GroupDraft(group)
        if request.member_epoch != JOIN_EPOCH:
            raise not_a_consumer_group(request.group_id)
        if group is None:
            return GroupDraft(ConsumerGroup(request.group_id))
        if group.is_empty:
            return GroupDraft(ConsumerGroup(request.group_id), group.tombstones())
        draft = self._migration.upgrade(group)
        for member in draft.group.members.values():
            self._watch(draft.group, member)
        return draft

    def _member(
        self,
        draft: GroupDraft,
        request: ConsumerGroupHeartbeatRequest,
        owned: Assignment | None,
    ) -> ConsumerMember:
        """The member that the heartbeat is of, as it is now; a new one is not in the group yet."""
        is_joining = request.member_epoch == JOIN_EPOCH
        member_id = request.member_id
        if member_id == "":
            member_id = topic_id_to_text(self._environment.new_uuid())
        group = draft.group
        if request.instance_id is None:
            member = group.members.get(member_id)
            if member is None and is_joining:
                return ConsumerMember(member_id)
            member = group.member(member_id)
        else:
            known = group.static_member(request.instance_id)
            if is_joining:
                return take_static_place(draft, known, member_id, is_classic=False)
            member = check_static_member(known, request.instance_id, member_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Change[ConsumerGroupHeartbeatResponse]:
        group = self._groups.find(request.group_id)
        if not isinstance(group, ConsumerGroup):
            raise not_a_consumer_group(request.group_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            known = group.static_member(request.instance_id)
            member = check_static_member(known, request.instance_id, request.member_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            # Its place is kept until its session ends, which goes on.
            away = replace(member, epoch=STATIC_LEAVE_EPOCH, revoking=NOTHING)
            return Change(response, [current_record(group.group_id, away)])
        return Change(response, self._departure.remove(group, [member], now_ms))

    def describe(self, group_id: str) -> DescribedGroup:
        group = self._groups.find(group_id)
        if not isinstance(group, ConsumerGroup):
            raise not_a_consumer_group(group_id)
        assignor = group.preferred_assignor(supported_assignors(self._environment.settings))
        return describe_group(group, assignor, self._environment.image())

    # -- time and the cluster --------------------------------------------------------------------

    def _fence(
        self, group_id: str, member_id: str, deadline: Deadline, epoch: int, now_ms: int
    ) -> Outcome:
        """A member missed a deadline."""
        group = self._groups.find_of(ConsumerGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return Outcome()
        if deadline is Deadline.REVOCATION and not (
            member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch == epoch
        ):
            return Outcome()
        self._environment.log.loses(group_id, member_id, f"it missed its {deadline}", now_ms)
        return Outcome(self._departure.remove(group, [member], now_ms))

    def on_loaded(self, now_ms: int) -> None:
        for group in self._groups:
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._watch(group, member)
        # A change may have been on its way that this shard was not told of while it was loaded.
        self._environment.timers.schedule("consumer metadata", _LOOK_AGAIN_MS, self._look_again)

    def _look_again(self, now_ms: int) -> Outcome:
        for group in self._groups:
            if isinstance(group, ConsumerGroup):
                group.is_metadata_checked = False
        return Outcome()

    def _watch(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Give a member all the time that it may have from now on."""
        if member.classic is not None:
            session_ms = member.classic.session_timeout_ms
        else:
            group_integer = self._environment.settings.group_integer
            session_ms = group_integer(group.group_id, "consumer.session.timeout.ms")
            self._rebalance.watch_revocation(group.group_id, member)
        self._timers.start(Deadline.SESSION, group.group_id, member, session_ms)

    def on_image(self, change: ImageChange, now_ms: int) -> list[Outcome]:
        self._image.hear_of(change.image)
        outcomes = []
        if change.changed_topics or change.deleted_topics:
            for group in self._groups:
                if isinstance(group, ConsumerGroup):
                    draft = self._rebalance.follow_image(group, change, now_ms)
                    if draft.records:
                        check_later = partial(_check_later, group)
                        outcomes.append(Outcome(draft.records, on_failed=check_later))
        return outcomes

    def replays(self) -> Mapping[int, Replay]:
        return self._replay.replays()


def _check_later(group: ConsumerGroup, _: KafkaError) -> None:
    group.is_metadata_checked = False
