"""Reading the rows of `__audit` that a topic's book is made of."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from headwater.audit.rows import AUDIT_TOPIC, Row, decode_row
from headwater.audit.topic_book import TopicBook, make_book
from headwater.base.ids import TopicPartition
from headwater.cli.options.nearest_name import describe_topics
from headwater.client.admin import OffsetOperations, TopicOperations, require_all
from headwater.client.admin.offsets import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.errors import UnknownTopicError

_POLL_S: Final = 1.0
#: Rows of a time are published later than it was, and a group may be behind by more.
_MARGIN_MS: Final = 600_000


class AskedBook(NamedTuple):
    """What somebody wants to know."""

    topic: str
    last_ms: int
    group: str | None


async def read_book(connection: ClusterConnection, servers: str, asked: AskedBook) -> TopicBook:
    """The book of a topic for its last records; raises `UnknownTopicError`."""
    now_ms = time.time_ns() // 1_000_000
    from_ms = now_ms - asked.last_ms
    topics = await describe_topics(connection, [asked.topic])
    partitions = [
        TopicPartition(asked.topic, each.partition) for each in topics[asked.topic].partitions
    ]
    starts = require_all(
        await OffsetOperations(connection).list_offsets(
            dict.fromkeys(partitions, OffsetTime.EARLIEST)
        )
    )
    rows = await _read_rows(connection, servers, from_ms - _MARGIN_MS, asked.topic)
    book = make_book(
        asked.topic,
        rows,
        # Buckets begin on the clock, so the first one begins before the time that was asked for.
        from_ms=from_ms,
        to_ms=now_ms + asked.last_ms,
        now_ms=now_ms,
        log_starts={key.partition: found.offset for key, found in starts.items()},
    )
    if asked.group is not None:
        book.groups = [each for each in book.groups if each.group == asked.group]
    return book


async def _read_rows(
    connection: ClusterConnection, servers: str, from_ms: int, topic: str
) -> list[Row]:
    """The topic's rows that were published since; none where nothing was published yet."""
    outcome = (await TopicOperations(connection).describe_topics([AUDIT_TOPIC]))[AUDIT_TOPIC]
    if isinstance(outcome, UnknownTopicError):
        return []
    info = require_all({AUDIT_TOPIC: outcome})[AUDIT_TOPIC]
    partitions = [TopicPartition(AUDIT_TOPIC, each.partition) for each in info.partitions]
    operations = OffsetOperations(connection)
    ends = require_all(await operations.list_offsets(dict.fromkeys(partitions, OffsetTime.LATEST)))
    starts = require_all(await operations.list_offsets(dict.fromkeys(partitions, max(from_ms, 0))))
    left = {
        key: ends[key].offset
        for key, start in starts.items()
        if 0 <= start.offset < ends[key].offset
    }
    rows: list[Row] = []
    async with AsyncConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        consumer.assign(left)
        for key in left:
            consumer.seek(key, starts[key].offset)
        while left:
            for record in await consumer.poll(_POLL_S):
                row = None if record.value is None else decode_row(record.value)
                if row is not None and row["topic"] == topic:
                    rows.append(row)
            # By position, because compaction may have removed the last records.
            for key, end in list(left.items()):
                if await consumer.position(key) >= end:
                    del left[key]
    return rows
