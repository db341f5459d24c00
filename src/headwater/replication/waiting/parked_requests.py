"""The broker's purgatories, and which event of a partition wakes whom.

the leader's log has grown  fetches of followers
the high watermark moved    fetches of consumers, on followers too, and produces
the log became durable      produces that wait for the disk
the log start moved         DeleteRecords that wait for the replicas' low watermark
others are in sync          produces, for there may be too few, and DeleteRecords
another leader              all of them: whoever waits here has to go there
"""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.base.loop_timer import LoopTimer
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.follower_watches import FollowerWatches
from headwater.replication.waiting.purgatory import Purgatory


class ParkedRequests:
    """One purgatory for each kind of request that waits; all share the timing wheel."""

    def __init__(self, timer: LoopTimer) -> None:
        self.produce: Purgatory[TopicPartition] = Purgatory(timer)
        self.fetch: Purgatory[TopicPartition] = Purgatory(timer)
        self.follower_fetch: Purgatory[TopicPartition] = Purgatory(timer)
        self.delete_records: Purgatory[TopicPartition] = Purgatory(timer)
        self._purgatories = tuple(self.by_name().values())
        #: The sessions of followers, which look only at partitions that something happens to.
        self.watches = FollowerWatches()

    def by_name(self) -> dict[str, Purgatory[TopicPartition]]:
        """As Kafka's metrics call them."""
        return {
            "Produce": self.produce,
            "Fetch": self.fetch,
            "FollowerFetch": self.follower_fetch,
            "DeleteRecords": self.delete_records,
        }

    def on_append(self, partition: Partition) -> None:
        key = partition.topic_partition
        self.follower_fetch.check(key)
        self.watches.touch(key, wakes=True)

    def on_high_watermark(self, partition: Partition) -> None:
        key = partition.topic_partition
        self.fetch.check(key)
        self.produce.check(key)
        if partition.leadership is not None:
            self.watches.touch(key, wakes=False)

    def on_durable(self, partition: Partition) -> None:
        self.produce.check(partition.topic_partition)

    def on_log_start(self, partition: Partition) -> None:
        self.delete_records.check(partition.topic_partition)
        self.watches.touch(partition.topic_partition, wakes=False)

    def on_in_sync(self, partition: Partition) -> None:
        key = partition.topic_partition
        self.produce.check(key)
        self.delete_records.check(key)
        self.watches.touch(key, wakes=False)

    def on_role(self, partition: Partition) -> None:
        key = partition.topic_partition
        for purgatory in self._purgatories:
            purgatory.check(key)
        self.watches.touch(key, wakes=True)

    def on_removed(self, partition: Partition) -> None:
        self.on_role(partition)

    def complete_all(self) -> None:
        """The broker stops: answer everyone with what there is."""
        for purgatory in self._purgatories:
            purgatory.complete_all()
