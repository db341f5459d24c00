"""Who is to lead a partition: the election strategies, by the names that they have in Kafka.

AR, the assigned replicas, are all brokers that hold a partition, the preferred leader first. ISR,
the in-sync replicas, are those of them that have everything that was acknowledged. Every strategy
goes through AR in its order and takes the first replica that is alive and in the ISR; they differ
in where they look:

- `OfflinePartition`: the leader is gone. If nobody in the ISR is alive and an unclean election is
  allowed, the first live replica leads, with an ISR of its own: what only the others had is lost.
  Replicas that a move is adding come last, for they may have nothing.
- `ReassignPartition`: the partition moves to other brokers; AR is where it moves to.
- `PreferredReplica`: the first replica of AR or nobody.
- `ControlledShutdown`: the leader is about to stop; whoever stops is not elected.

A strategy answers with the partition as it will be, or with None if it finds nobody. The leader
epoch grows with every election.

Nobody leaves an ISR by being passed over. What the members have in memory is all there is of the
latest records, and whoever the controller takes for alive may have lost its power a moment ago: if
another member were forgotten for its sake, those records would be, too. So it is the new leader,
who shows by asking that it lives, that takes those out of the ISR who are gone (AlterPartition).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from headwater.cluster.image.image import PartitionImage


class ElectionType(IntEnum):
    """What a client can ask for; the numbers are those of the protocol."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionStrategy(Protocol):
    """A way to find a leader."""

    def elect(self, partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
        """The partition with its new leader, out of those that are alive; None if nobody can."""


@dataclass(frozen=True, slots=True)
class OfflinePartition:
    """For a partition that has no leader, or whose leader is gone."""

    unclean_allowed: bool = False

    def elect(self, partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
        leader = _first_in_sync(partition.replicas, partition.isr, live)
        if leader is not None:
            return led_by(partition, leader, partition.isr)
        # One that is being added may have nothing yet.
        by_age = (*partition.origin, *partition.adding)
        leader = next((each for each in by_age if each in live), None)
        if leader is None or not self.unclean_allowed:
            return None
        return led_by(partition, leader, (leader,))


@dataclass(frozen=True, slots=True)
class ReassignPartition:
    """For a partition that moves to other brokers."""

    new_replicas: tuple[int, ...]

    def elect(self, partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
        leader = _first_in_sync(self.new_replicas, partition.isr, live)
        return None if leader is None else led_by(partition, leader, partition.isr)


@dataclass(frozen=True, slots=True)
class PreferredReplica:
    """For a partition that is to be led by its first replica again."""

    def elect(self, partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
        leader = _first_in_sync(partition.replicas[:1], partition.isr, live)
        return None if leader is None else led_by(partition, leader, partition.isr)


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """For a partition whose leader is about to stop; those that stop count as alive."""

    shutting_down: Collection[int]

    def elect(self, partition: PartitionImage, live: Collection[int]) -> PartitionImage | None:
        staying = {each for each in partition.isr if each not in self.shutting_down}
        leader = _first_in_sync(partition.replicas, staying, live)
        return None if leader is None else led_by(partition, leader, partition.isr)


def led_by(partition: PartitionImage, leader: int, isr: tuple[int, ...]) -> PartitionImage:
    """The partition with that leader, and a leader epoch of its own."""
    return partition._replace(
        isr=isr,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def in_sync_with(partition: PartitionImage, isr: tuple[int, ...]) -> PartitionImage:
    """The partition with another ISR and the same leader."""
    return partition._replace(isr=isr, partition_epoch=partition.partition_epoch + 1)


def _first_in_sync(
    replicas: Iterable[int], isr: Collection[int], live: Collection[int]
) -> int | None:
    return next((each for each in replicas if each in live and each in isr), None)
