"""Reading the rows of `__audit` that a topic's book is made of."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from headwater.audit.topic_book import TopicBook, make_book
from headwater.base.ids import TopicPartition
from headwater.cli.audit.row_reader import RowReader
from headwater.cli.options.nearest_name import describe_topics
from headwater.client.admin import OffsetOperations, require_all
from headwater.client.admin.offsets import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.delivery.audit.stage_rows import (
    STAGES_TOPIC,
    StageSum,
    decode_stage_row,
    sum_stages,
)

#: Rows of a time are published later than it was, and a group may be behind by more.
MARGIN_MS: Final = 600_000


class AskedBooks(NamedTuple):
    """The book, and beside it what stages of users' own have told."""

    book: TopicBook
    stages: list[StageSum]


class AskedBook(NamedTuple):
    """What somebody wants to know."""

    topic: str
    last_ms: int
    group: str | None


async def read_book(connection: ClusterConnection, servers: str, asked: AskedBook) -> AskedBooks:
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
    async with AsyncConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        reader = RowReader(connection, consumer)
        rows = [
            row async for row in reader.new_rows(from_ms - MARGIN_MS) if row["topic"] == asked.topic
        ]
        reader = RowReader(connection, consumer, STAGES_TOPIC, decode_stage_row)
        stage_rows = [row async for row in reader.new_rows(from_ms - MARGIN_MS)]
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
    stages = sum_stages(stage_rows, asked.topic, from_ms, now_ms + asked.last_ms)
    return AskedBooks(book, stages)
