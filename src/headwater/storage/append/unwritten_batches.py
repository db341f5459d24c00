"""Batches of new producers that were refused, so that none behind them is taken before them.

A producer that nothing is known of may begin with any sequence number: it may have been idle for
long. A disk that is full refuses a large batch and takes the smaller one that follows it on the
same connection. Together they would let a new producer's second batch in without its first, which
could then never be written any more. So the place of a refused first batch is remembered until it
comes again or the producer has another epoch. Of a producer that is known, its state tells as much.
A delayed batch that cannot be taken just now is such a batch too.

It is memory only. After a restart a producer sends all again that was not answered, in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.storage.errors import OutOfOrderSequenceError
from headwater.storage.producers.state import ProducerStates
from headwater.wire.records import BatchHeader

#: Producers whose place is remembered; when there are more, those of long ago are forgotten.
PRODUCERS_MAX: Final = 1_000


class UnwrittenBatches:
    """The owner is the partition's log."""

    __slots__ = ("first_sequences",)

    def __init__(self) -> None:
        #: By producer id and epoch.
        self.first_sequences: dict[tuple[int, int], int] = {}

    def refused(self, headers: Iterable[BatchHeader], states: ProducerStates) -> None:
        """A client's batches could not be written."""
        for header in headers:
            if header.has_producer_id and states.entry(header.producer_id) is None:
                if len(self.first_sequences) >= PRODUCERS_MAX:
                    del self.first_sequences[next(iter(self.first_sequences))]
                self.first_sequences.setdefault(_key(header), header.base_sequence)

    def check(self, headers: Iterable[BatchHeader], partition: TopicPartition) -> None:
        """Raise if a batch comes before the one that was refused."""
        for header in headers:
            first = self.first_sequences.get(_key(header))
            if first is not None and header.base_sequence != first:
                raise OutOfOrderSequenceError(
                    f"Producer {header.producer_id} wrote to {partition} with sequence number "
                    f"{header.base_sequence}, but {first} was refused, which comes before it."
                )

    def written(self, headers: Iterable[BatchHeader]) -> None:
        """From now on the producers' states tell what may come."""
        for header in headers:
            self.first_sequences.pop(_key(header), None)


def _key(header: BatchHeader) -> tuple[int, int]:
    return header.producer_id, header.producer_epoch
