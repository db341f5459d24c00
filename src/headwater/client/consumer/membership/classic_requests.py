"""Who a consumer is in a group of the classic protocol, and the requests that it sends as such.

A member id is handed out by the coordinator with the first answer, and a generation with the end of
each rebalance: requests with an old one are refused, which is how a member that was cut off for too
long learns that others have its partitions now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import Assignor, MemberSubscription
from headwater.client.assignors.consumer_protocol import PROTOCOL_TYPE, write_subscription
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NO_GENERATION = -1


@dataclass(slots=True)
class ClassicMember:
    group_id: str
    instance_id: str | None
    rack_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = ""
    generation_id: int = NO_GENERATION
    #: The assignor that the group has chosen.
    protocol_name: str | None = None

    @property
    def identity(self) -> GroupIdentity:
        return GroupIdentity(self.group_id, self.generation_id, self.member_id, self.instance_id)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def forget_generation(self) -> None:
        self.generation_id = NO_GENERATION
        self.protocol_name = None

    def forget_membership(self) -> None:
        self.forget_generation()
        self.member_id = ""

    def join_request(
        self,
        topics: Collection[str],
        owned: frozenset[TopicPartition],
        assignors: Sequence[Assignor],
        reason: str | None,
    ) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=assignor.name, metadata=self._subscription(topics, owned, assignor)
                )
                for assignor in assignors
            ],
            reason=reason,
        )

    def _subscription(
        self, topics: Collection[str], owned: frozenset[TopicPartition], assignor: Assignor
    ) -> bytes:
        subscription = MemberSubscription(
            topics=tuple(sorted(topics)),
            owned=owned,
            user_data=assignor.subscription_user_data(topics),
            generation_id=self.generation_id,
            rack_id=self.rack_id,
        )
        return write_subscription(subscription)

    def sync_request(self, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        """`assignments` are the members' if this one leads the group, and else empty."""
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def leave_request(self, reason: str) -> LeaveGroupRequest:
        # Versions before 3 have room for one member id, the later ones for a list.
        member = MemberIdentity(
            member_id=self.member_id, group_instance_id=self.instance_id, reason=reason
        )
        return LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id, members=[member])
