"""Carries out changes of partitions' leaders and ISRs: into the store, into the image, to brokers.

Whoever plans such a change (`brokers.failures`, `alterations`, `leader_moves`) says what
shall be; here it is written, counted and announced, as one change however many partitions it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import NO_LEADER, BrokerInfo, PartitionImage
from headwater.cluster.partitions.states import States, write_states


class PartitionChanges:
    """What the controller does about partitions; its method must not run twice at a time."""

    def __init__(self, writes: ControllerWrites, publisher: Publisher, clock: Clock) -> None:
        self._writes = writes
        self._publisher = publisher
        self._clock = clock
        #: How often a partition got a leader.
        self.election_count = 0
        #: How long the changes took in which that happened.
        self.election_seconds = 0.0
        #: How often that was one that was not in sync.
        self.unclean_election_count = 0

    async def carry_out(
        self, states: States, brokers: Mapping[int, BrokerInfo | None] | None = None
    ) -> KafkaError | None:
        """Write the states and announce those that were written; returns why others were not.

        The brokers that came (with what they registered) and went (None) are announced with them,
        unless something failed: then they are still news when it is tried again.
        """
        begun_ms, elections_before = self._clock.monotonic_ms(), self.election_count
        error = None
        edits = ImageEdits()
        if states:
            written, error = await write_states(self._writes, states)
            for (topic, number), partition in written.items():
                self._count(self._publisher.image.topics[topic].partitions[number], partition)
                edits.partitions.setdefault(topic, {})[number] = partition
        if brokers and error is None:
            edits.brokers.update(brokers)
        if not edits.is_empty:
            self._publisher.announce(edits.apply(self._publisher.image))
        if self.election_count > elections_before:
            self.election_seconds += (self._clock.monotonic_ms() - begun_ms) / 1_000
        return error

    def _count(self, before: PartitionImage, after: PartitionImage) -> None:
        if after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch:
            self.election_count += 1
            self.unclean_election_count += after.leader not in before.isr
