"""The ids of a topic's records, read by columns, without an object for each record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from headwater.base.audit_id import AUDIT_HEADER, AUDIT_ID_BYTES, AuditId, decode_audit_id
from headwater.base.ids import TopicPartition
from headwater.client.admin.admin_operations import AdminOperations
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.client.admin.offsets import OffsetTime
from headwater.client.admin.outcomes import require_all
from headwater.client.columns.decoding.decoded_columns import RecordColumns
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.ranges.range_client import RangeClient

_NAME: Final = np.frombuffer(AUDIT_HEADER.encode(), np.uint8)


class OffsetStretch(NamedTuple):
    start: int
    end: int


class TopicStretch(NamedTuple):
    """What is to be read of a topic: what is there, from a time on."""

    topic: str
    partitions: Mapping[TopicPartition, OffsetStretch]
    #: Whether that is all that was ever written.
    is_whole: bool
    #: Whether records may have been compacted away.
    is_compacted: bool

    @property
    def offset_count(self) -> int:
        return sum(end - start for start, end in self.partitions.values())


class IdPiece(NamedTuple):
    """Some records: their ids, and how many have none."""

    ids: list[AuditId]
    without_id_count: int
    #: How many offsets were passed.
    offset_count: int


async def find_stretch(
    connection: ClusterConnection, topic: str, from_ms: int | None
) -> TopicStretch:
    """From the first record of that time on, or from the beginning; raises `KafkaError`."""
    operations = AdminOperations(connection)
    info = require_all(await operations.describe_topics([topic]))[topic]
    partitions = [TopicPartition(topic, each.partition) for each in info.partitions]
    found = [
        require_all(
            await operations.list_offsets(
                dict.fromkeys(partitions, time), isolation_level=IsolationLevel.READ_COMMITTED
            )
        )
        for time in (OffsetTime.EARLIEST, OffsetTime.LATEST)
    ]
    starts, ends = ({key: each.offset for key, each in some.items()} for some in found)
    is_whole = from_ms is None and not any(starts.values())
    if from_ms is not None:
        timed = require_all(await operations.list_offsets(dict.fromkeys(partitions, from_ms)))
        # Where nothing is so young, nothing is read.
        starts = {
            key: each.offset if each.offset >= 0 else ends[key] for key, each in timed.items()
        }
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = require_all(await operations.describe_configs([resource], names=["cleanup.policy"]))[
        resource
    ]
    policy = next((each.value for each in configs), None)
    return TopicStretch(
        topic,
        {key: OffsetStretch(starts[key], max(starts[key], ends[key])) for key in partitions},
        is_whole,
        "compact" in (policy or ""),
    )


def read_topic_ids(client: RangeClient, stretch: TopicStretch) -> Iterator[IdPiece]:
    """The ids in pieces, partition by partition; raises `KafkaError`."""
    for topic_partition, (start, end) in stretch.partitions.items():
        position = start
        if start >= end:
            continue
        for columns in client.read(topic_partition, start, end):
            ids = ids_of_columns(columns)
            passed = int(columns.offsets[-1]) + 1 - position
            position += passed
            yield IdPiece(ids, len(columns) - len(ids), passed)
        yield IdPiece([], 0, end - position)


def ids_of_columns(columns: RecordColumns) -> list[AuditId]:
    """The ids of those records that have one, in their order."""
    headers = columns.headers
    if headers is None:
        return []
    own = slice(int(headers.firsts[0]), int(headers.firsts[-1]))
    is_like = headers.key_sizes[own] == len(_NAME)
    is_like &= headers.value_sizes[own] == AUDIT_ID_BYTES
    places = np.flatnonzero(is_like)
    if not len(places):
        return []
    data = np.frombuffer(columns.data, np.uint8)
    key_starts = headers.key_starts[own][places]
    is_named = (data[key_starts[:, None] + np.arange(len(_NAME))] == _NAME).all(axis=1)
    places = places[is_named]
    # Of several in a record the first counts.
    records = np.searchsorted(headers.firsts, places + own.start, "right")
    _, firsts = np.unique(records, return_index=True)
    content = memoryview(columns.data)
    return [
        audit_id
        for start in headers.value_starts[own][places[firsts]].tolist()
        if (audit_id := decode_audit_id(content[start : start + AUDIT_ID_BYTES])) is not None
    ]
