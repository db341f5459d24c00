"""The sequence numbers of all partitions of a producer, under the identity it has at the moment.

A new identity holds for a partition once nothing is under way there any more, since what is under
way keeps the identity it was sent with. The exception is a partition whose numbering has a hole for
certain: what is behind the hole is numbered anew at once.

A leader that has never heard of a producer id takes whatever number comes first, so a second batch
that overtakes the first would not be noticed. Therefore the first batch of a producer id to a
partition goes alone, until it is acknowledged. From then on the leader insists on the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.client.producer.idempotence.identity import NO_IDENTITY, ProducerIdentity
from headwater.client.producer.idempotence.partition_sequence import (
    PartitionSequence,
    SequencedBatch,
)


class Refusal(Enum):
    """What it means that a leader did not expect a batch's number."""

    #: Older ones come first, or the answer is about a number that it no longer has.
    OUT_OF_TURN = "out of turn"
    #: It was written before, and so long ago that the leader does not remember.
    WRITTEN = "written"
    #: There is a hole before it, for certain now; or the leader never had anything.
    GAP = "gap"
    #: The leader has acknowledged what comes before, and no longer has it.
    LOST = "lost"


class SequenceBook:
    def __init__(self) -> None:
        self.identity = NO_IDENTITY
        self._partitions: dict[TopicPartition, PartitionSequence] = {}
        #: The partitions whose leaders know the producer id.
        self._acquainted: set[TopicPartition] = set()
        #: The partitions that may have a gap: only they need to be looked at.
        self._troubled: set[TopicPartition] = set()

    def adopt(self, identity: ProducerIdentity) -> None:
        """Be this from now on; partitions with a gap are numbered anew."""
        self._become(identity)
        for sequence in self._with_gap():
            sequence.start_anew(identity)

    def start_anew(self, identity: ProducerIdentity) -> None:
        """Be this, in all partitions: what was under way is of no interest any more."""
        self._become(identity)
        self._partitions.clear()
        self._troubled.clear()

    def _become(self, identity: ProducerIdentity) -> None:
        if identity.producer_id != self.identity.producer_id:
            self._acquainted.clear()
        self.identity = identity

    def forget_identity(self) -> None:
        self.identity = NO_IDENTITY

    def may_number(self, topic_partition: TopicPartition) -> bool:
        """Whether a new batch may go out now."""
        if self.identity is NO_IDENTITY:
            return False
        sequence = self._partitions.get(topic_partition)
        if sequence is None or sequence.is_idle:
            return True
        if topic_partition not in self._acquainted:
            return False
        return sequence.has_room and sequence.identity == self.identity

    def number(self, batch: SequencedBatch) -> None:
        """Give a new batch its numbers; `may_number` must hold."""
        topic_partition = batch.topic_partition
        check(self.may_number(topic_partition), "a batch of %s comes too early", topic_partition)
        sequence = self._partitions.get(topic_partition)
        if sequence is None:
            sequence = self._partitions[topic_partition] = PartitionSequence(self.identity)
        elif sequence.identity != self.identity:
            sequence.start_anew(self.identity)
        sequence.number(batch)

    def may_resend(self, batch: SequencedBatch) -> bool:
        """Whether a batch that has its numbers may go out again: the oldest of its partition."""
        sequence = self._of(batch)
        return sequence is not None and not sequence.has_gap and sequence.is_first(batch)

    def acknowledged(self, batch: SequencedBatch) -> None:
        if batch.identity.producer_id == self.identity.producer_id:
            self._acquainted.add(batch.topic_partition)
        if (sequence := self._of(batch)) is not None:
            sequence.acknowledge(batch)
            if not sequence.has_hole and not sequence.needs_new_numbers:
                self._troubled.discard(batch.topic_partition)

    def was_renumbered(self, batch: SequencedBatch) -> bool:
        """Whether an answer may be about a number that the batch no longer has."""
        sequence = self._of(batch)
        return sequence is not None and sequence.was_renumbered(batch)

    def doubted(self, batch: SequencedBatch) -> None:
        """An attempt ended without an answer to whether it was written."""
        if (sequence := self._of(batch)) is not None:
            sequence.doubt(batch)

    def given_up(self, batch: SequencedBatch) -> None:
        """Nobody knows whether it was written, and it will not be sent again."""
        if (sequence := self._of_troubled(batch)) is not None:
            sequence.give_up(batch)

    def refused(self, batch: SequencedBatch) -> None:
        """It was not written, and will not be sent again."""
        if (sequence := self._of_troubled(batch)) is not None:
            sequence.refuse(batch)

    def split(self, batch: SequencedBatch, parts: Sequence[SequencedBatch]) -> None:
        if (sequence := self._of(batch)) is not None:
            sequence.replace(batch, list(parts))

    def refused_number(self, batch: SequencedBatch) -> Refusal:
        """The leader did not expect this number: find out why."""
        sequence = self._of_troubled(batch)
        if sequence is None or not sequence.is_first(batch):
            return Refusal.OUT_OF_TURN
        if sequence.is_known_written(batch):
            return Refusal.WRITTEN
        if sequence.is_behind_hole(batch):
            sequence.holes_are_certain(batch)
            return Refusal.GAP
        if sequence.has_acknowledged:
            return Refusal.LOST
        sequence.needs_new_numbers = True
        return Refusal.GAP

    def forgotten(self, batch: SequencedBatch) -> Refusal:
        """The leader knows nothing of this producer any more: begin anew, when it is its turn."""
        sequence = self._of_troubled(batch)
        if sequence is None or not sequence.is_first(batch):
            return Refusal.OUT_OF_TURN
        sequence.needs_new_numbers = True
        return Refusal.GAP

    @property
    def has_gap(self) -> bool:
        """Whether a new identity is needed to go on somewhere."""
        return bool(self._troubled) and bool(self._with_gap())

    @property
    def is_in_doubt(self) -> bool:
        """Whether there is a batch of which nobody knows whether it is written, or a hole."""
        return any(not sequence.is_idle for sequence in self._partitions.values())

    def _with_gap(self) -> list[PartitionSequence]:
        sequences = [self._partitions[each] for each in self._troubled]
        return [sequence for sequence in sequences if sequence.has_gap]

    def _of_troubled(self, batch: SequencedBatch) -> PartitionSequence | None:
        sequence = self._of(batch)
        if sequence is not None:
            self._troubled.add(batch.topic_partition)
        return sequence

    def _of(self, batch: SequencedBatch) -> PartitionSequence | None:
        return self._partitions.get(batch.topic_partition)
