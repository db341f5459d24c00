"""Where `headwater consume` starts in each partition, and which partitions it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import typer

from headwater.base.ids import TopicPartition
from headwater.cli.options.nearest_name import describe_topics
from headwater.cli.options.topic_pattern import choose_topics
from headwater.client.admin import OffsetOperations, OffsetTime, TopicOperations, require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.client.errors import UnknownTopicError
from headwater.client.fetch.isolation import IsolationLevel

NOTHING_SO_LATE: Final = -1


class Start(NamedTuple):
    """An offset, or a time for which to look one up; see `OffsetTime`."""

    offset: int | None = None
    time: int = OffsetTime.LATEST


def parse_start(offset: str | None, from_beginning: bool, from_datetime: str | None) -> Start:
    """What the options say, of which at most one may be given; the end if none is."""
    if (offset is not None) + from_beginning + (from_datetime is not None) > 1:
        raise typer.BadParameter(
            "say once where to start", param_hint="--offset, --from-beginning, --from-datetime"
        )
    if from_beginning or offset == "earliest":
        return Start(time=OffsetTime.EARLIEST)
    if from_datetime is not None:
        return Start(time=parse_datetime(from_datetime))
    if offset is None or offset == "latest":
        return Start(time=OffsetTime.LATEST)
    if not offset.isascii() or not offset.isdigit():
        raise typer.BadParameter(
            f"{offset!r} is neither an offset nor earliest or latest", param_hint="--offset"
        )
    return Start(offset=int(offset))


def parse_datetime(text: str) -> int:
    """Milliseconds of an ISO date and time, in local time unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} should be like 2026-01-31T12:00:00, with Z or +01:00 if it is not local",
            param_hint="--from-datetime",
        ) from None


async def find_partitions(
    connection: ClusterConnection, topic: str | None, pattern: str | None, partition: int | None
) -> list[TopicPartition]:
    """The partitions to read: of one topic, or of all that match."""
    topics: Sequence[TopicInfo]
    if topic is not None:
        [found] = (await describe_topics(connection, [topic])).values()
        # The connection must know it, too, to find the leaders.
        await connection.refresh([topic])
        topics = [found]
    else:
        known = {found.name: found for found in await TopicOperations(connection).list_topics()}
        topics = [known[name] for name in choose_topics(known, pattern)]
        if not topics:
            raise UnknownTopicError(f"There is no topic that matches {pattern!r}.")
    if partition is not None:
        return [
            TopicPartition(found.name, found.partition(partition).partition) for found in topics
        ]
    return [
        TopicPartition(found.name, number)
        for found in topics
        for number in range(len(found.partitions))
    ]


async def start_offsets(
    connection: ClusterConnection,
    partitions: Iterable[TopicPartition],
    start: Start,
    isolation_level: IsolationLevel,
) -> dict[TopicPartition, int]:
    """The first offset to read in each partition."""
    wanted = list(partitions)
    if start.offset is not None:
        return dict.fromkeys(wanted, start.offset)
    admin = OffsetOperations(connection)
    times: dict[TopicPartition, int] = dict.fromkeys(wanted, start.time)
    listed = require_all(await admin.list_offsets(times, isolation_level=isolation_level))
    offsets = {key: found.offset for key, found in listed.items()}
    # Where nothing is as late as the time that was asked for, only what comes is wanted.
    late = [key for key, offset in offsets.items() if offset == NOTHING_SO_LATE]
    if late:
        ends: dict[TopicPartition, int] = dict.fromkeys(late, OffsetTime.LATEST)
        listed = require_all(await admin.list_offsets(ends, isolation_level=isolation_level))
        offsets |= {key: found.offset for key, found in listed.items()}
    return offsets
