"""The numbers of one partition's batches: who is under way, and where the numbering has a hole.

Every record of an idempotent producer has a sequence number in its partition, and a batch the
number of its first record. The leader accepts a batch only if it continues where the last one
ended; one that it has already is answered like the first time. So a batch may be sent again as long
as it keeps its number, and a few may be under way at once without a change of their order.

Batches stand in a line from the oldest of which nobody knows yet what became of it. A batch that
the producer gave up leaves a hole of which nobody knows whether the leader has filled it: a batch
behind it that is accepted says yes, the next one being refused says no. A batch that the leader
refused for good leaves a hole for certain: nothing behind it can have been written under these
numbers. Then, and only then, what is behind may be numbered anew, under a new epoch, without any
record being written twice.

For holes one thing is taken for granted, as Kafka's own client does: a leader does not serve what
is left of a lost connection after it has refused the next number over a new one. Without holes
nothing needs to be taken for granted, since a batch never changes its number.
"""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Final, Protocol, TypeAlias

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.client.producer.idempotence.identity import ProducerIdentity

#: Numbers go from 0 to 2^31 - 1 and then from 0 again.
SEQUENCE_COUNT: Final = 2**31
#: As many batches of a producer does a leader remember, to tell which ones it has already. The line
#: is never longer: a batch behind it could push the oldest one out of the leader's memory.
LINE_LENGTH_MAX: Final = 5


class SequencedBatch(Protocol):
    """What is read and set here of a batch; the rest of it is the sender's."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def record_count(self) -> int: ...

    #: NO_IDENTITY and -1 until it is numbered.
    identity: ProducerIdentity
    base_sequence: int


class Gone(Enum):
    """What is left in the line of a batch that will not be sent again."""

    WRITTEN = "written"
    #: It was given up, and may have been written: perhaps a hole.
    UNSURE = "unsure"
    #: It was refused, and not written: a hole.
    REFUSED = "refused"


_Place: TypeAlias = SequencedBatch | Gone
_HOLES: Final = (Gone.UNSURE, Gone.REFUSED)


def advance(sequence: int, record_count: int) -> int:
    """The number that comes that many records later."""
    return (sequence + record_count) % SEQUENCE_COUNT


class PartitionSequence:
    """One owner, the book of a producer's partitions; knows nothing of errors or requests."""

    __slots__ = (
        "_in_doubt",
        "_line",
        "_renumbered",
        "has_acknowledged",
        "identity",
        "needs_new_numbers",
        "next_sequence",
    )

    def __init__(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self.next_sequence = 0
        #: Whether anything was acknowledged under this identity.
        self.has_acknowledged = False
        #: Whether the leader knows nothing of this producer, so that it wants to see a beginning.
        self.needs_new_numbers = False
        self._line: list[_Place] = []
        #: Batches that were numbered anew since they were sent: the next answer may still be about
        #: the old number.
        self._renumbered: list[SequencedBatch] = []
        #: Batches whose answer did not come, or left open whether they are written.
        self._in_doubt: list[SequencedBatch] = []

    @property
    def in_flight(self) -> list[SequencedBatch]:
        return [place for place in self._line if not isinstance(place, Gone)]

    @property
    def has_hole(self) -> bool:
        return Gone.UNSURE in self._line or Gone.REFUSED in self._line

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way and nothing is in doubt."""
        return not self._line

    @property
    def has_room(self) -> bool:
        """Whether a new batch may be numbered."""
        return len(self._line) < LINE_LENGTH_MAX and not self.has_hole

    def number(self, batch: SequencedBatch) -> None:
        """Put a new batch at the end of the line."""
        check(self.has_room, "there is no room for a batch of %s", batch.topic_partition)
        self._append(batch)

    def is_first(self, batch: SequencedBatch) -> bool:
        """Whether no other batch under way is older."""
        in_flight = self.in_flight
        return bool(in_flight) and in_flight[0] is batch

    def is_behind_hole(self, batch: SequencedBatch) -> bool:
        return any(place in _HOLES for place in self._line[: self._index(batch)])

    def is_known_written(self, batch: SequencedBatch) -> bool:
        """Whether the leader has accepted one behind it, which it does only after this one."""
        index = self._index(batch)
        return index is not None and Gone.WRITTEN in self._line[index:]

    def acknowledge(self, batch: SequencedBatch) -> None:
        """It is written, and so is all that the leader has to have before it."""
        index = self._index(batch)
        if index is None:
            return
        self.has_acknowledged = True
        self._leave(index, batch, Gone.WRITTEN)
        for earlier in range(index):
            if self._line[earlier] in _HOLES:
                self._line[earlier] = Gone.WRITTEN
        self._shorten()

    def give_up(self, batch: SequencedBatch) -> None:
        """It will not be sent again, and nobody knows whether it was written."""
        self._leave_hole(batch, Gone.UNSURE)

    def refuse(self, batch: SequencedBatch) -> None:
        """It will not be sent again, because the leader refused it; an earlier attempt may not have
        been refused."""
        was_in_doubt = any(each is batch for each in self._in_doubt)
        self._leave_hole(batch, Gone.UNSURE if was_in_doubt else Gone.REFUSED)

    def doubt(self, batch: SequencedBatch) -> None:
        """It may have been written."""
        if self._index(batch) is not None and all(each is not batch for each in self._in_doubt):
            self._in_doubt.append(batch)

    def was_renumbered(self, batch: SequencedBatch) -> bool:
        """Whether an answer may be about a number it no longer has; asked once for each answer."""
        if not self._renumbered:
            return False
        remaining = [each for each in self._renumbered if each is not batch]
        was_renumbered = len(remaining) < len(self._renumbered)
        self._renumbered = remaining
        return was_renumbered

    def replace(self, batch: SequencedBatch, parts: list[SequencedBatch]) -> None:
        """Parts of a batch take its numbers and its place."""
        index = self._index(batch)
        if index is None:
            return
        self.was_renumbered(batch)
        sequence = batch.base_sequence
        for part in parts:
            part.identity = batch.identity
            part.base_sequence = sequence
            sequence = advance(sequence, part.record_count)
        check(sequence == advance(batch.base_sequence, batch.record_count), "parts make no whole")
        self._line[index : index + 1] = parts

    def holes_are_certain(self, batch: SequencedBatch) -> None:
        """This one was refused because of a hole, so those before it were not filled."""
        for index in range(self._index(batch) or 0):
            if self._line[index] is Gone.UNSURE:
                self._line[index] = Gone.REFUSED

    @property
    def has_gap(self) -> bool:
        """Whether what is under way has to be numbered anew, and can be.

        All before the hole must be known to be written, since new numbers would write it again. An
        unsure hole is a gap only if nobody is behind it who will tell.
        """
        if self.needs_new_numbers:
            return True
        if not self._line or not isinstance(self._line[0], Gone):
            return False  # Without a hole at its begin, as nearly always.
        holes = list(itertools.takewhile(lambda place: isinstance(place, Gone), self._line))
        return Gone.REFUSED in holes or (len(holes) == len(self._line) and bool(holes))

    def start_anew(self, identity: ProducerIdentity) -> None:
        """Number what is under way from 0, as another identity."""
        batches = self.in_flight
        self.identity = identity
        self.next_sequence = 0
        self.has_acknowledged = False
        self.needs_new_numbers = False
        self._line = []
        self._renumbered = list(batches)
        self._in_doubt = []
        for batch in batches:
            self._append(batch)

    def _append(self, batch: SequencedBatch) -> None:
        batch.identity = self.identity
        batch.base_sequence = self.next_sequence
        self.next_sequence = advance(self.next_sequence, batch.record_count)
        self._line.append(batch)

    def _leave_hole(self, batch: SequencedBatch, gone: Gone) -> None:
        index = self._index(batch)
        if index is not None:
            self._leave(index, batch, Gone.WRITTEN if self.is_known_written(batch) else gone)
            self._shorten()

    def _leave(self, index: int, batch: SequencedBatch, gone: Gone) -> None:
        self._line[index] = gone
        self.was_renumbered(batch)
        if self._in_doubt:
            self._in_doubt = [each for each in self._in_doubt if each is not batch]

    def _shorten(self) -> None:
        while self._line and self._line[0] is Gone.WRITTEN:
            del self._line[0]

    def _index(self, batch: SequencedBatch) -> int | None:
        for index, place in enumerate(self._line):
            if place is batch:
                return index
        return None
