"""JoinGroup of a member of the classic protocol to a consumer group.

It is answered at once: nobody waits for the other members. What it tells of itself counts as in a
heartbeat of the consumer protocol, and its answer tells its epoch as a generation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.classic.rebalancing.join import rebalance_timeout_ms
from headwater.coordinator.group.classic.stored.embedded_protocol import read_subscription
from headwater.coordinator.group.classic.stored.subscription import CONSUMER_PROTOCOL_TYPE
from headwater.coordinator.group.consumer.assigning.assignment import from_names
from headwater.coordinator.group.consumer.assigning.rebalance import ConsumerRebalance
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import (
    ClassicProtocol,
    ClassicSide,
    ConsumerMember,
)
from headwater.coordinator.group.consumer.membership import (
    check_metadata,
    check_size,
    check_static_member,
    take_static_place,
)
from headwater.coordinator.group.consumer.timers import ConsumerTimers, Deadline
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.migration.migration import Migration
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.codec import MalformedMessageError
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: From this version on a dynamic member is handed its id first.
_MEMBER_ID_FIRST_SINCE: Final = 4


class MigratingJoin:
    def __init__(
        self,
        environment: GroupEnvironment,
        timers: ConsumerTimers,
        rebalance: ConsumerRebalance,
        migration: Migration,
    ) -> None:
        self._environment = environment
        self._timers = timers
        self._rebalance = rebalance
        self._migration = migration

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome:
        member_id = request.member_id or f"{client.client_id}-{self._environment.new_uuid()}"
        check_size(group, request.member_id, self._environment.settings)
        subscription = _check_protocols(group, request)
        is_new = request.member_id == ""
        is_dynamic = request.group_instance_id is None
        if is_new and is_dynamic and client.api_version >= _MEMBER_ID_FIRST_SINCE:
            reply.send(
                JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            )
            return Outcome()
        draft = GroupDraft(group)
        before = _joining_member(draft, request.group_instance_id, member_id, is_new=is_new)
        was_classic = before.classic is not None
        member = _updated(before, request, client, subscription)
        check_metadata(draft.group, before, member, self._environment.settings)
        owned = from_names(
            ((entry.topic, entry.partitions) for entry in subscription.owned_partitions),
            self._environment.image(),
        )
        placed = self._rebalance.advance(draft, before, member, owned, now_ms)
        if not was_classic:
            # It may have taken the place of the group's last member of the consumer protocol.
            self._migration.downgrade_if_all_classic(draft, now_ms)
        answer = JoinGroupResponse(
            member_id=member_id,
            generation_id=placed.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )

        def on_safe() -> None:
            self._timers.cancel(Deadline.REJOIN, group.group_id, member_id)
            self._timers.hear_of_classic(group.group_id, placed)
            self._timers.start(Deadline.SYNC, group.group_id, placed, placed.rebalance_timeout_ms)
            reply.send(answer)

        return Outcome(draft.records, on_safe, reply.fail)


def _joining_member(
    draft: GroupDraft, instance_id: str | None, member_id: str, *, is_new: bool
) -> ConsumerMember:
    if instance_id is None:
        return draft.group.members.get(member_id) or ConsumerMember(member_id)
    known = draft.group.static_member(instance_id)
    if is_new:
        return take_static_place(draft, known, member_id, is_classic=True)
    return check_static_member(known, instance_id, member_id)


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    client: JoiningClient,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    protocols = tuple(
        ClassicProtocol(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols
    )
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        topics=frozenset(subscription.topics),
        regex=None,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        classic=ClassicSide(request.session_timeout_ms, protocols),
    )


def _check_protocols(
    group: ConsumerGroup, request: JoinGroupRequest
) -> ConsumerProtocolSubscription:
    """The subscription, which is the same in all protocols that a consumer offers.

    One of them must be what all other members of the classic protocol offer too, so that the group
    could go back to it.
    """
    names = {protocol.name for protocol in request.protocols}
    for other in group.classic_members:
        if other.member_id != request.member_id and other.classic is not None:
            names &= {protocol.name for protocol in other.classic.protocols}
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not names:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"No protocol of the member is supported by all of group {group.group_id}.",
        )
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessageError as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"The subscription cannot be read: {error}"
        ) from None
