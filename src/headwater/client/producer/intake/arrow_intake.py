"""Takes Arrow batches: encoded column by column, in batches of their own, without record objects.

Neither interceptors nor serializers see these records, and a full buffer is always waited for. The
batches are larger than `batch.size` unless somebody chose that, since there is nothing to wait for.
It runs on the producer's loop, also for callers on other threads: see `ThreadedEngine.send_arrow`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headwater.base.audit_id import TakenNumbers
from headwater.base.ids import TopicPartition, validate_topic_name
from headwater.base.reused_memory import Kept, ReusedMemory
from headwater.base.settings import SettingValues
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors.record_errors import MessageTooLargeError
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.audit_numbers import AuditNumbers
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.intake.record_intake import (
    ForMemory,
    ForTopic,
    ForTurn,
    RecordIntake,
    Wait,
)
from headwater.client.producer.intake.topic_route import TopicRoute
from headwater.client.producer.intake.wrong_arguments import check_place

if TYPE_CHECKING:
    import pyarrow

    from headwater.client.columns.encoding.arrow_encoder import ArrowSection

#: Nearly what topics allow in a batch by default: a batch costs as much whatever its size.
SECTION_BYTES: Final = 1_000_000
#: How large a buffer for encoded batches may be to be used again.
_KEPT_SIZE_MAX: Final = 8 << 20
#: What is taken before the sender has its turn: about as much as it has under way.
TURN_BYTES: Final = 1 << 20


class ArrowIntake:
    """Called on the producer's loop."""

    def __init__(
        self,
        values: SettingValues,
        intake: RecordIntake,
        accumulator: RecordAccumulator,
        routes: Mapping[str, TopicRoute],
        *,
        wall_ms: Callable[[], int],
        now_s: Callable[[], float],
        wake: Callable[[], None],
        numbers: AuditNumbers | None = None,
    ) -> None:
        self._request_bytes_max = values.integer("max.request.size")
        wanted_bytes = SECTION_BYTES
        if values.is_set("batch.size"):
            wanted_bytes = values.integer("batch.size")
        self._section_bytes_max = min(
            wanted_bytes, self._request_bytes_max, accumulator.buffer_bytes
        )
        self._intake = intake
        self._accumulator = accumulator
        self._routes = routes
        self._wall_ms = wall_ms
        self._now_s = now_s
        self._wake = wake
        self._numbers = numbers
        # Those that wait to be written, and those that are being encoded.
        self._memory = ReusedMemory(
            Kept(_KEPT_SIZE_MAX, accumulator.buffer_bytes + 2 * _KEPT_SIZE_MAX)
        )

    def steps(
        self, topic: str, rows: pyarrow.RecordBatch | pyarrow.Table, partition: int | None
    ) -> Generator[Wait, None, DeliveryGroup]:
        """Take all rows; yields what has to be waited for."""
        # It brings numpy along, which most producers do not need.
        from headwater.client.columns.encoding.arrow_encoder import encode_arrow

        self._intake.check(None)
        check_place(topic, partition)
        while (route := self._routes.get(topic)) is None:
            validate_topic_name(topic)
            yield ForTopic(topic, is_known=False)
        if partition is not None and not 0 <= partition < len(route.queues):
            raise UnknownTopicError.partition(topic, partition, len(route.queues))
        batches: list[ProduceBatch] = []
        numbers = self._numbers
        numbering = None if numbers is None else _Numbering(topic, numbers, self._accumulator)
        sections = encode_arrow(
            rows,
            partition=partition,
            partition_count=len(route.queues),
            choose_partition=lambda: route.next_sticky().topic_partition.partition,
            section_bytes_max=self._section_bytes_max,
            now_ms=self._wall_ms(),
            memory=self._memory,
            take_numbers=None if numbering is None else numbering.take,
        )
        try:
            yield from self._add_sections(sections, route, batches)
        except BaseException:
            if numbering is not None:
                numbering.gave_up(sum(batch.record_count for batch in batches))
            raise
        return DeliveryGroup(batches)

    def _add_sections(
        self, sections: Iterable[ArrowSection], route: TopicRoute, batches: list[ProduceBatch]
    ) -> Generator[Wait]:
        taken_bytes = 0
        for number, section in sections:
            size_bytes = len(section.data)
            if size_bytes > self._request_bytes_max:
                raise MessageTooLargeError(
                    f"A record of {size_bytes} bytes is larger than max.request.size, "
                    f"which is {self._request_bytes_max}."
                )
            queue = route.queues[number]
            self._intake.check(queue)
            while True:
                batch = self._accumulator.add_section(queue, section, self._now_s())
                self._wake()
                if batch is not None:
                    batches.append(batch)
                    break
                yield ForMemory(size_bytes)
            taken_bytes += size_bytes
            if taken_bytes >= TURN_BYTES:
                taken_bytes = 0
                yield ForTurn()


class _Numbering:
    """The numbers that the rows of one call take."""

    def __init__(self, topic: str, numbers: AuditNumbers, accumulator: RecordAccumulator) -> None:
        self._topic = topic
        self._numbers = numbers
        self._lock = accumulator.lock
        self._taken_count = 0

    def take(self, partition: int, count: int) -> TakenNumbers:
        with self._lock:
            numbers = self._numbers.numbers(TopicPartition(self._topic, partition))
            first = numbers.take(count)
        self._taken_count += count
        return TakenNumbers(numbers.stream, first)

    def gave_up(self, added_count: int) -> None:
        """It ended with an error, when so many records were in batches."""
        self._numbers.gave_up(max(self._taken_count - added_count, 0))
