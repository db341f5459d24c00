"""Consumers as far as their group concerns them, with a real coordinator and without a broker.

A `FakeConsumer` has the machines of a consumer for its group, and plays the rest: it polls,
handles events as the consumer's core does (commit, let go, go on), "reads" by moving a position on,
and commits. `MemberWorld` has several of them in one group, and looks after each event whether a
partition has two owners that the coordinator believes in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.assignors.assignor import Assignor
from headwater.client.assignors.known_assignors import make_assignors
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.commits import OffsetCommits
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.classic_membership import ClassicMembership
from headwater.client.consumer.membership.consumer_membership import ConsumerMembership
from headwater.client.consumer.membership.membership import RebalanceKind, Subscription
from headwater.client.machines.ask import Ask, Machine
from headwater.client.machines.completion import Completion
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.worlds.consumer_world import ConsumerWorld
from tests.support.worlds.member_network import MemberNetwork

GROUP = "readers"
SESSION_MS = 10_000
POLL_LIMIT_MS = 15_000

SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.migration.policy": "bidirectional",
}

History = list[tuple[RebalanceKind, frozenset[TopicPartition]]]


class FakeConsumer:
    def __init__(
        self,
        network: MemberNetwork,
        name: str,
        subscription: Subscription,
        *,
        protocol: str = "classic",
        assignors: Iterable[object] = ("range",),
        instance_id: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.network = network
        self.name = name
        self.is_alive = True
        self.polls = True
        self.is_closed = False
        #: Whether it reads, and commits that.
        self.reads = True
        self.poll_interval_ms = 200
        self.owned: set[TopicPartition] = set()
        self.history: History = []
        self.positions: dict[TopicPartition, int] = {}
        self._questions: dict[TopicPartition, object] = {}
        self.metadata = ClusterMetadata()
        self._is_handling = False
        self._step_is_due = False
        self._timer = 0
        self._generator = random.Random(f"{name}-{network.generator.random()}")
        coordinators = CoordinatorCache()
        policy = RetryPolicy()
        config: dict[str, object] = {"group.id": GROUP, "max.poll.interval.ms": POLL_LIMIT_MS}
        if instance_id is not None:
            config["group.instance.id"] = instance_id
        config["group.protocol"] = protocol
        if protocol == "classic":
            config["session.timeout.ms"] = SESSION_MS
        config["bootstrap.servers"] = "localhost:9092"
        values = parse_settings(CONSUMER_SETTINGS, {**config, **(settings or {})}, {})
        self.membership: ClassicMembership | ConsumerMembership
        if protocol == "classic":
            self.assignors: list[Assignor] = make_assignors(assignors)
            self.membership = ClassicMembership(
                values,
                coordinators=coordinators,
                metadata=self.metadata,
                assignors=self.assignors,
                policy=policy,
                generator=self._generator,
                refresh=self._refresh,
                notify=self.wake,
            )
        else:
            self.membership = ConsumerMembership(
                values,
                coordinators=coordinators,
                metadata=self.metadata,
                policy=policy,
                generator=self._generator,
                refresh=self._refresh,
                notify=self.wake,
            )
        self.commits = OffsetCommits(
            values,
            coordinators=coordinators,
            metadata=self.metadata,
            identity=self.membership.committer,
            policy=policy,
            generator=self._generator,
        )
        self.subscribe(subscription)
        self._learn_regularly()
        self._poll_regularly()

    # -- what a user does ------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.membership.subscribe(subscription, self.network.now_s)
        self.wake()

    def wants(self, topic: str) -> bool:
        names, pattern = self.subscription
        return topic in names if pattern is None else re.fullmatch(pattern, topic) is not None

    def close(self) -> Completion[None]:
        completion = self.membership.leave(self.network.now_s)
        self.owned.clear()
        self.polls = False
        self.is_closed = True
        self.wake()
        return completion

    def kill(self) -> None:
        self.is_alive = False
        self.owned.clear()

    def _poll_regularly(self) -> None:
        if self.is_alive:
            if self.polls:
                self.poll()
            self.network.after(
                self._generator.randint(1, self.poll_interval_ms), self._poll_regularly
            )

    def poll(self) -> None:
        self.membership.polled(self.network.now_s)
        self.wake()
        self._handle()
        if self._is_handling:
            return  # The thread that polls waits for the commit, and does nothing else.
        for partition in self.positions:
            self.positions[partition] += self._generator.randint(0, 5)
        if self.reads and self._generator.random() < 0.2:
            self._commit(is_retried=False)
        self.wake()

    def _commit(self, *, is_retried: bool) -> Completion[None]:
        offsets = {each: OffsetAndMetadata(offset) for each, offset in self.positions.items()}
        completion = self.commits.commit(offsets, self.network.now_s, is_retried=is_retried)
        self.wake()
        return completion

    # -- events, as the core handles them --------------------------------------------------------

    def _handle(self) -> None:
        event = self.membership.event
        if event is None or self._is_handling:
            return
        self._is_handling = True
        if event.kind is RebalanceKind.REVOKED and self.reads:
            self._commit(is_retried=True).when_done(lambda _: self._end())
        else:
            self._end()

    def _end(self) -> None:
        event = self.membership.event
        if event is None or not self.is_alive:
            self._is_handling = False  # It was closed meanwhile.
            return
        self.history.append((event.kind, event.partitions))
        if event.kind is RebalanceKind.ASSIGNED:
            self.owned |= event.partitions
            self._read(event.partitions)
        else:
            self.owned -= event.partitions
            for partition in event.partitions:
                self.positions.pop(partition, None)
                self._questions.pop(partition, None)
        self._is_handling = False
        self.membership.event_handled(self.owned, self.network.now_s)
        self.wake()

    def _read(self, partitions: Collection[TopicPartition]) -> None:
        if not self.reads:
            return
        question = object()
        self._questions.update(dict.fromkeys(partitions, question))

        def start(completion: Completion[dict[TopicPartition, OffsetAndMetadata | None]]) -> None:
            if completion.error is None:
                for partition, found in completion.result().items():
                    # It may have been let go of, and be asked for again, since.
                    if self._questions.get(partition) is question:
                        self.positions[partition] = 0 if found is None else found.offset

        self.commits.fetch(partitions, self.network.now_s).when_done(start)

    # -- the driver's part -----------------------------------------------------------------------

    def wake(self) -> None:
        if not self._step_is_due:
            self._step_is_due = True
            self.network.after(0, self._step)

    def _step(self) -> None:
        self._step_is_due = False
        if not self.is_alive:
            return
        machines: list[Machine] = [self.commits, self.membership]
        for machine in machines:
            for ask in machine.asks(self.network.now_s):
                self.network.send(self.name, _watched(ask, self))
        times_s = [machine.wake_at_s(self.network.now_s) for machine in machines]
        next_s = min((time_s for time_s in times_s if time_s is not None), default=None)
        if next_s is not None:
            self._wake_in(max(1, round((next_s - self.network.now_s) * 1000 + 1)))

    def _wake_in(self, delay_ms: int) -> None:
        """One timer at a time: a new one replaces the one before."""
        self._timer += 1
        timer = self._timer

        def wake() -> None:
            if timer == self._timer:
                self.wake()

        self.network.after(delay_ms, wake)

    def _refresh(self, names: Collection[str]) -> None:
        self.network.after(self._generator.randint(1, 50), self._learn)

    def _learn_regularly(self) -> None:
        if self.is_alive:
            self._learn()
            self.network.after(2000, self._learn_regularly)

    def _learn(self) -> None:
        if self.is_alive:
            self.metadata.learn(metadata_response(self.network.coordinator.image), None)
            self.membership.metadata_changed(self.network.now_s)
            self.wake()


def _watched(ask: Ask, consumer: FakeConsumer) -> Ask:
    """The same, for a consumer that may be killed, and that is woken by an outcome."""

    def when_alive(call: Callable[[Any, float], None]) -> Callable[[Any, float], None]:
        def called(outcome: Any, now_s: float) -> None:
            if consumer.is_alive:
                call(outcome, now_s)
                consumer.wake()

        return called

    return replace(ask, on_answer=when_alive(ask.on_answer), on_failure=when_alive(ask.on_failure))


def metadata_response(image: ClusterImage) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                partitions=[
                    MetadataResponsePartition(partition_index=number, leader_id=1)
                    for number in range(len(topic.partitions))
                ],
            )
            for name, topic in image.topics.items()
        ]
    )


class MemberWorld:
    def __init__(
        self, seed: int, topics: Mapping[str, int], settings: Mapping[str, str] | None = None
    ) -> None:
        self.coordinator = ConsumerWorld(topics, {**SETTINGS, **(settings or {})})
        self.network = MemberNetwork(seed, self.coordinator)
        self.consumers: list[FakeConsumer] = []

    def start(
        self,
        name: str,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        protocol: str = "classic",
        assignors: Iterable[object] = ("range",),
        instance_id: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> FakeConsumer:
        consumer = FakeConsumer(
            self.network,
            name,
            Subscription(frozenset(topics), pattern),
            protocol=protocol,
            assignors=assignors,
            instance_id=instance_id,
            settings=settings,
        )
        self.consumers.append(consumer)
        return consumer

    def run(self, duration_ms: int) -> None:
        self.network.run(duration_ms, self.check_owners)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 120_000) -> None:
        waited_ms = 0
        while not condition():
            assert waited_ms < limit_ms, f"it did not happen; {self.describe()}"
            self.run(50)
            waited_ms += 50

    def settle(self, limit_ms: int = 120_000) -> None:
        """Run until every partition has one owner, and nothing is under way."""
        self.run_until(self.is_settled, limit_ms)

    def is_settled(self) -> bool:
        alive = self.alive()
        owned = sorted(each for consumer in alive for each in consumer.owned)
        return owned == sorted(self.partitions()) and all(
            consumer.membership.is_stable for consumer in alive
        )

    def alive(self) -> list[FakeConsumer]:
        return [each for each in self.consumers if each.is_alive and each.polls]

    def partitions(self) -> set[TopicPartition]:
        """All that somebody subscribes to."""
        image = self.coordinator.image
        return {
            TopicPartition(name, number)
            for consumer in self.alive()
            for name in image.topics
            if consumer.wants(name)
            for number in range(len(image.topics[name].partitions))
        }

    def check_owners(self) -> None:
        owners: dict[TopicPartition, str] = {}
        for consumer in self.consumers:
            if not self._is_believed_in(consumer):
                continue
            for partition in consumer.owned:
                other = owners.setdefault(partition, consumer.name)
                assert other == consumer.name, f"{partition}: {other} and {consumer.name}"

    def _is_believed_in(self, consumer: FakeConsumer) -> bool:
        """Whether the coordinator still counts it as a member."""
        group = self.coordinator.shard.groups.find(GROUP)
        identity = consumer.membership.identity
        if identity.generation_id < 0:
            return False  # It knows that it has lost what it has.
        if isinstance(group, ClassicGroup):
            # A static member that does not come to a rebalance stays, but its commits are refused.
            is_late = identity.instance_id is not None and identity.generation_id < group.generation
            return identity.member_id in group.members and not is_late
        return isinstance(group, ConsumerGroup) and identity.member_id in group.members

    def describe(self) -> str:
        return "; ".join(
            f"{each.name}: {sorted(each.owned)} {each.membership.event} "
            f"{each.membership.is_stable} {each.membership.identity} {each.membership.failure}"
            for each in self.alive()
        )
