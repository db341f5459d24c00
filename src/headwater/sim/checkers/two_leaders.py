"""Two leaders in one epoch: of every leader epoch of a partition, one broker leads, or none.

Whoever sees all brokers, or the metadata store, says who leads in which epoch, as often as it
likes. Epochs that the store gives out only ever grow.
"""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import NO_LEADER
from headwater.sim.histories.history import PropertyViolated


class LeadersByEpoch:
    def __init__(self) -> None:
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._decided: dict[TopicPartition, int] = {}

    @property
    def count(self) -> int:
        """How many leaderships were seen."""
        return len(self._leaders)

    def observe(self, partition: TopicPartition, leader_epoch: int, leader: int) -> None:
        """A broker acts as the leader, or is said to."""
        if leader == NO_LEADER:
            return
        known = self._leaders.setdefault((partition, leader_epoch), leader)
        if known != leader:
            raise PropertyViolated(
                f"an epoch has one leader: {partition} was led by {known} in epoch {leader_epoch}, "
                f"and is by {leader}"
            )

    def forget(self, partition: TopicPartition) -> None:
        """A topic of the same name begins anew."""
        self._decided.pop(partition, None)
        for key in [key for key in self._leaders if key[0] == partition]:
            del self._leaders[key]

    def decide(self, partition: TopicPartition, leader_epoch: int, leader: int) -> None:
        """The metadata store holds this now."""
        before = self._decided.get(partition, leader_epoch)
        if leader_epoch < before:
            raise PropertyViolated(
                f"leader epochs only grow: {partition} was in epoch {before} and is in "
                f"{leader_epoch}"
            )
        self._decided[partition] = leader_epoch
        self.observe(partition, leader_epoch, leader)
