"""Reads what clients wrote of a message to `__trace`: by its id, or by the id of its trace.

A link has the message's id as its key, a step the trace's id, so each is in one partition, and
within a range of time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin import TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.errors import UnknownTopicError
from headwater.client.partitioner import partition_for_key
from headwater.client.tracing.trace_step import (
    TRACE_TOPIC,
    TraceStep,
    decode_link,
    decode_step,
)
from headwater.delivery.trace.batch_reader import BatchReader, ReadBudget, mentions
from headwater.wire.records import Record

#: Steps are written behind what they tell of, and by other clocks.
_MARGIN_MS: Final = 60_000
TRACE_BYTES_MAX: Final = 64 << 20
#: A message belongs to few traces.
_TRACES_MAX: Final = 8
STEPS_MAX: Final = 1_000


@dataclass(slots=True)
class WrittenSteps:
    #: Whether there is a `__trace`.
    is_there: bool
    steps: list[TraceStep] = field(default_factory=list)
    is_complete: bool = True

    @property
    def trace_ids(self) -> list[str]:
        return sorted({step.trace_id for step in self.steps})


class WrittenReader:
    def __init__(self, connection: ClusterConnection, reader: BatchReader) -> None:
        self._connection = connection
        self._reader = reader

    async def of_messages(
        self, places: Collection[MessageId], from_ms: int, known: Collection[str] = ()
    ) -> WrittenSteps:
        """The steps of their traces: those that are known, or else those that links name."""
        count = await self._partition_count()
        if count == 0:
            return WrittenSteps(is_there=False)
        budget = ReadBudget(TRACE_BYTES_MAX)
        names = {str(place) for place in places}
        traces = set(known)
        if traces:
            return await self._steps(traces, count, from_ms, budget)
        for number in {partition_for_key(name.encode(), count) for name in names}:
            async for record in self._records(number, from_ms, names, budget):
                link = decode_link(record.value)
                if link is not None and link.message_id in names and len(traces) < _TRACES_MAX:
                    traces.add(link.trace_id)
        return await self._steps(traces, count, from_ms, budget)

    async def of_trace(self, trace_id: str, from_ms: int) -> WrittenSteps:
        count = await self._partition_count()
        if count == 0:
            return WrittenSteps(is_there=False)
        return await self._steps({trace_id}, count, from_ms, ReadBudget(TRACE_BYTES_MAX))

    async def of_topic(self, topic: str, from_ms: int) -> WrittenSteps:
        """The steps of a topic's messages, of whatever trace."""
        count = await self._partition_count()
        found = WrittenSteps(is_there=count > 0)
        budget = ReadBudget(TRACE_BYTES_MAX)
        for number in range(count):
            partition = TopicPartition(TRACE_TOPIC, number)
            starts = await self._reader.starts([partition], from_ms)
            if partition not in starts:
                continue
            end = (await self._reader.bounds([partition]))[partition].end
            word = f'"topic":"{topic}"'.encode()
            records = self._reader.records(
                partition, starts[partition], end, budget, mentions([word])
            )
            async for _, record in records:
                step = decode_step(record.value)
                if step is not None and step.topic == topic:
                    found.steps.append(step)
        found.is_complete = not budget.is_used_up
        return found

    async def _steps(
        self, traces: Collection[str], count: int, from_ms: int, budget: ReadBudget
    ) -> WrittenSteps:
        found = WrittenSteps(is_there=True)
        for number in {partition_for_key(trace.encode(), count) for trace in traces}:
            async for record in self._records(number, from_ms, traces, budget):
                step = decode_step(record.value)
                if step is None or step.trace_id not in traces:
                    continue
                if len(found.steps) >= STEPS_MAX:
                    found.is_complete = False
                    break
                found.steps.append(step)
        found.is_complete &= not budget.is_used_up
        return found

    async def _partition_count(self) -> int:
        outcome = (await TopicOperations(self._connection).describe_topics([TRACE_TOPIC]))[
            TRACE_TOPIC
        ]
        if isinstance(outcome, UnknownTopicError):
            return 0
        return len(require_all({TRACE_TOPIC: outcome})[TRACE_TOPIC].partitions)

    async def _records(
        self, number: int, from_ms: int, keys: Collection[str], budget: ReadBudget
    ) -> AsyncIterator[Record]:
        """Those with one of the keys, from that time on."""
        partition = TopicPartition(TRACE_TOPIC, number)
        starts = await self._reader.starts([partition], from_ms - _MARGIN_MS)
        if partition not in starts:
            return
        end = (await self._reader.bounds([partition]))[partition].end
        wanted = {key.encode() for key in keys}
        records = self._reader.records(partition, starts[partition], end, budget, mentions(wanted))
        async for _, record in records:
            if record.key in wanted:
                yield record
