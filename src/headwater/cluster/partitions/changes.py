"""Carries out changes of partitions' leaders and ISRs: into the store, into the image, to brokers.

Whoever plans such a change (`brokers.failures`, `alterations`, `leader_moves`, `reassignment`) says
what shall be; here it is written, counted and announced, as one change however many partitions it
is. It is one line in the log, too. Partitions that move to other brokers may have waited for it: so
what is to be done next about these follows at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import NO_LEADER, BrokerInfo, PartitionImage
from headwater.cluster.partitions.states import States, write_states

_logger = logging.getLogger(__name__)

#: The next states of those of the partitions, or with None of all, that are on their way elsewhere.
NextSteps = Callable[[Iterable[TopicPartition] | None], States]


class PartitionChanges:
    """What the controller does about partitions; its method must not run twice at a time."""

    def __init__(
        self,
        writes: ControllerWrites,
        publisher: Publisher,
        clock: Clock,
        next_steps: NextSteps = lambda names: {},
    ) -> None:
        self._writes = writes
        self._publisher = publisher
        self._clock = clock
        self._next_steps = next_steps
        #: How often a partition got a leader.
        self.election_count = 0
        #: How long the changes took in which that happened.
        self.election_seconds = 0.0
        #: How often that was one that was not in sync.
        self.unclean_election_count = 0

    async def carry_out(
        self,
        states: States,
        brokers: Mapping[int, BrokerInfo | None] | None = None,
        event: str = "",
    ) -> KafkaError | None:
        """Write the states and announce those that were written; returns why others were not.

        The brokers that came (with what they registered) and went (None) are announced with them,
        unless something failed: then they are still news when it is tried again. `event` is the
        reason for all of it, a sentence for the log.
        """
        error = await self._carry_out(states, brokers, event)
        changed = None if brokers is not None else states.keys()
        while error is None and (following := self._next_steps(changed)):
            error = await self._carry_out(following, None, "")
            changed = following.keys()
        return error

    async def _carry_out(
        self, states: States, brokers: Mapping[int, BrokerInfo | None] | None, event: str
    ) -> KafkaError | None:
        begun_ms, elections_before = self._clock.monotonic_ms(), self.election_count
        error = None
        edits = ImageEdits()
        elections = _Elections()
        if states:
            written, error = await write_states(self._writes, states, self._publisher.image)
            for name, partition in written.items():
                topic, number = name
                before = self._publisher.image.topics[topic].partitions[number]
                self._count(before, partition)
                elections.add(name, before, partition)
                edits.partitions.setdefault(topic, {})[number] = partition
        if brokers and error is None:
            edits.brokers.update(brokers)
        if not edits.is_empty:
            self._publisher.announce(edits.apply(self._publisher.image))
        if self.election_count > elections_before:
            self.election_seconds += (self._clock.monotonic_ms() - begun_ms) / 1_000
        elections.log("" if error is not None else event, self._clock.monotonic_ms() - begun_ms)
        return error

    def _count(self, before: PartitionImage, after: PartitionImage) -> None:
        if after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch:
            self.election_count += 1
            self.unclean_election_count += after.leader not in before.isr


class _Elections:
    """What one change means for leaders, for the log."""

    def __init__(self) -> None:
        self._elected: list[TopicPartition] = []
        self._unclean: list[TopicPartition] = []
        self._leaderless: list[TopicPartition] = []

    def add(self, name: TopicPartition, before: PartitionImage, after: PartitionImage) -> None:
        if after.leader_epoch == before.leader_epoch:
            return
        if after.leader == NO_LEADER:
            self._leaderless.append(name)
        elif after.leader in before.isr:
            self._elected.append(name)
        else:
            self._unclean.append(name)

    def log(self, event: str, elapsed_ms: float) -> None:
        told = [event] if event else []
        for names, verdict in (
            (self._elected, "got a leader"),
            (self._unclean, "got a leader that was not in sync, and may have lost records"),
            (self._leaderless, "are without a leader"),
        ):
            if names:
                told.append(f"Partitions that {verdict}: {len(names):,} ({listed(names)}).")
        if len(told) > bool(event):
            told.append(f"That took {elapsed_ms:.0f} ms.")
        if told:
            is_trouble = self._unclean or self._leaderless
            _logger.log(logging.WARNING if is_trouble else logging.INFO, "%s", " ".join(told))
