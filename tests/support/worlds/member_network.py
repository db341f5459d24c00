"""Requests of group members to a real group coordinator, in virtual time, over a bad network.

`MemberNetwork` sends what machines ask for to a shard in memory and brings the answers back: late,
or not at all. Requests of one member over one lane arrive in the order in which they were sent.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any

from headwater.base.errors import ErrorCode, KafkaError, NetworkError, RequestTimedOutError
from headwater.base.ids import TopicPartition
from headwater.client.machines.ask import Ask
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.offsets.commit import Committer, NewOffset
from headwater.coordinator.group.offsets.fetch import WantedOffset
from headwater.sim.trace import Trace
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.worlds.consumer_world import ConsumerWorld
from tests.support.worlds.shard_world import START_MS, Answer

CLIENT = JoiningClient("app", "/10.0.0.2", 9)
TICK_MS = 100

#: What each request is answered with when the coordinator refuses it as a whole.
_REFUSALS: Mapping[type, Callable[[ErrorCode], Any]] = {
    JoinGroupRequest: lambda code: JoinGroupResponse(error_code=code),
    SyncGroupRequest: lambda code: SyncGroupResponse(error_code=code),
    HeartbeatRequest: lambda code: HeartbeatResponse(error_code=code),
    LeaveGroupRequest: lambda code: LeaveGroupResponse(error_code=code),
    ConsumerGroupHeartbeatRequest: lambda code: ConsumerGroupHeartbeatResponse(error_code=code),
    OffsetFetchRequest: lambda code: OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(error_code=code)]
    ),
}


class MemberNetwork:
    def __init__(self, seed: int, coordinator: ConsumerWorld) -> None:
        self.generator = random.Random(seed)
        self.coordinator = coordinator
        self.trace = Trace(lambda: self.now_s)
        #: How often a request or an answer is lost, and the coordinator is not ready.
        self.loss_rate = 0.0
        self.refusal_rate = 0.0
        self.delay_ms_max = 30
        self.committed: dict[TopicPartition, int] = {}
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()
        self._open: list[tuple[Answer[Any], Callable[[Any], object]]] = []
        self._last_arrival_ms: dict[Hashable, int] = {}

    @property
    def now_ms(self) -> int:
        return self.coordinator.now_ms

    @property
    def now_s(self) -> float:
        return (self.now_ms - START_MS) / 1000

    def after(self, delay_ms: float, action: Callable[[], object]) -> None:
        # Never at once: whoever wants to be called is not in the middle of something then.
        due_ms = self.now_ms + max(1, round(delay_ms))
        heapq.heappush(self._events, (due_ms, next(self._numbers), action))

    def run(self, duration_ms: int, after_each: Callable[[], object] | None = None) -> None:
        until_ms = self.now_ms + duration_ms
        while self.now_ms < until_ms:
            next_ms = min(until_ms, self.now_ms + TICK_MS)
            if self._events:
                next_ms = min(next_ms, max(self._events[0][0], self.now_ms))
            self.coordinator.advance(next_ms - self.now_ms)
            self._collect()
            while self._events and self._events[0][0] <= self.now_ms:
                heapq.heappop(self._events)[2]()
                self._collect()
                if after_each is not None:
                    after_each()

    # -- sending ---------------------------------------------------------------------------------

    def send(self, sender: Hashable, ask: Ask) -> None:
        is_done = False

        def finish(outcome: Any) -> None:
            nonlocal is_done
            if is_done:
                return
            is_done = True
            self._note(sender, outcome)
            if isinstance(outcome, KafkaError):
                ask.on_failure(outcome, self.now_s)
            else:
                ask.on_answer(outcome, self.now_s)

        self._note(sender, ask.request)
        place = (sender, ask.lane)
        arrival_ms = max(self.now_ms + self._delay_ms(), self._last_arrival_ms.get(place, 0))
        self._last_arrival_ms[place] = arrival_ms
        is_lost, is_answer_lost = self._happens(self.loss_rate), self._happens(self.loss_rate)

        def arrive() -> None:
            if is_lost:
                self.after(self._delay_ms(), lambda: finish(NetworkError("It was cut.")))
                return
            answer = self._dispatch(ask)
            outcome = NetworkError("It was cut.") if is_answer_lost else None
            self._open.append(
                (
                    answer,
                    lambda given: self.after(
                        self._delay_ms(), lambda: finish(given if outcome is None else outcome)
                    ),
                )
            )

        self.after(arrival_ms - self.now_ms, arrive)
        self.after(ask.timeout_s * 1000, lambda: finish(RequestTimedOutError("Too late.")))

    def _note(self, sender: Hashable, message: object) -> None:
        crc = zlib.crc32(repr(message).encode())
        self.trace.note("network", f"{sender} {type(message).__name__} {crc:08x}")

    def _delay_ms(self) -> int:
        return self.generator.randint(1, self.delay_ms_max)

    def _happens(self, rate: float) -> bool:
        return rate > 0 and self.generator.random() < rate

    def _collect(self) -> None:
        """Send the answers that the coordinator has given by now."""
        given = [entry for entry in self._open if entry[0].is_given]
        self._open = [entry for entry in self._open if not entry[0].is_given]
        for answer, deliver in given:
            deliver(answer.value)

    def fail_over(self) -> None:
        """Another broker takes over; who waits for an answer is told to look for it."""
        before = self.coordinator.shard
        self.coordinator.take_over()
        before.close(KafkaError(ErrorCode.NOT_COORDINATOR))
        self._collect()

    # -- the coordinator's side ------------------------------------------------------------------

    def _dispatch(self, ask: Ask) -> Answer[Any]:
        request = ask.request
        given: Answer[Any] = Answer()
        if isinstance(request, OffsetCommitRequest):
            given.take(self._commit(request))
            return given
        refuse = _REFUSALS[type(request)]
        if self._happens(self.refusal_rate):
            given.take(refuse(self.generator.choice(_PASSING)))
            return given
        inner = self._ask(request)

        class Converted(Answer[Any]):
            @property
            def is_given(self) -> bool:
                if inner.error is not None:
                    self.value = refuse(inner.error.code)
                elif inner.value is not None:
                    self.value = inner.value
                return self.value is not None

        return Converted()

    def _ask(self, request: Any) -> Answer[Any]:
        world = self.coordinator
        refused: Answer[Any] = Answer()
        try:
            match request:
                case JoinGroupRequest():
                    return world.ask(
                        lambda shard, now_ms, reply: shard.classic.join(
                            request, CLIENT, now_ms, reply
                        )
                    )
                case SyncGroupRequest():
                    return world.ask(
                        lambda shard, now_ms, reply: shard.classic.sync(request, now_ms, reply)
                    )
                case HeartbeatRequest():
                    world.shard.classic.heartbeat(request, world.now_ms)
                    refused.take(HeartbeatResponse())
                case LeaveGroupRequest():
                    return world.write(lambda shard, now_ms: shard.classic.leave(request, now_ms))
                case ConsumerGroupHeartbeatRequest():
                    return world.write(
                        lambda shard, now_ms: shard.consumer.heartbeat(request, CLIENT, now_ms)
                    )
                case OffsetFetchRequest():
                    refused.take(self._fetch(request))
        except KafkaError as error:
            refused.take(error)
        return refused

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        offsets = [
            NewOffset(TopicPartition(topic.name, each.partition_index), each.committed_offset)
            for topic in request.topics
            for each in topic.partitions
        ]
        committer = Committer(
            request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
        )
        try:
            if self._happens(self.refusal_rate):
                raise KafkaError(self.generator.choice(_PASSING))
            answer = self.coordinator.write(
                lambda shard, now_ms: shard.offsets.commit(
                    request.group_id, committer, offsets, now_ms, api_version=9, retention_ms=-1
                )
            )
            codes = {
                new.topic_partition: code for new, code in zip(offsets, answer.get(), strict=True)
            }
        except KafkaError as error:
            codes = {new.topic_partition: error.code for new in offsets}
        for new in offsets:
            if codes[new.topic_partition] is ErrorCode.NONE:
                before = self.committed.get(new.topic_partition, -1)
                assert new.offset >= before, f"{new} undoes {before}"
                self.committed[new.topic_partition] = new.offset
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=codes[TopicPartition(topic.name, each.partition_index)],
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        [group] = request.groups
        topics: list[OffsetFetchResponseTopics] = []
        for topic in group.topics or ():
            wanted = [
                WantedOffset(TopicPartition(topic.name, number))
                for number in topic.partition_indexes
            ]
            fetched = self.coordinator.shard.offsets.fetch(
                group.group_id, wanted, require_stable=request.require_stable
            )
            topics.append(
                OffsetFetchResponseTopics(
                    name=topic.name,
                    partitions=[
                        OffsetFetchResponsePartitions(
                            partition_index=each.topic_partition.partition,
                            committed_offset=each.offset,
                        )
                        for each in fetched
                    ],
                )
            )
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)]
        )


_PASSING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
