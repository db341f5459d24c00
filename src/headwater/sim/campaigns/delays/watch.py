"""Somebody who sees all that leaders commit, and what every replica makes of it."""

from __future__ import annotations

from random import Random

from headwater.base.durations import LONG_MAX
from headwater.base.ids import TopicPartition
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns.delays.watched_partition import WatchedPartition
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.records import iter_batch_headers


class DelayWatch:
    def __init__(self, world: ClusterWorld, random: Random) -> None:
        self._world = world
        self._random = random
        self.partitions: dict[TopicPartition, WatchedPartition] = {}
        #: How often what a replica knows was compared.
        self.state_count = 0
        #: The first one, which whoever looks next is told too.
        self._violation: PropertyViolated | None = None

    def leader(self, partition: TopicPartition) -> tuple[BrokerHost | None, Partition | None]:
        """Who takes itself for the leader, if anybody does; there may be two."""
        leading = []
        for host in self._world.hosts:
            led = host.server.context.partitions.find(*partition) if host.serves else None
            if led is not None and led.is_leader:
                leading.append((host, led))
        return self._random.choice(leading) if leading else (None, None)

    def has_seen_all(self) -> bool:
        """Whether all that there is was seen: what gets old may be deleted before anybody looks."""
        for partition, watched in self.partitions.items():
            _, led = self.leader(partition)
            if led is None or not watched.model.end == led.high_watermark == led.log_end_offset:
                return False
        return True

    def look(self) -> None:
        """Take note of all that leaders have committed since."""
        if self._violation is None:
            try:
                self._look_at_leaders()
            except PropertyViolated as violation:
                self._violation = violation
        if self._violation is not None:
            raise self._violation

    def _look_at_leaders(self) -> None:
        for partition, watched in self.partitions.items():
            state = self._world.observer.states.get(partition)
            host = self._world.hosts[state.leader] if state and state.leader >= 0 else None
            led = host.server.context.partitions.find(*partition) if host and host.serves else None
            if led is None or not led.is_leader:
                continue
            self._check_end(watched, led)
            while watched.model.end < led.high_watermark:
                log = led.log
                start = log.log_start_offset
                if start > watched.model.end and not watched.recall(start):
                    raise PropertyViolated(f"{partition} was deleted before anybody saw it")
                upper = led.high_watermark
                read = log.read(watched.model.end, 1, upper_offset=upper, min_one_batch=True)
                if read.region is None:
                    break
                data = read.region.read()
                for start, header in iter_batch_headers(data):
                    watched.take(header, data[start : start + header.size_bytes])

    def _check_end(self, watched: WatchedPartition, led: Partition) -> None:
        epoch, end = led.leader_epoch, led.log.visible_high_watermark
        before = watched.visible_ends.get(epoch, 0)
        if end < before:
            raise PropertyViolated(
                f"the end that consumers are told never goes back: in {watched.partition}, epoch "
                f"{epoch}, it was {before} and is {end}"
            )
        watched.visible_ends[epoch] = end

    def compare_states(self) -> None:
        """Every replica that has read as far as was committed knows the same of what waits."""
        self.look()
        for host in self._world.hosts:
            if not host.serves:
                continue
            for partition, delays in host.server.context.delays:
                watched = self.partitions.get(partition.topic_partition)
                state = delays._state
                if (
                    watched is None
                    or state is None
                    or not state.waiting.is_complete
                    or state.applied_offset != watched.model.end
                    # One that was replaced may have got as far, on a way of its own.
                    or state.applied_offset > partition.high_watermark
                ):
                    continue
                self.state_count += 1
                start = partition.log.log_start_offset
                keys = state.index.between(0, LONG_MAX, 10**9)
                found = [key for key in keys if key.offset >= start]
                expected = watched.model.order()
                if found != expected or not watched.agrees(state.watermark, partition.log):
                    raise PropertyViolated(
                        f"replicas know what waits: {host.name} has {found} behind "
                        f"{state.watermark} up to {state.applied_offset} in {watched.partition}, "
                        f"and not {expected} behind {watched.model.watermark}"
                    )
