"""All that this broker follows: every partition that another broker leads is fetched from there.

Each leader has `num.replica.fetchers` fetchers, which share its partitions, and beside each a
second one for *newcomers*. A fetch at the end of all logs waits at the leader, half a second by
default. A partition that comes meanwhile, when a topic is created or a leader fails over, would
wait as long for its first fetch, and with it every producer who wants all replicas to have its
records. So it begins in the newcomers' fetcher, whose fetches wait a few milliseconds only, and
moves on when the other one has its answer.

`role_changed` and `removed` are synchronous: when they return, no fetcher touches a log that is not
followed any more. So a new leader may write to its log at once.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import NO_LEADER
from headwater.replication.following.fetcher import Connect, OnTruncated, ReplicaFetcher
from headwater.replication.following.options import FetcherOptions
from headwater.replication.partition.partition import Partition
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.storage.partition_log import PartitionLog

#: How long a fetch for newcomers waits at the leader.
NEWCOMERS_WAIT_MS: Final = 20


class LaneKey(NamedTuple):
    """A leader, and which share of its partitions."""

    leader: int
    share: int


class _Lane:
    """A share of one leader's partitions."""

    def __init__(self, settled: ReplicaFetcher, newcomers: ReplicaFetcher) -> None:
        self.settled = settled
        self.newcomers = newcomers
        for fetcher in self.fetchers:
            fetcher.start()

    @property
    def fetchers(self) -> tuple[ReplicaFetcher, ReplicaFetcher]:
        return self.settled, self.newcomers

    @property
    def is_empty(self) -> bool:
        return not any(len(fetcher.plan) for fetcher in self.fetchers)

    def follow(self, partition: Partition) -> None:
        self.leave(partition)
        (self.newcomers if self.settled.is_asking else self.settled).follow(partition)

    def leave(self, partition: Partition) -> None:
        for fetcher in self.fetchers:
            fetcher.leave(partition)

    async def close(self) -> None:
        for fetcher in self.fetchers:
            await fetcher.close()


async def _ignore_truncation(_log: PartitionLog, _end_offset: int) -> None:
    """For a broker that compacts nothing."""


class ReplicaFetchers:
    """One for each broker; its owner is the event loop."""

    def __init__(
        self,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        connect: Connect,
        options: Callable[[], FetcherOptions],
        clock: Clock,
        tasks: BackgroundTasks,
        on_truncated: OnTruncated = _ignore_truncation,
        throttles: ReplicationThrottles | None = None,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._connect = connect
        self._options = options
        self._clock = clock
        self._tasks = tasks
        self._on_truncated = on_truncated
        self._throttles = throttles or ReplicationThrottles.unlimited()
        self._lanes: dict[LaneKey, _Lane] = {}
        self._followed: dict[TopicPartition, tuple[LaneKey, Partition]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._bytes_in_before = 0

    # -- roles -----------------------------------------------------------------------------------

    def role_changed(self, partition: Partition) -> None:
        """The partition has another leader or leader epoch, or is new."""
        key = self._lane_key(partition)
        known = self._followed.get(partition.topic_partition)
        if known is not None and known != (key, partition):
            self.removed(known[1])
        if key is not None and not self._is_closed:
            self._followed[partition.topic_partition] = (key, partition)
            self._lane(key).follow(partition)

    def removed(self, partition: Partition) -> None:
        """The partition is not this broker's any more, or not to be followed."""
        known = self._followed.get(partition.topic_partition)
        if known is None or known[1] is not partition:
            return
        del self._followed[partition.topic_partition]
        lane = self._lanes[known[0]]
        lane.leave(partition)
        if lane.is_empty:
            self._close_lane(known[0])

    def settings_changed(self) -> None:
        """`num.replica.fetchers` may be another: share the partitions out again."""
        for _, partition in list(self._followed.values()):
            key = self._lane_key(partition)
            if self._followed[partition.topic_partition][0] != key:
                self.role_changed(partition)

    def _lane_key(self, partition: Partition) -> LaneKey | None:
        leader = partition.leader
        if partition.is_leader or partition.is_removed or leader in (NO_LEADER, self._node_id):
            return None
        topic, number = partition.topic_partition
        share = (zlib.crc32(topic.encode()) + number) % self._options().fetcher_count
        return LaneKey(leader, share)

    def _lane(self, key: LaneKey) -> _Lane:
        lane = self._lanes.get(key)
        if lane is None:
            newcomers = self._fetcher(key.leader, self._newcomers_options)
            settled = self._fetcher(key.leader, self._options, newcomers)
            lane = self._lanes[key] = _Lane(settled, newcomers)
        return lane

    def _newcomers_options(self) -> FetcherOptions:
        options = self._options()
        return options._replace(max_wait_ms=min(options.max_wait_ms, NEWCOMERS_WAIT_MS))

    def _fetcher(
        self,
        leader: int,
        options: Callable[[], FetcherOptions],
        newcomers: ReplicaFetcher | None = None,
    ) -> ReplicaFetcher:
        return ReplicaFetcher(
            leader,
            node_id=self._node_id,
            broker_epoch=self._broker_epoch,
            connect=self._connect,
            options=options,
            clock=self._clock,
            on_truncated=self._on_truncated,
            tasks=self._tasks,
            throttles=self._throttles,
            newcomers=newcomers,
        )

    def _close_lane(self, key: LaneKey) -> None:
        lane = self._lanes.pop(key)
        self._bytes_in_before += sum(fetcher.answers.bytes_in for fetcher in lane.fetchers)
        closing = self._tasks.start(f"end of fetching from broker {key.leader}", lane.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Follow nothing any more; when this returns, no log is touched."""
        self._is_closed = True
        self._followed.clear()
        for key in list(self._lanes):
            self._close_lane(key)
        while self._closing:
            await asyncio.wait(set(self._closing))

    # -- metrics ---------------------------------------------------------------------------------

    def _fetchers(self) -> Iterator[ReplicaFetcher]:
        for lane in self._lanes.values():
            yield from lane.fetchers

    @property
    def bytes_in(self) -> int:
        """Bytes of records that were replicated to this broker."""
        return self._bytes_in_before + sum(each.answers.bytes_in for each in self._fetchers())

    @property
    def followed_count(self) -> int:
        return len(self._followed)

    @property
    def failed_partitions(self) -> int:
        """Partitions that are not followed though they should be, until they have another role."""
        return sum(each.plan.failed_count for each in self._fetchers())

    @property
    def dead_count(self) -> int:
        """Fetchers that have ended by a mistake of this program."""
        return sum(each.is_dead for each in self._fetchers())

    def max_lag(self) -> int:
        """By how many offsets the partition that lags most is behind its leader."""
        return max((each.lag for fetcher in self._fetchers() for each in fetcher.plan), default=0)
