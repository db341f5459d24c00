"""The books of many topics, kept up as rows of `__audit` come."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headwater.audit.rows import Row
from headwater.audit.topic_book import TopicBook, make_book
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.audit.actions import MARGIN_MS
from headwater.cli.audit.row_reader import RowReader
from headwater.client.admin import AdminOperations, OffsetTime, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer

#: Of all topics together; beyond that the oldest go, and their time is not watched any more.
ROWS_MAX: Final = 200_000
#: What a book does not need, and takes most of a row's memory.
_UNUSED: Final = ("producers", "host", "topic_id")


class Books:
    """Rows of the last `last_ms`, by topic."""

    def __init__(
        self,
        connection: ClusterConnection,
        consumer: AsyncConsumer,
        topics: Collection[str],
        last_ms: int,
    ) -> None:
        self._admin = AdminOperations(connection)
        self._reader = RowReader(connection, consumer)
        self._topics = frozenset(topics)
        self._last_ms = last_ms
        #: In the order in which they were read.
        self._rows: list[Row] = []
        self.dropped_rows = 0

    async def read(self, now_ms: int) -> list[TopicBook]:
        """The books of the watched topics that there are. Raises `KafkaError`."""
        from_ms = now_ms - self._last_ms
        async for row in self._reader.new_rows(from_ms - MARGIN_MS):
            if not self._topics or row["topic"] in self._topics:
                for name in _UNUSED:
                    row.pop(name, None)
                self._rows.append(row)
            if len(self._rows) >= 2 * ROWS_MAX:
                self._forget(from_ms)
        self._forget(from_ms)
        by_topic: dict[str, list[Row]] = {}
        for row in self._rows:
            by_topic.setdefault(row["topic"], []).append(row)
        starts = await self._log_starts(by_topic)
        return [
            make_book(
                topic,
                rows,
                from_ms=from_ms,
                to_ms=now_ms + self._last_ms,
                now_ms=now_ms,
                log_starts=starts[topic],
            )
            for topic, rows in sorted(by_topic.items())
            if topic in starts
        ]

    def _forget(self, from_ms: int) -> None:
        oldest_ms = from_ms - MARGIN_MS
        self._rows = [row for row in self._rows if row.get("time", 0) >= oldest_ms]
        if len(self._rows) > ROWS_MAX:
            self.dropped_rows += len(self._rows) - ROWS_MAX
            del self._rows[:-ROWS_MAX]

    async def _log_starts(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        """Where the partitions of topics begin; a topic that is gone is left out."""
        described = await self._admin.describe_topics(sorted(topics)) if topics else {}
        partitions = [
            TopicPartition(topic, each.partition)
            for topic, info in described.items()
            if not isinstance(info, KafkaError)
            for each in info.partitions
        ]
        found = require_all(
            await self._admin.list_offsets(dict.fromkeys(partitions, OffsetTime.EARLIEST))
        )
        starts: dict[str, dict[int, int]] = {}
        for key, listed in found.items():
            starts.setdefault(key.topic, {})[key.partition] = listed.offset
        return starts
