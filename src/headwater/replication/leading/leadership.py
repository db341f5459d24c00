"""The leader's side of a partition with followers: how far each is, and what that makes safe.

    high watermark = the smallest LEO of the leader and of all replicas of the maximal ISR
    low watermark  = the smallest log start of the live replicas

A follower reports its LEO and its log start with every fetch. Who counts as in sync is decided in
`in_sync_replicas`. While a follower outside is about to join, the high watermark waits for it too:
otherwise a leader that is alone would always be a little ahead, and nobody could ever join under
load. While fewer are in sync than `min.insync.replicas` asks for, the high watermark stands still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import PartitionImage
from headwater.replication.leading.in_sync_replicas import InSyncReplicas
from headwater.replication.leading.read_replica import closest_replica
from headwater.replication.leading.remote_replica import FetchClock, RemoteReplica
from headwater.replication.partition.environment import PartitionEnvironment

if TYPE_CHECKING:
    from headwater.replication.partition.partition import Partition


class Leadership:
    """Exists while this broker leads the partition and others have replicas of it."""

    __slots__ = ("_environment", "_partition", "_remotes", "in_sync")

    def __init__(self, partition: Partition, environment: PartitionEnvironment) -> None:
        self._partition = partition
        self._environment = environment
        self._remotes: dict[int, RemoteReplica] = {}
        self.in_sync = InSyncReplicas(partition, environment)

    def remote(self, broker_id: int) -> RemoteReplica | None:
        """What is known of a follower."""
        return self._remotes.get(broker_id)

    def follow(self, image: PartitionImage, *, is_new_epoch: bool) -> None:
        """The controller says who has replicas and who of them is in sync."""
        now_ms = self._environment.clock.monotonic_ms()
        remotes: dict[int, RemoteReplica] = {}
        for broker_id in image.replicas:
            if broker_id == self._environment.node_id:
                continue
            remote = self._remotes.get(broker_id)
            if remote is None or is_new_epoch:
                remote = remote or RemoteReplica(broker_id)
                remote.begin_epoch(
                    now_ms, self._partition.log.log_end_offset, is_in_sync=broker_id in image.isr
                )
            remotes[broker_id] = remote
        self._remotes = remotes
        self.in_sync.commit(image.isr, image.partition_epoch, remotes)

    def brokers_changed(self) -> None:
        """Other brokers live than before: nobody waits for one that is gone."""
        now_ms = self._environment.clock.monotonic_ms()
        self.in_sync.find_fallen_behind(now_ms)
        self.in_sync.stop_waiting(now_ms)
        log_start_offset = self._partition.log.log_start_offset
        if any(each.log_start_offset < log_start_offset for each in self._remotes.values()):
            # Deletions may have waited for one that is gone.
            self._environment.events.on_log_start(self._partition)

    def check_isr(self) -> None:
        """Once in a while: find followers that do not keep up."""
        self.in_sync.check()

    def is_waited_for(self, replica_id: int) -> bool:
        """Whether the high watermark waits for a follower: it is in sync, or about to be."""
        remote = self._remotes.get(replica_id)
        return replica_id in self.in_sync.state.maximal or (
            remote is not None and remote.is_joining
        )

    # -- fetches ---------------------------------------------------------------------------------

    def check_follower(self, replica_id: int, broker_epoch: int, leader_epoch: int) -> None:
        """Raise unless the replica is one of this partition's, and this its latest life."""
        remote = self._remotes.get(replica_id)
        if remote is None:
            raise unknown_follower(self._partition.topic_partition, replica_id, leader_epoch)
        remote.check_broker_epoch(broker_epoch)

    def follower_fetched(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        clock: FetchClock | None = None,
    ) -> None:
        """A follower asks for what lies behind `fetch_offset`, so it has all in front of it."""
        remote = self._remotes[replica_id]
        log_end_offset = self._partition.log.log_end_offset
        has_moved = fetch_offset != remote.log_end_offset
        start_has_moved = log_start_offset != remote.log_start_offset
        now_ms = self._environment.clock.monotonic_ms()
        remote.fetched(fetch_offset, log_start_offset, broker_epoch, log_end_offset, now_ms, clock)
        self.in_sync.follower_fetched(remote, now_ms)
        if has_moved:
            self.advance_high_watermark()
        if start_has_moved:
            self._environment.events.on_log_start(self._partition)

    def follower_left(self, replica_id: int, clock: FetchClock | None = None) -> None:
        """A follower's session does not fetch this partition any more, or not successfully."""
        remote = self._remotes.get(replica_id)
        if remote is not None and (clock is None or remote.clock is clock):
            remote.left_session()

    def read_replica(self, rack: str, offset: int) -> int | None:
        """The follower that a consumer in this rack is to read from; None for the leader."""
        environment = self._environment
        return closest_replica(
            rack,
            offset,
            leader_id=environment.node_id,
            in_sync=self.in_sync.state.isr,
            remotes=self._remotes,
            brokers=environment.brokers,
        )

    # -- watermarks ------------------------------------------------------------------------------

    def advance_high_watermark(self) -> None:
        """Raise it to what all have, if that is more than before."""
        partition = self._partition
        log = partition.log
        if not partition.has_enough_in_sync:
            return
        offset = log.log_end_offset
        maximal = self.in_sync.state.maximal
        for remote in self._remotes.values():
            if remote.log_end_offset < offset and (
                remote.broker_id in maximal or remote.is_joining
            ):
                offset = remote.log_end_offset
        if offset > log.high_watermark:
            log.raise_high_watermark(offset)
            self._environment.events.on_high_watermark(partition)

    @property
    def low_watermark(self) -> int:
        """The smallest log start of the live replicas; -1 while one has not told."""
        brokers = self._environment.brokers
        starts = [self._partition.log.log_start_offset]
        starts += [
            each.log_start_offset for each in self._remotes.values() if each.broker_id in brokers
        ]
        return min(starts)


def unknown_follower(partition: TopicPartition, replica_id: int, leader_epoch: int) -> KafkaError:
    """What a broker is told that fetches a partition without being known to have a replica."""
    # With a leader epoch that fits, it is ahead of what this broker has heard.
    has_epoch = leader_epoch >= 0
    return KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        f"Broker {replica_id} is not known to have a replica of {partition}.",
    )
