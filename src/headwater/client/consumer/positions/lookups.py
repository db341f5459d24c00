"""One-off questions of a consumer about topics and offsets, asked on the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin.offsets import NO_OFFSET, OffsetOperations, OffsetTime
from headwater.client.admin.outcomes import require_all
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.given_items import (
    given_mapping,
    given_number,
    given_partition,
    given_partitions,
    given_topic,
)

_EXAMPLE: Final = "{TopicPartition('orders', 0): 1700000000000}"


class OffsetAndTimestamp(NamedTuple):
    """The first record that is not older than a given time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class OffsetLookups:
    def __init__(self, connection: ClusterConnection, isolation_level: IsolationLevel) -> None:
        self._connection = connection
        self._offsets = OffsetOperations(connection)
        self._isolation_level = isolation_level

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        return await self._at(partitions, OffsetTime.EARLIEST, timeout_s)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        """The high watermarks, or the last stable offsets with read committed."""
        return await self._at(partitions, OffsetTime.LATEST, timeout_s)

    async def for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        times = {
            given_partition(partition): given_number(time_ms, f"The time for {partition}", lowest=0)
            for partition, time_ms in given_mapping(times_ms, _EXAMPLE).items()
        }
        listed = require_all(
            await self._offsets.list_offsets(
                times, isolation_level=self._isolation_level, timeout_s=timeout_s
            )
        )
        return {
            partition: None
            if found.offset == NO_OFFSET
            else OffsetAndTimestamp(found.offset, found.timestamp_ms, found.leader_epoch)
            for partition, found in listed.items()
        }

    async def partitions_for(self, topic: str, timeout_s: float | None) -> list[PartitionInfo]:
        """Asked anew, since partitions may have been added."""
        given_topic(topic)

        async def attempt() -> TopicInfo:
            await self._connection.refresh([topic])
            return self._connection.metadata.existing_topic(topic)

        found = await self._connection.retrying(
            attempt, f"Looking up topic {topic!r}", timeout_s=timeout_s
        )
        return list(found.partitions)

    async def topics(self, timeout_s: float | None, *, with_internal: bool) -> set[str]:
        """The names of all that this consumer may see."""

        async def attempt() -> list[TopicInfo]:
            await self._connection.refresh(None)
            return self._connection.metadata.topics()

        found = await self._connection.retrying(
            attempt, "Looking up all topics", timeout_s=timeout_s
        )
        return {topic.name for topic in found if with_internal or not topic.is_internal}

    async def _at(
        self, partitions: Iterable[TopicPartition], time: OffsetTime, timeout_s: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(given_partitions(partitions), int(time))
        listed = require_all(
            await self._offsets.list_offsets(
                times, isolation_level=self._isolation_level, timeout_s=timeout_s
            )
        )
        return {partition: found.offset for partition, found in listed.items()}
