"""Reads records where they lie, with the headers of their batches, a fetch at a time.

It joins no group, waits for nothing that is to come, and unless told otherwise reads what readers
of uncommitted data are given: what became of a transaction is a question of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.admin import OffsetOperations, require_all
from headwater.client.admin.offsets import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection, Lane
from headwater.client.connection.cluster_metadata import NO_LEADER
from headwater.client.errors import refusal
from headwater.client.fetch.conversation import FetchConversation, FetchLimits
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.fetch.session import FetchPosition
from headwater.client.kafka_errors import LeaderNotAvailableError
from headwater.wire.api_keys import ApiKey
from headwater.wire.records import BatchHeader, Record, decode_batch
from headwater.wire.records.batch import read_section

#: What comes with one fetch that looks for one record; the first batch comes whole anyway.
ONE_BATCH_BYTES: Final = 4 << 10
SCAN_BYTES: Final = 1 << 20


class Bounds(NamedTuple):
    """The first offset that there is, and the one after the last that can be read."""

    first: int
    end: int


class ReadBudget:
    """How much may still be read; what reads from several logs shares one."""

    def __init__(self, size_bytes: int) -> None:
        self.left_bytes = size_bytes
        self.read_records = 0
        #: Called after each fetch, for who waits.
        self.on_spent: Callable[[], None] | None = None

    @property
    def is_used_up(self) -> bool:
        return self.left_bytes <= 0

    def spend(self, size_bytes: int) -> None:
        self.left_bytes -= size_bytes
        if self.on_spent is not None:
            self.on_spent()


#: Whether the records of a batch, given its header and bytes, are worth making.
BatchTest = Callable[[BatchHeader | None, memoryview], bool]


def mentions(words: Iterable[bytes]) -> BatchTest:
    """Whether a batch holds any of these bytes: far quicker than making its records to see."""
    wanted = list(words)

    def test(header: BatchHeader | None, batch: memoryview) -> bool:
        if header is None:
            return True
        section = read_section(batch, 0, header)
        return any(word in section for word in wanted)

    return test


class BatchReader:
    """On a connection that is somebody else's to close."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    async def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Of each partition; raises `KafkaError` where one cannot be told."""
        asked = list(partitions)
        operations = OffsetOperations(self._connection)
        firsts = require_all(
            await operations.list_offsets(dict.fromkeys(asked, OffsetTime.EARLIEST))
        )
        ends = require_all(await operations.list_offsets(dict.fromkeys(asked, OffsetTime.LATEST)))
        return {each: Bounds(firsts[each].offset, ends[each].offset) for each in asked}

    async def starts(
        self, partitions: Iterable[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """The first offset whose record is not older; partitions without any are left out."""
        times = dict.fromkeys(partitions, max(time_ms, 0))
        found = require_all(await OffsetOperations(self._connection).list_offsets(times))
        return {each: listed.offset for each, listed in found.items() if listed.offset >= 0}

    async def fetch(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> FetchedPartition:
        """What lies at and behind an offset; no batches if nothing does."""

        async def attempt() -> FetchedPartition:
            return await self._attempt(partition, offset, max_bytes, isolation_level)

        return await self._connection.retrying(attempt, f"Reading {partition}")

    async def _attempt(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation_level: IsolationLevel,
    ) -> FetchedPartition:
        connection = self._connection
        topic = await connection.find_topic(partition.topic)
        leader_id = connection.metadata.leader_of(*partition)
        if leader_id == NO_LEADER:
            raise LeaderNotAvailableError(f"{partition} has no leader.")
        conversation = FetchConversation(
            limits=FetchLimits(0, 0, max_bytes, max_bytes),
            isolation_level=isolation_level,
            use_session=False,
        )
        request = conversation.request({partition: FetchPosition(topic.topic_id, offset)})
        version = None
        if (version_max := conversation.version_max) is not None:
            version = await connection.highest_version(ApiKey.FETCH, leader_id, version_max)
        channel = await connection.channel(leader_id, Lane.FETCH)
        response = await channel.send(
            request, version=version, timeout_s=connection.request_timeout_s
        )
        if response.error_code:
            raise refusal(response.error_code, None, str(partition))
        answer = conversation.answered(response)
        if partition in answer.errors:
            raise answer.errors[partition]
        return answer.fetched[0]

    async def records(
        self,
        partition: TopicPartition,
        start: int,
        end: int,
        budget: ReadBudget,
        is_wanted: BatchTest | None = None,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> AsyncIterator[tuple[BatchHeader | None, Record]]:
        """The records of [start, end) in their order, until the budget is used up."""
        offset = start
        while offset < end and not budget.is_used_up:
            fetched = await self.fetch(partition, offset, SCAN_BYTES, isolation_level)
            budget.spend(max(fetched.size_bytes, 1))
            data = memoryview(fetched.buffer)
            for begin, behind, header in fetched.visible_batches():
                batch = data[begin:behind]
                budget.read_records += 1 if header is None else header.record_count
                if is_wanted is not None and not is_wanted(header, batch):
                    continue
                for record in decode_batch(batch):
                    if offset <= record.offset < end:
                        yield header, record
            if fetched.next_offset <= offset:
                return
            offset = fetched.next_offset
