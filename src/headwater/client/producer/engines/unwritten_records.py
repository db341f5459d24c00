"""The records that a producer had when its program ended, and how many of them were not written."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import KafkaError
from headwater.client.errors import ClientClosedError
from headwater.client.producer.batches.batch import ProduceBatch


class UnwrittenRecords:
    """Counts when it is asked, since batches fill and come to their end meanwhile."""

    def __init__(self, batches: Sequence[ProduceBatch]) -> None:
        self._batches = batches

    @property
    def count(self) -> int:
        return sum(_lost_count(batch) for batch in self._batches)

    @property
    def reason(self) -> KafkaError | None:
        """What stood in the way of the first that was not written, if that is known."""
        for batch in self._batches:
            if batch.is_done and batch.error is None:
                continue
            if batch.error is not None and not isinstance(batch.error, ClientClosedError):
                return batch.error
            if batch.last_failure is not None:
                return batch.last_failure
        return None


def _lost_count(batch: ProduceBatch) -> int:
    if not batch.is_done:
        return batch.record_count
    if batch.error is None:
        return 0
    outcomes = (batch.outcome(index) for index in range(batch.record_count))
    return sum(isinstance(outcome, KafkaError) for outcome in outcomes)


def records_text(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
