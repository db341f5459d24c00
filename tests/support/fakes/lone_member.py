"""A member of a classic group under a microscope, and what its coordinator may answer."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
)
from headwater.client.assignors.consumer_protocol import (
    read_assignment,
    write_assignment,
    write_subscription,
)
from headwater.client.assignors.known_assignors import make_assignors
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.membership.classic_membership import ClassicMembership
from headwater.client.consumer.membership.membership import RebalanceKind, Subscription
from headwater.client.machines.ask import CoordinatorOf
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.fakes.lone_machine import LoneMachine

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COORDINATOR = CoordinatorOf(CoordinatorKind.GROUP, "readers")
REVOKED, LOST, ASSIGNED = RebalanceKind.REVOKED, RebalanceKind.LOST, RebalanceKind.ASSIGNED


def metadata_answer(counts: Mapping[str, int]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[MetadataResponsePartition(partition_index=n) for n in range(count)],
            )
            for name, count in counts.items()
        ]
    )


class Member(LoneMachine):
    """A membership with its user: topic `a` has two partitions and `b` one."""

    membership: ClassicMembership

    def __init__(
        self,
        assignors: Iterable[object] = ("range",),
        settings: Mapping[str, object] | None = None,
        *,
        has_polled: bool = True,
    ) -> None:
        self.coordinators = CoordinatorCache()
        self.coordinators.learn(COORDINATOR, 1)
        self.metadata = ClusterMetadata()
        self.metadata.learn(metadata_answer({"a": 2, "b": 1}), None)
        self.refreshed: list[Collection[str]] = []
        self.notified_count = 0
        config = {"bootstrap.servers": "localhost:9092", "group.id": "readers"}
        self.membership = ClassicMembership(
            parse_settings(CONSUMER_SETTINGS, {**config, **(settings or {})}, {}),
            coordinators=self.coordinators,
            metadata=self.metadata,
            assignors=make_assignors(assignors),
            policy=RetryPolicy(),
            generator=random.Random(1),
            refresh=self.refreshed.append,
            notify=self._notified,
        )
        super().__init__(self.membership)
        if has_polled:
            self.membership.polled(self.now_s)

    def _notified(self) -> None:
        self.notified_count += 1

    def subscribe(self, *topics: str, pattern: str | None = None) -> None:
        self.membership.subscribe(Subscription(frozenset(topics), pattern), self.now_s)

    def learn(self, counts: Mapping[str, int]) -> None:
        self.metadata.learn(metadata_answer(counts), None)
        self.membership.metadata_changed(self.now_s)

    def handle(self, kind: RebalanceKind, *partitions: TopicPartition) -> None:
        """The event must be this one; the user handles it."""
        event = self.membership.event
        assert event is not None
        assert (event.kind, set(event.partitions)) == (kind, set(partitions))
        owned = set(self.membership._ownership.owned)
        owned = owned | event.partitions if kind is ASSIGNED else owned - event.partitions
        self.membership.event_handled(owned, self.now_s)

    def join(self, generation: int = 1, leader: str = "other", protocol: str = "range") -> None:
        self.answer(
            JoinGroupRequest,
            JoinGroupResponse(
                generation_id=generation, leader=leader, member_id="me", protocol_name=protocol
            ),
        )

    def sync(self, *partitions: TopicPartition) -> None:
        assignment = write_assignment(MemberAssignment(partitions))
        self.answer(SyncGroupRequest, SyncGroupResponse(assignment=assignment))

    def settle(self, *partitions: TopicPartition, protocol: str = "range") -> None:
        """Subscribe, and become a member that has these."""
        self.subscribe("a", "b")
        self.join(protocol=protocol)
        self.sync(*partitions)
        self.handle(ASSIGNED, *partitions)
        assert self.membership.is_stable

    def beat(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.wait_for(HeartbeatRequest)
        self.answer(HeartbeatRequest, HeartbeatResponse(error_code=code))


def lead(
    member: Member,
    wanted: Mapping[str, Iterable[str]],
    *,
    owned: Mapping[str, tuple[TopicPartition, ...]] | None = None,
    **fields: object,
) -> None:
    answer = JoinGroupResponse(
        generation_id=1,
        leader="me",
        member_id="me",
        protocol_name="range",
        members=[
            JoinGroupResponseMember(
                member_id=name,
                metadata=write_subscription(
                    MemberSubscription(tuple(topics), owned=frozenset((owned or {}).get(name, ())))
                ),
            )
            for name, topics in wanted.items()
        ],
    )
    for name, value in fields.items():
        setattr(answer, name, value)
    member.answer(JoinGroupRequest, answer)


def dealt(member: Member) -> dict[str, set[TopicPartition]]:
    request, _ = member.take(SyncGroupRequest)
    return {
        each.member_id: set(read_assignment(each.assignment).partitions)
        for each in request.assignments
    }
