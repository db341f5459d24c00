"""Sends the rows of a task with a producer, and knows whether all of them are written.

Arrow batches go to the producer as they are, without a Python object for each record. What fails
is told as soon as it is known, in a sentence that names the topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headwater.base.errors import KafkaError
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.errors import TopicNotKnownError
from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.failed_rows import FailedRows
from headwater.pipeline.sink.sink_errors import WriteFailedError
from headwater.pipeline.sink.sink_rows import group_rows
from headwater.pipeline.stages.sink_counts import SinkCounts

if TYPE_CHECKING:
    import pyarrow

#: How many batches are remembered before those that are written are forgotten.
_LOOK_AFTER: Final = 64


class RecordSender:
    """For one task. `topic` goes before the column of that name.

    Rows that cannot be written go where `failed` says; without it they raise. What is written is
    told to `counts`.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str | None,
        failed: FailedRows | None = None,
        counts: SinkCounts | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._failed = failed
        self._counts = counts
        self._under_way: list[tuple[str, DeliveryGroup]] = []
        self.row_count = 0

    def send_all(self, batches: Iterable[pyarrow.RecordBatch]) -> None:
        for batch in batches:
            self.send(batch)

    def send(self, batch: pyarrow.RecordBatch) -> None:
        """Take a batch; waits for memory, not for the broker."""
        good = batch
        if self._failed is not None:
            good, letters = self._failed.sort(batch)
            if letters is not None:
                self._send(self._failed.topic, None, letters)
        for topic, partition, rows in group_rows(good, self._topic):
            self._send(topic, partition, rows)
        self.row_count += len(batch)
        if len(self._under_way) > _LOOK_AFTER:
            self._look()

    @property
    def failed_count(self) -> int:
        """How many of the rows became dead letters."""
        return 0 if self._failed is None else self._failed.count

    def finish(self) -> None:
        """Wait until all is written; raises `WriteFailedError` if something is not."""
        self._producer.flush()
        self._look()

    def _send(self, topic: str, partition: int | None, rows: pyarrow.RecordBatch) -> None:
        try:
            delivery = self._producer.send_arrow(topic, rows, partition=partition)
        except KafkaError as error:
            raise _failed(topic, error) from error
        self._under_way.append((topic, delivery))

    def _look(self) -> None:
        left = []
        for topic, delivery in self._under_way:
            if not delivery.done():
                left.append((topic, delivery))
            elif (error := delivery.exception(0)) is not None:
                raise _failed(topic, error) from error
            elif self._counts is not None:
                self._counts.add(delivery)
        self._under_way = left


def _failed(topic: str, error: KafkaError) -> WriteFailedError:
    if isinstance(error, TopicNotKnownError):
        sentence = (
            f"The topic {topic!r} cannot be written to: it does not exist and is not created by "
            f"itself, or no broker can be reached ({error})"
        )
    else:
        sentence = f"Not all rows for the topic {topic!r} were written: {error}"
    return WriteFailedError(sentence, error)
