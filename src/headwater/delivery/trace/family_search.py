"""Finds the other records of a message: in retry topics, dead-letter topics, and sent back.

They name the message by where it was read first. No index has that, so the topics that may hold
them are read, from the message's own time on, until so many bytes are read. Batches that do not
mention the name are passed over without being decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin import TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.fetch.isolation import IsolationLevel
from headwater.delivery.trace.batch_reader import BatchReader, ReadBudget, mentions
from headwater.delivery.trace.station import Kind, Station
from headwater.wire.delayed.retry_topics import DEAD_LETTER_PREFIX, RETRY_PREFIX

FAMILY_BYTES_MAX: Final = 64 << 20
#: A message that goes round for ever is told up to here.
STATIONS_MAX: Final = 100
#: Clocks differ, and a record's time is when it was made.
_MARGIN_MS: Final = 60_000


@dataclass(slots=True)
class Family:
    stations: list[Station] = field(default_factory=list)
    #: Where it may wait meanwhile, which nothing that can be read tells.
    retry_topics: list[str] = field(default_factory=list)
    #: Whether all that might hold one was read.
    is_complete: bool = True


async def find_family(
    connection: ClusterConnection,
    reader: BatchReader,
    root: Station,
    from_ms: int,
    groups: Collection[str],
) -> Family:
    """The stations behind the first one, in no order."""
    names = {str(each).encode(): each for each in root.ids}
    topics = await TopicOperations(connection).list_topics()
    places = [
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        if topic.name.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))
        for partition in topic.partitions
    ]
    budget, family = ReadBudget(FAMILY_BYTES_MAX), Family()
    family.retry_topics = sorted(
        topic.name for topic in topics if topic.name.startswith(RETRY_PREFIX)
    )
    home = root.place.topic_partition
    await _search(reader, [each for each in places if each != home], from_ms, names, budget, family)
    letters = [each for each in family.stations if each.kind is Kind.LETTER]
    if letters or home in places:
        # A letter may have been sent back to where it came from.
        since_ms = min([each.record.timestamp for each in letters], default=from_ms)
        await _search(reader, [home], since_ms, names, budget, family)
    family.stations = [
        _with_group(each, groups) for each in family.stations if each.place not in root.ids
    ]
    family.is_complete &= not budget.is_used_up
    return family


async def _search(
    reader: BatchReader,
    places: Iterable[TopicPartition],
    from_ms: int,
    names: Collection[bytes],
    budget: ReadBudget,
    family: Family,
) -> None:
    asked = list(places)
    if not asked:
        return
    starts = await reader.starts(asked, from_ms - _MARGIN_MS)
    bounds = await reader.bounds(starts)
    is_wanted = mentions(names)
    for partition, start in starts.items():
        records = reader.records(
            partition,
            start,
            bounds[partition].end,
            budget,
            is_wanted,
            # A move of a letter that was undone and done again would show as two letters.
            IsolationLevel.READ_COMMITTED,
        )
        async for header, record in records:
            station = Station(MessageId(*partition, record.offset), record, header)
            if station.origin is None or str(station.origin).encode() not in names:
                continue
            if len(family.stations) >= STATIONS_MAX:
                family.is_complete = False
                return
            family.stations.append(station)


def _with_group(station: Station, groups: Collection[str]) -> Station:
    """The group of a queue, such as `retry.billing.5s`, is in its name together with a delay."""
    topic = station.place.topic
    if station.group in groups or not topic.startswith(RETRY_PREFIX):
        return station
    named = [each for each in groups if topic.startswith(f"{RETRY_PREFIX}{each}.")]
    return replace(station, topic_group=max(named, key=len)) if named else station
