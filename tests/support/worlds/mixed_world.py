"""A consumer of the classic protocol, for groups that have members of both protocols.

It is a cooperative one: it keeps what it has while it joins, gives up what it is not assigned any
more, and joins again after that. An eager one gives up everything before it joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.classic.stored.embedded_protocol import (
    read_assignment,
    write_assignment,
)
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import Outcome, Reply
from headwater.coordinator.stored_record import encode_versioned
from headwater.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.support.worlds.consumer_world import GROUP, Client, ConsumerWorld
from tests.support.worlds.shard_world import Answer

R = TypeVar("R")

APP = JoiningClient("app", "/10.0.0.2", 9)
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class ClassicClient:
    def __init__(
        self,
        world: ConsumerWorld,
        topics: Iterable[str],
        *,
        instance_id: str | None = None,
        is_eager: bool = False,
        protocols: Iterable[str] = ("range", "cooperative-sticky"),
    ) -> None:
        self.world = world
        self.topics = list(topics)
        self.instance_id = instance_id
        self.is_eager = is_eager
        self.protocols = list(protocols)
        self.member_id = ""
        self.generation = -1
        self.owned: set[tuple[str, int]] = set()
        #: As a leader: what it dealt out.
        self.dealt: list[tuple[str, int]] | None = None
        self.join_answer: Answer[JoinGroupResponse] | None = None
        self.sync_answer: Answer[SyncGroupResponse] | None = None

    def metadata(self) -> bytes:
        owned: dict[str, list[int]] = {}
        for name, number in sorted(self.owned):
            owned.setdefault(name, []).append(number)
        subscription = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[
                TopicPartition(topic=name, partitions=numbers) for name, numbers in owned.items()
            ],
            generation_id=self.generation,
        )
        return encode_versioned(subscription, 3)

    # -- requests --------------------------------------------------------------------------------

    def join(self) -> None:
        """Ask to join; the answer may come later, and is taken by `go_on`."""
        if self.is_eager:
            self.owned.clear()
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=self.metadata())
                for name in self.protocols
            ],
        )
        self.join_answer = self._ask(
            lambda shard, now_ms, reply: shard.classic.join(request, APP, now_ms, reply)
        )
        if not self.join_answer.is_given or self.join_answer.error is not None:
            return
        answer = self.join_answer.get()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()

    def sync(self, assignments: dict[str, list[tuple[str, list[int]]]] | None = None) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self.protocols[0],
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id, assignment=write_assignment(entries, self.metadata())
                )
                for member_id, entries in (assignments or {}).items()
            ],
        )
        self.sync_answer = self._ask(
            lambda shard, now_ms, reply: shard.classic.sync(request, now_ms, reply)
        )

    def _ask(self, operation: Callable[[GroupShard, int, Reply[R]], Outcome]) -> Answer[R]:
        """The answer, also if it is an error that the coordinator gives at once."""
        try:
            return self.world.ask(operation)
        except KafkaError as error:
            answer: Answer[R] = Answer()
            answer.take(error)
            return answer

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            generation_id=self.generation,
        )
        try:
            self.world.shard.classic.heartbeat(request, self.world.now_ms)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        answer = self.world.write(lambda shard, now_ms: shard.classic.leave(request, now_ms)).get()
        self.owned.clear()
        self.world.check_replay()
        return ErrorCode.from_wire(answer.members[0].error_code)

    # -- behaviour -------------------------------------------------------------------------------

    def go_on(self) -> None:
        """The next thing that a consumer would do, now that the world has changed."""
        try:
            self._go_on()
        except KafkaError as error:
            self.join_answer = self.sync_answer = None
            if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""
            if error.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                self.generation = -1
                self.owned.clear()
            self.join()
        self.world.check_replay()

    def _go_on(self) -> None:
        if self.join_answer is not None:
            if self.join_answer.is_given:
                answer = self.join_answer.get()
                self.join_answer = None
                self.member_id, self.generation = answer.member_id, answer.generation_id
                is_leader = answer.leader == answer.member_id
                self.dealt = self._partitions() if is_leader else None
                self.sync(self._assign(answer) if is_leader else None)
        elif self.sync_answer is not None:
            if self.sync_answer.is_given:
                self._take(self.sync_answer.get().assignment)
                self.sync_answer = None
        elif self.member_id == "" or self.dealt not in (None, self._partitions()):
            self.join()  # A leader joins again when the topics have changed.
        elif (code := self.heartbeat()) is not ErrorCode.NONE:
            raise KafkaError(code)

    def _take(self, assignment: bytes) -> None:
        told = {
            (entry.topic, number)
            for entry in read_assignment(assignment).assigned_partitions
            for number in entry.partitions
        }
        lost = self.owned - told
        self.owned = told
        if lost and not self.is_eager:
            self.join()  # So that others may have what it has given up.

    def _assign(self, answer: JoinGroupResponse) -> dict[str, list[tuple[str, list[int]]]]:
        """As the leader of a classic group: deal all partitions out in turns."""
        member_ids = sorted(member.member_id for member in answer.members)
        dealt: dict[str, list[tuple[str, list[int]]]] = {member_id: [] for member_id in member_ids}
        for index, (name, number) in enumerate(self._partitions()):
            dealt[member_ids[index % len(member_ids)]].append((name, [number]))
        return dealt

    def _partitions(self) -> list[tuple[str, int]]:
        image = self.world.image
        return [
            (name, number)
            for name in self.topics
            if name in image.topics
            for number in range(len(image.topics[name].partitions))
        ]


def settle_classic(clients: list[ClassicClient], rounds: int = 12) -> None:
    """Let members of a classic group go on until they have come to rest."""
    for _ in range(rounds):
        for client in clients:
            client.go_on()


def settle_mixed(consumers: list[Client], classics: list[ClassicClient]) -> None:
    """The same for a group with members of both protocols."""
    for _ in range(12):
        for consumer in consumers:
            consumer.beat_or_rejoin()
        for classic in classics:
            classic.go_on()
