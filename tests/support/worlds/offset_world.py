"""A shard of groups in virtual time, with short ways to commit offsets and to look at them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.group.offsets.commit import Committer, NewOffset
from headwater.coordinator.group.offsets.fetch import FetchedOffset, WantedOffset
from headwater.coordinator.group.offsets.protocol import BROKERS_RETENTION
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.timers import Timers
from headwater.wire.schema import ZERO_UUID
from tests.support.worlds.shard_world import Answer, ManualTimers, ShardWorld

OUTSIDER = Committer()
LATEST_COMMIT = 10
LATEST_TXN_COMMIT = 5
ORDERS = TopicPartition("orders", 0)


class OffsetWorld(ShardWorld[GroupShard]):
    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        values = BrokerSettings.from_texts({"broker.id": "0", **(settings or {})})

        def make_shard(timers: Timers) -> GroupShard:
            return GroupShard(GroupEnvironment(values, ClusterImage, timers, random.Random(1)))

        super().__init__(make_shard)

    def commit(
        self,
        group_id: str,
        offset: int,
        topic_partition: TopicPartition = ORDERS,
        *,
        committer: Committer = OUTSIDER,
        metadata: str | None = None,
        leader_epoch: int = -1,
        topic_id: uuid.UUID = ZERO_UUID,
        retention_ms: int = BROKERS_RETENTION,
        api_version: int = LATEST_COMMIT,
    ) -> Answer[list[ErrorCode]]:
        new = NewOffset(topic_partition, offset, leader_epoch, metadata, topic_id)
        return self.write(
            lambda shard, now_ms: shard.offsets.commit(
                group_id,
                committer,
                [new],
                now_ms,
                api_version=api_version,
                retention_ms=retention_ms,
            )
        )

    def commit_in_transaction(
        self,
        producer: ProducerIdentity,
        group_id: str,
        offset: int,
        topic_partition: TopicPartition = ORDERS,
        *,
        committer: Committer = OUTSIDER,
    ) -> Answer[list[ErrorCode]]:
        return self.write(
            lambda shard, now_ms: shard.offsets.commit_in_transaction(
                group_id,
                committer,
                producer,
                [NewOffset(topic_partition, offset)],
                now_ms,
                api_version=LATEST_TXN_COMMIT,
            )
        )

    def fetch(
        self,
        group_id: str,
        topic_partition: TopicPartition = ORDERS,
        *,
        topic_id: uuid.UUID = ZERO_UUID,
        require_stable: bool = False,
    ) -> FetchedOffset:
        """The answer for one partition."""
        [fetched] = self.shard.offsets.fetch(
            group_id, [WantedOffset(topic_partition, topic_id)], require_stable=require_stable
        )
        return fetched

    def offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """All that the group has committed."""
        fetched = self.shard.offsets.fetch(group_id, None)
        return {each.topic_partition: each.offset for each in fetched}

    def delete(
        self, group_id: str, partitions: Sequence[TopicPartition] = (ORDERS,)
    ) -> Answer[list[ErrorCode]]:
        return self.write(lambda shard, now_ms: shard.offsets.delete(group_id, partitions))

    def delete_topic(self, name: str, topic_id: uuid.UUID = ZERO_UUID) -> None:
        change = ImageChange(ClusterImage(), deleted_topics=(TopicImage(name, topic_id, ()),))
        for outcome in self.shard.on_image(change, self.now_ms):
            self.settle(outcome)

    def delete_group(self, group_id: str) -> None:
        """As the handler does it: until nothing is left."""
        while not self.write(lambda shard, now_ms: shard.removal.delete(group_id)).get():
            pass

    def restart(self) -> None:
        """The coordinator stops, and another one loads the topic."""
        timers = ManualTimers()
        timers.now_ms = self.now_ms
        self.timers = timers
        self.shard = self._make_shard(timers)
        for offset, (record, producer, is_committed, written_ms) in enumerate(self.topic):
            if record is not None:
                self.shard.replay(record, offset, producer, written_ms)
            elif producer is not None:
                self.shard.replay_transaction_end(producer, is_committed=is_committed)
        self.shard.on_loaded(self.now_ms)
