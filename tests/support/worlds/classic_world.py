"""A shard of groups in virtual time, with the requests that members of classic groups send.

    world = ClassicWorld()
    anna = world.enter()          # has its member id, and waits for the others
    world.sync(anna, {anna: b"0"})

Members are told apart by their member ids. Errors come out of an answer, whether the operation
raised them or gave them later.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.image import BrokerInfo, ClusterImage
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.stored_record import encode_versioned
from headwater.coordinator.timers import Timers
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from headwater.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.worlds.shard_world import Answer, ManualTimers, ShardWorld

R = TypeVar("R")

GROUP = "orders"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
MOVED = KafkaError(ErrorCode.NOT_COORDINATOR, "The coordinator has moved.")
NOT_WRITTEN = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "It cannot be written.")


def subscription(*topics: str) -> bytes:
    """What a consumer says when it joins."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 3)


class ClassicWorld(ShardWorld[GroupShard]):
    def __init__(
        self, settings: Mapping[str, str] | None = None, *, brokers: int = 1, seed: int = 0
    ) -> None:
        self.settings = BrokerSettings.from_texts({"broker.id": "0", **(settings or {})})
        self.image = ClusterImage(
            brokers={number: BrokerInfo(number, ()) for number in range(brokers)}
        )
        self._random = random.Random(seed)
        super().__init__(self._shard)

    def _shard(self, timers: Timers) -> GroupShard:
        return GroupShard(GroupEnvironment(self.settings, lambda: self.image, timers, self._random))

    def fail_over(self) -> None:
        """Another broker takes over, with nothing but the topic."""
        before, now_ms = self.shard, self.now_ms
        self.timers = ManualTimers()
        self.timers.now_ms = now_ms
        self.shard = self._shard(self.timers)
        for offset, (record, producer, is_committed, written_ms) in enumerate(self.topic):
            if record is not None:
                self.shard.replay(record, offset, producer, written_ms)
            elif producer is not None:
                self.shard.replay_transaction_end(producer, is_committed=is_committed)
        self.shard.on_loaded(now_ms)
        before.close(MOVED)

    # -- requests --------------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        instance: str | None = None,
        protocols: Sequence[str] | Mapping[str, bytes] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        client_id: str = "app",
    ) -> Answer[JoinGroupResponse]:
        if not isinstance(protocols, Mapping):
            protocols = dict.fromkeys(protocols, subscription("events"))
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols.items()
            ],
        )
        client = JoiningClient(client_id, "/192.0.2.9", version)
        return caught(
            lambda: self.ask(
                lambda shard, now_ms, reply: shard.classic.join(request, client, now_ms, reply)
            )
        )

    def enter(
        self,
        *,
        group: str = GROUP,
        protocols: Sequence[str] | Mapping[str, bytes] = ("range",),
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> tuple[str, Answer[JoinGroupResponse]]:
        """Get a member id, and join with it."""
        first = self.join(
            group=group, protocols=protocols, session_ms=session_ms, rebalance_ms=rebalance_ms
        ).get()
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.member_id
        answer = self.join(
            member_id,
            group=group,
            protocols=protocols,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
        )
        return member_id, answer

    def sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
    ) -> Answer[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            generation_id=self.generation(group) if generation is None else generation,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
        )
        return caught(
            lambda: self.ask(
                lambda shard, now_ms, reply: shard.classic.sync(request, now_ms, reply)
            )
        )

    def heartbeat(
        self,
        member_id: str,
        *,
        generation: int | None = None,
        group: str = GROUP,
        instance: str | None = None,
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group,
            member_id=member_id,
            group_instance_id=instance,
            generation_id=self.generation(group) if generation is None else generation,
        )
        try:
            self.shard.classic.heartbeat(request, self.now_ms)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def leave(
        self, *members: str | MemberIdentity, group: str = GROUP
    ) -> Answer[LeaveGroupResponse]:
        request = LeaveGroupRequest(
            group_id=group,
            members=[
                MemberIdentity(member_id=each) if isinstance(each, str) else each
                for each in members
            ],
        )
        return caught(
            lambda: self.write(lambda shard, now_ms: shard.classic.leave(request, now_ms))
        )

    # -- looking ---------------------------------------------------------------------------------

    def group(self, group: str = GROUP) -> ClassicGroup:
        found = self.shard.groups.find(group)
        assert isinstance(found, ClassicGroup)
        return found

    def generation(self, group: str = GROUP) -> int:
        found = self.shard.groups.find_of(ClassicGroup, group)
        return -1 if found is None else found.generation

    def state(self, group: str = GROUP) -> str:
        return self.group(group).state_name

    def timers_of_groups(self) -> list[Hashable]:
        """The timers that classic groups have set."""
        return classic_timers(self.timers)

    # -- groups that are ready -------------------------------------------------------------------

    def stable_group(
        self, size: int = 2, *, session_ms: int = SESSION_MS, rebalance_ms: int = REBALANCE_MS
    ) -> list[str]:
        """A stable group of dynamic members, the leader first; each is assigned its own id."""
        member_ids: list[str] = []
        for _ in range(size):
            member_id, _ = self.enter(session_ms=session_ms, rebalance_ms=rebalance_ms)
            for other_id in member_ids:
                self.join(other_id, session_ms=session_ms, rebalance_ms=rebalance_ms)
            member_ids.append(member_id)
        self.settle_generation(member_ids)
        return member_ids

    def settle_generation(self, member_ids: Sequence[str]) -> None:
        """Let all members, of whom one leads, ask for their assignments."""
        leader_id = self.group().leader_id
        assignments = {member_id: member_id.encode() for member_id in member_ids}
        answers = [
            self.sync(member_id, assignments if member_id == leader_id else None)
            for member_id in member_ids
        ]
        assert [answer.get().assignment for answer in answers] == list(assignments.values())
        assert self.state() == "Stable"


def classic_timers(timers: ManualTimers) -> list[Hashable]:
    keys = timers.keys()
    return [key for key in keys if isinstance(key, tuple) and "classic" in key[0]]


def caught(ask: Callable[[], Answer[R]]) -> Answer[R]:
    """An answer also of an operation that raises."""
    try:
        return ask()
    except KafkaError as error:
        answer: Answer[R] = Answer()
        answer.take(error)
        return answer


def code(answer: Answer[Any]) -> ErrorCode:
    """How it was answered; fails if it was not yet."""
    if answer.error is not None:
        return answer.error.code
    return ErrorCode.from_wire(answer.get().error_code)
