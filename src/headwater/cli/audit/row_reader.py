"""Rows of `__audit`, or of another topic like it, read from a time on, and then what comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from headwater.audit.rows import AUDIT_TOPIC, Row, decode_row
from headwater.base.ids import TopicPartition
from headwater.client.admin import OffsetOperations, TopicOperations, require_all
from headwater.client.admin.offsets import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.errors import UnknownTopicError

_POLL_S: Final = 1.0


class RowReader:
    """Reads on where it stopped; the consumer is its user's, and reads nothing else."""

    def __init__(
        self,
        connection: ClusterConnection,
        consumer: AsyncConsumer,
        topic: str = AUDIT_TOPIC,
        decode: Callable[[bytes], Row | None] = decode_row,
    ) -> None:
        self._connection = connection
        self._consumer = consumer
        self._topic = topic
        self._decode = decode

    async def new_rows(self, from_ms: int) -> AsyncIterator[Row]:
        """What was published since the last call, or for the first time since `from_ms`."""
        topic = self._topic
        outcome = (await TopicOperations(self._connection).describe_topics([topic]))[topic]
        if isinstance(outcome, UnknownTopicError):
            return  # Nothing was published yet.
        info = require_all({topic: outcome})[topic]
        partitions = [TopicPartition(topic, each.partition) for each in info.partitions]
        operations = OffsetOperations(self._connection)
        ends = require_all(
            await operations.list_offsets(dict.fromkeys(partitions, OffsetTime.LATEST))
        )
        known = self._consumer.assignment()
        new = [each for each in partitions if each not in known]
        if new:
            starts = require_all(await operations.list_offsets(dict.fromkeys(new, max(from_ms, 0))))
            self._consumer.assign({*known, *new})
            for key, start in starts.items():
                # Where nothing is as young as that, what comes next is.
                self._consumer.seek(key, start.offset if start.offset >= 0 else ends[key].offset)
        left = {key: ends[key].offset for key in partitions}
        while True:
            # By position, because compaction may have removed the last records.
            for key, end in list(left.items()):
                if await self._consumer.position(key) >= end:
                    del left[key]
            if not left:
                return
            for record in await self._consumer.poll(_POLL_S):
                row = None if record.value is None else self._decode(record.value)
                if row is not None:
                    yield row
