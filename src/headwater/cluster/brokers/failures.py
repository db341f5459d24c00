"""What becomes of a partition when brokers fail, come back or come back without their last records.

Who leaves the ISR. A broker that stopped without notice and came back *unclean* may have lost what
it had not yet written to disk: it may not lead before it has caught up with somebody who has it.

Who stays. All others. The brokers in an ISR are the only ones known to have everything that was
acknowledged, and one that is gone still has it. That one is alive, or was a session ago, says less:
it may have lost its power since. So those that are gone leave when a leader asks for it, who has
everything and shows that it lives; those that are back in a new life, if they do not keep up with
it. An ISR is never empty: if all came back unclean, one stays: the last leader, whose log was the
longest, or else the first of AR.

The leader. If it left, the OfflinePartition strategy finds the next one among the live brokers that
stay, first among those that have been there all along; without one the partition is offline, which
is to say led by nobody. A leader that is elected again gets a new leader epoch nevertheless: its
last life may have given away offsets that this one gives to other records.

Nothing here reads or writes: `plan` answers with the new state of a partition.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headwater.cluster.image.image import NO_LEADER, PartitionImage
from headwater.cluster.partitions.elections import OfflinePartition, in_sync_with, led_by


@dataclass(frozen=True, slots=True)
class BrokerTurnover:
    """Which brokers there are after a change, and which of them are not what they were."""

    #: Alive, those included that are about to stop.
    live: frozenset[int]
    #: Alive, but in another life than the one that the states of partitions speak of.
    restarted: frozenset[int] = frozenset()
    #: Alive, but perhaps without their last records.
    unclean: frozenset[int] = frozenset()
    #: Alive, but about to stop: they lead nothing new.
    shutting_down: frozenset[int] = frozenset()

    @property
    def electable(self) -> frozenset[int]:
        return self.live - self.shutting_down

    def concerns(self, partition: PartitionImage) -> bool:
        """Whether there may be something to do; this is asked for every partition there is."""
        return (
            partition.leader not in self.live
            or partition.leader in self.restarted
            or not self.unclean.isdisjoint(partition.isr)
        )

    def plan(self, partition: PartitionImage, *, unclean_allowed: bool) -> PartitionImage | None:
        """The partition after the change, or None if nothing changes."""
        trusted = self._trusted(partition)
        well = tuple(each for each in trusted if not self._was_away(each))
        if partition.leader in well:
            return None if trusted == partition.isr else in_sync_with(partition, trusted)
        for candidates in (well, trusted):
            strategy = OfflinePartition(unclean_allowed and candidates is trusted)
            elected = strategy.elect(partition._replace(isr=candidates), self.electable)
            if elected is not None:
                return elected._replace(isr=trusted) if elected.leader in trusted else elected
        if partition.leader != NO_LEADER:
            return led_by(partition, NO_LEADER, trusted)
        return None if trusted == partition.isr else in_sync_with(partition, trusted)

    def _trusted(self, partition: PartitionImage) -> tuple[int, ...]:
        """The members of the ISR that have lost nothing, or if there is none the best of them."""
        isr = partition.isr
        clean = tuple(each for each in isr if each not in self.unclean)
        if clean:
            return clean
        return (
            partition.leader if partition.leader in isr else _first_of(partition.replicas, isr),
        )

    def _was_away(self, broker_id: int) -> bool:
        return (
            broker_id not in self.live or broker_id in self.restarted or broker_id in self.unclean
        )


def _first_of(replicas: Collection[int], isr: tuple[int, ...]) -> int:
    return next((each for each in replicas if each in isr), isr[0])
