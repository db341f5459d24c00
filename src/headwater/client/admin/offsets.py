"""Admin operations on offsets: find them by time, and delete the records before them."""

from collections.abc import Mapping
from enum import IntEnum
from itertools import groupby
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin.leader_requests import ask_leaders
from headwater.client.admin.outcomes import Operations, Outcomes, raised_or_returned
from headwater.client.errors import refusal
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.given_items import given_mapping, given_number, given_partition
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

#: Deletes all that a partition holds.
UP_TO_THE_END: Final = -1
#: What is found where nothing is new enough.
NO_OFFSET: Final = -1
_TIMES: Final = "{TopicPartition('orders', 0): OffsetTime.LATEST}"
_OFFSETS: Final = "{TopicPartition('orders', 0): 42}"


class OffsetTime(IntEnum):
    """Times that stand for a place in the log; any other number is a timestamp in milliseconds."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class ListedOffset(NamedTuple):
    """An offset, `NO_OFFSET` if there is none, and the record's timestamp where one was meant."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class OffsetOperations(Operations):
    """See `AdminOperations`."""

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_s: float | None = None,
    ) -> Outcomes[TopicPartition, ListedOffset]:
        """For each partition the first offset whose record is not older than the time given.

        With read committed `LATEST` is the last stable offset.
        """
        wanted = {
            given_partition(partition): given_number(time, f"The time for {partition}")
            for partition, time in given_mapping(times, _TIMES).items()
        }

        async def ask_leader(
            leader_id: int, partitions: list[TopicPartition]
        ) -> Outcomes[TopicPartition, ListedOffset]:
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(partition_index=tp.partition, timestamp=wanted[tp])
                            for tp in led
                        ],
                    )
                    for topic, led in groupby(sorted(partitions), key=lambda tp: tp.topic)
                ],
                timeout_ms=int(self.connection.request_timeout_s * 1000),
            )
            response = await self.connection.ask(request, ListOffsetsResponse, leader_id)
            outcomes: Outcomes[TopicPartition, ListedOffset] = {}
            for topic in response.topics:
                for found in topic.partitions:
                    key = TopicPartition(topic.name, found.partition_index)
                    outcomes[key] = (
                        refusal(found.error_code, None, str(key))
                        if found.error_code
                        else ListedOffset(found.offset, found.timestamp, found.leader_epoch)
                    )
            return outcomes

        return await ask_leaders(
            self.connection, list(wanted), ask_leader, "Looking up offsets", timeout_s=timeout_s
        )

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, raise_errors: bool = True
    ) -> Outcomes[TopicPartition, int]:
        """Delete all records before these offsets; each outcome is the new first offset."""
        wanted = {
            given_partition(partition): given_number(offset, f"The offset for {partition}")
            for partition, offset in given_mapping(offsets, _OFFSETS).items()
        }

        async def ask_leader(
            leader_id: int, partitions: list[TopicPartition]
        ) -> Outcomes[TopicPartition, int]:
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(partition_index=tp.partition, offset=wanted[tp])
                            for tp in led
                        ],
                    )
                    for topic, led in groupby(sorted(partitions), key=lambda tp: tp.topic)
                ],
                timeout_ms=int(self.connection.request_timeout_s * 1000),
            )
            response = await self.connection.ask(request, DeleteRecordsResponse, leader_id)
            outcomes: Outcomes[TopicPartition, int] = {}
            for topic in response.topics:
                for deleted in topic.partitions:
                    key = TopicPartition(topic.name, deleted.partition_index)
                    outcomes[key] = (
                        refusal(deleted.error_code, None, str(key))
                        if deleted.error_code
                        else deleted.low_watermark
                    )
            return outcomes

        outcomes = await ask_leaders(self.connection, list(wanted), ask_leader, "Deleting records")
        return raised_or_returned(outcomes, raise_errors)
