"""A shard of groups in virtual time, a cluster whose topics change, and members of consumer groups.

A `Client` behaves as a consumer does: it sends what it has, takes what it is told, and gives up
what it is not told any more, at once or not before the test says so.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import ClusterImage, PartitionImage, TopicImage
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import nothing_follows
from headwater.coordinator.timers import Timers
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.support.worlds.shard_world import ManualTimers, ShardWorld

GROUP = "readers"
LATEST = 1
HOST = JoiningClient("client", "/10.0.0.1", LATEST)

_PARTITION = PartitionImage((1,), (1,), 1, 0, 0)

Named = frozenset[tuple[str, int]]


class ConsumerWorld(ShardWorld[GroupShard]):
    def __init__(
        self, topics: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        """`topics` have that many partitions."""
        self._ids = random.Random(7)
        self.image = ClusterImage()
        self.settings = BrokerSettings.from_texts({"broker.id": "0", **(settings or {})})
        self._member_ids = random.Random(8)

        def make_shard(timers: Timers) -> GroupShard:
            return GroupShard(
                GroupEnvironment(self.settings, lambda: self.image, timers, self._member_ids)
            )

        super().__init__(make_shard)
        self.set_topics(topics or {})

    # -- the cluster -----------------------------------------------------------------------------

    def set_topics(
        self, topics: Mapping[str, int | None], between: Callable[[], object] = nothing_follows
    ) -> None:
        """Create topics, change their number of partitions, or delete them with None.

        `between` is called when the coordinator has heard of it and others have not.
        """
        edits = ImageEdits()
        for name, count in topics.items():
            known = self.image.topics.get(name)
            if count is None:
                edits.topics[name] = None
                continue
            topic_id = known.topic_id if known else uuid.UUID(int=self._ids.getrandbits(128))
            edits.topics[name] = TopicImage(name, topic_id, (_PARTITION,) * count)
        change = edits.apply(self.image)
        if change.deleted_topics:
            self.image = change.image
        for outcome in self.shard.on_image(change, self.now_ms):
            self.settle(outcome)
        # What is new is seen by others only after those who follow the image have prepared.
        between()
        self.image = change.image

    def topic_id(self, name: str) -> uuid.UUID:
        return self.image.topics[name].topic_id

    def take_over(self) -> None:
        """Another coordinator loads the topic and goes on."""
        now_ms = self.now_ms
        self.timers = ManualTimers()
        self.timers.now_ms = now_ms
        self.shard = self._make_shard(self.timers)
        for offset, written in enumerate(self.topic):
            assert written.record is not None
            self.shard.replay(written.record, offset, None, written.written_ms)
        self.shard.on_loaded(now_ms)

    # -- groups ----------------------------------------------------------------------------------

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.shard.groups.find_of(ConsumerGroup, group_id)
        assert group is not None
        return group

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: JoiningClient = HOST
    ) -> ConsumerGroupHeartbeatResponse:
        """The answer; raises what the coordinator answers instead, and checks what is stored."""
        try:
            answer = self.write(
                lambda shard, now_ms: shard.consumer.heartbeat(request, client, now_ms)
            )
        finally:
            self.check_replay()
        return answer.get()

    def refusal(
        self, request: ConsumerGroupHeartbeatRequest, client: JoiningClient = HOST
    ) -> ErrorCode:
        """The error that a heartbeat is answered with."""
        try:
            self.heartbeat(request, client)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def named(self, partitions: list[TopicPartitions]) -> Named:
        """Partitions by the names of their topics; those of deleted ones by their ids."""
        return frozenset(
            (self.image.topic_names.get(entry.topic_id, str(entry.topic_id)), number)
            for entry in partitions
            for number in entry.partitions
        )


class Client:
    """A consumer, as far as its group concerns it."""

    def __init__(
        self,
        world: ConsumerWorld,
        member_id: str,
        topics: list[str] | None = None,
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        group_id: str = GROUP,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.group_id = group_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        #: What it has, by topic id.
        self.owned: set[tuple[uuid.UUID, int]] = set()
        #: What it was told last.
        self.told: set[tuple[uuid.UUID, int]] = set()
        #: While set it does not give up what it should.
        self.clings = False
        self.has_left = False

    def request(self, **changes: object) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat of the member that says only what it must."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def complete_request(self, **changes: object) -> ConsumerGroupHeartbeatRequest:
        """One that says everything."""
        full: dict[str, object] = {
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": self.owned_entries(),
        }
        return self.request(**{**full, **changes})

    def owned_entries(self) -> list[TopicPartitions]:
        topics: dict[uuid.UUID, list[int]] = {}
        for topic_id, number in sorted(self.owned):
            topics.setdefault(topic_id, []).append(number)
        return [TopicPartitions(topic_id=key, partitions=value) for key, value in topics.items()]

    def join(self) -> ConsumerGroupHeartbeatResponse:
        self.epoch = 0
        self.owned, self.told = set(), set()
        self.has_left = False
        return self._take(self.complete_request())

    def beat(self, *, tells_owned: bool = True) -> ConsumerGroupHeartbeatResponse:
        """A regular heartbeat."""
        entries = self.owned_entries() if tells_owned else None
        return self._take(self.request(topic_partitions=entries))

    def subscribe(self, topics: list[str]) -> ConsumerGroupHeartbeatResponse:
        self.topics = topics
        return self._take(
            self.request(subscribed_topic_names=topics, topic_partitions=self.owned_entries())
        )

    def match(self, regex: str) -> ConsumerGroupHeartbeatResponse:
        """Subscribe by a pattern."""
        self.regex = regex
        return self._take(
            self.request(subscribed_topic_regex=regex, topic_partitions=self.owned_entries())
        )

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        self.owned, self.told = set(), set()
        self.has_left = True
        return self.world.heartbeat(self.request(member_epoch=epoch))

    def beat_or_rejoin(self) -> None:
        """As a consumer does: if the coordinator refuses it, it gives everything up and joins."""
        try:
            self.beat()
        except KafkaError:
            self.join()

    def revoke(self) -> None:
        """Give up what it was told to."""
        self.owned &= self.told

    def _take(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        response = self.world.heartbeat(request)
        self.epoch = response.member_epoch
        self.member_id = response.member_id or self.member_id
        if response.assignment is not None:
            self.told = {
                (entry.topic_id, number)
                for entry in response.assignment.topic_partitions
                for number in entry.partitions
            }
            self.owned |= self.told
            if not self.clings:
                self.revoke()
        return response

    @property
    def partitions(self) -> Named:
        """What it has, by name."""
        return self.world.named(self.owned_entries())


def settle_group(world: ConsumerWorld, clients: list[Client], rounds_max: int = 30) -> None:
    """Let all members send heartbeats until nothing changes any more."""
    for _ in range(rounds_max):
        before = len(world.topic)
        for client in clients:
            client.beat_or_rejoin()
        if len(world.topic) == before:
            return
    raise AssertionError("the group does not come to rest")
