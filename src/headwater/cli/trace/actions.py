"""What `headwater trace` does on a cluster."""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

from headwater.base.counted import counted
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.cli.options.nearest_name import describe_topics
from headwater.cli.output.json_document import print_document
from headwater.cli.trace.output import document_of, print_story
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.partitioner import partition_for_key
from headwater.delivery.trace.batch_reader import BatchReader
from headwater.delivery.trace.investigation import Found, Investigation
from headwater.delivery.trace.key_search import KeySearch, messages_with_key


class Asked(NamedTuple):
    """What is to be shown: one of a message, a key in a topic, and a trace."""

    message: MessageId | None
    key: bytes | None
    topic: str | None
    trace_id: str | None
    last_ms: int
    limit: int


async def show(connection: ClusterConnection, asked: Asked, *, as_json: bool) -> None:
    """Raises `KafkaError`, with a sentence, where there is nothing to show."""
    now_ms = time.time_ns() // 1_000_000
    investigation = Investigation(connection, now_ms)
    found: list[Found] = []
    if asked.trace_id is not None:
        found = await investigation.of_trace(asked.trace_id, now_ms - asked.last_ms)
    elif asked.message is not None:
        await describe_topics(connection, [asked.message.topic])
        found = [await investigation.of_message(asked.message)]
    elif asked.key is not None and asked.topic is not None:
        for message in await _with_key(connection, asked.topic, asked, now_ms):
            found.append(await investigation.of_message(message))
    if as_json:
        print_document({"messages": [document_of(each) for each in found]})
        return
    for number, story in enumerate(found):
        if number:
            print()
        print_story(story)


async def _with_key(
    connection: ClusterConnection, topic: str, asked: Asked, now_ms: int
) -> list[MessageId]:
    info = (await describe_topics(connection, [topic]))[topic]
    key = asked.key or b""
    partition = TopicPartition(topic, partition_for_key(key, len(info.partitions)))
    search = KeySearch(partition, key, now_ms - asked.last_ms, asked.limit)
    is_watched = sys.stderr.isatty()

    def progress(read_records: int, offsets: int) -> None:
        if is_watched:
            share = f"{read_records:,} of some {offsets:,} records"
            print(f"\rLooking through {partition}: {share}", end="", file=sys.stderr, flush=True)

    found = await messages_with_key(BatchReader(connection), search, progress)
    if is_watched and found.read_records:
        print("\r\033[K", end="", file=sys.stderr)
    if not found.is_complete:
        print(
            f"headwater: Only {counted(found.read_records, 'record')} of {partition} were looked "
            "through: give a shorter --last.",
            file=sys.stderr,
        )
    if not found.messages:
        print(
            f"headwater: No record of {partition}, where this key belongs, has it within the time "
            "of --last.",
            file=sys.stderr,
        )
    return found.messages
