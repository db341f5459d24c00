"""`PlainFetcher`: reads partitions from offsets that the caller gives; no group, nothing committed.

    async with PlainFetcher(connection) as fetcher:
        fetcher.assign({TopicPartition("orders", 0): 0})
        while True:
            for partition in await fetcher.fetch(timeout_s=1.0):
                for record in partition.records():
                    ...

All leaders are asked at once, each with one request at a time, and the next request leaves when the
answer is handed out: so data are under way while the caller works. Positions move when data are
handed out, not when they are looked at. Leaders that move or are away for a while are looked up
again for as long as the connection's `timeout_s`. A request may wait at the broker for new data,
and whatever follows on the same connection waits behind it: who writes meanwhile uses another one.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from enum import Enum
from types import TracebackType
from typing import Self

from headwater.base.checks import check
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.offsets import OffsetOperations, OffsetTime
from headwater.client.admin.outcomes import require_all
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.cluster_metadata import NO_LEADER
from headwater.client.errors import NoBrokerError, UnknownBrokerError, UnknownTopicError
from headwater.client.fetch_requests import BrokerFetch, FetchAnswer, FetchLimits
from headwater.client.fetched_partition import FetchedPartition
from headwater.client.isolation import IsolationLevel
from headwater.client.kafka_errors import LeaderNotAvailableError, OffsetOutOfRangeError
from headwater.client.retry import Deadline, may_retry


class OffsetReset(Enum):
    """What to do about an offset that a partition does not have (any more)."""

    FAIL = "none"
    EARLIEST = "earliest"
    LATEST = "latest"


class PlainFetcher:
    """See the module's text. Owned by one task."""

    def __init__(
        self,
        connection: ClusterConnection,
        *,
        limits: FetchLimits | None = None,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        offset_reset: OffsetReset = OffsetReset.FAIL,
        use_sessions: bool = True,
        check_crc: bool = True,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self._connection = connection
        self._limits = limits or FetchLimits()
        self._isolation_level = isolation_level
        self._offset_reset = offset_reset
        self._use_sessions = use_sessions
        self._check_crc = check_crc
        self._loop = asyncio.get_running_loop()
        self._brokers: dict[int, BrokerFetch] = {}
        self._under_way: dict[asyncio.Task[FetchAnswer], BrokerFetch] = {}
        #: What has come and was not handed out yet, and what went wrong and was not told yet.
        self._fetched: list[FetchedPartition] = []
        self._failure: KafkaError | None = None
        self._trouble: Deadline | None = None
        self._trouble_count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, besides those that are read already."""
        self.positions.update(offsets)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer."""
        for partition in partitions:
            self.positions.pop(partition, None)

    async def fetch(self, timeout_s: float | None = None) -> list[FetchedPartition]:
        """The next data of any partitions; nothing if none came in `timeout_s`.

        Raises what lasts or cannot pass, but never instead of data that have come.
        """
        end_s = None if timeout_s is None else self._loop.time() + timeout_s
        while not self._fetched:
            self._raise_failure()
            await self._ask_leaders()
            left_s = None if end_s is None else max(0.0, end_s - self._loop.time())
            if not self._under_way:
                check(left_s is not None, "a fetcher without partitions would wait for ever")
                await asyncio.sleep(left_s or 0.0)
                return []
            done, _ = await asyncio.wait(
                self._under_way, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                await self._keep_failure(self._take(task))
            if end_s is not None and self._loop.time() >= end_s:
                break
        if self._fetched:
            await self._keep_failure(self._ask_leaders())
        else:
            self._raise_failure()
        fetched, self._fetched = self._fetched, []
        return fetched

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._under_way)
        self._under_way.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_failure(self, work: Awaitable[None]) -> None:
        try:
            await work
        except KafkaError as error:
            self._failure = self._failure or error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- asking ----------------------------------------------------------------------------------

    async def _ask_leaders(self) -> None:
        """See to it that every leader of a partition that is read has a request under way."""
        busy = {broker.broker_id for broker in self._under_way.values()}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for topic_partition, offset in self.positions.items():
            leader_id = await self._leader_of(topic_partition)
            if leader_id not in busy:
                by_leader.setdefault(leader_id, {})[topic_partition] = offset
        for leader_id, offsets in by_leader.items():
            broker = self._brokers.get(leader_id)
            if broker is None:
                broker = self._brokers[leader_id] = BrokerFetch(
                    self._connection,
                    leader_id,
                    limits=self._limits,
                    isolation_level=self._isolation_level,
                    use_session=self._use_sessions,
                    check_crc=self._check_crc,
                )
            self._under_way[self._loop.create_task(broker.fetch(offsets))] = broker

    async def _leader_of(self, topic_partition: TopicPartition) -> int:
        metadata = self._connection.metadata
        topic = metadata.topic(topic_partition.topic)
        if topic is not None:
            leader_id = metadata.leader_of(*topic_partition)
            if leader_id != NO_LEADER:
                return leader_id

        async def attempt() -> int:
            await self._connection.refresh({tp.topic for tp in self.positions})
            leader_id = metadata.leader_of(*topic_partition)
            if leader_id == NO_LEADER:
                raise LeaderNotAvailableError(f"{topic_partition} has no leader.")
            return leader_id

        return await self._connection.retrying(attempt, f"Finding the leader of {topic_partition}")

    # -- answers ---------------------------------------------------------------------------------

    async def _take(self, task: "asyncio.Task[FetchAnswer]") -> None:
        """Move the positions by an answer, and mend what went wrong."""
        del self._under_way[task]
        try:
            answer = task.result()
        except KafkaError as error:
            await self._recover(error)
            return
        for partition in answer.fetched:
            topic_partition = partition.topic_partition
            # Who has chosen another offset meanwhile does not want these any more.
            if self.positions.get(topic_partition) != partition.fetch_offset:
                continue
            if partition.has_batches:
                # At the end of the line, so that no partition keeps others from being served.
                del self.positions[topic_partition]
                self.positions[topic_partition] = partition.next_offset
                self._fetched.append(partition)
        if answer.errors:
            for topic_partition, failure in answer.errors.items():
                if self.positions.get(topic_partition) == answer.asked[topic_partition]:
                    await self._partition_failed(topic_partition, failure)
        else:
            self._trouble = None
            self._trouble_count = 0

    async def _partition_failed(self, topic_partition: TopicPartition, error: KafkaError) -> None:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._recover(error)
            return
        offset = self.positions[topic_partition]
        if self._offset_reset is OffsetReset.FAIL:
            raise OffsetOutOfRangeError(
                f"{topic_partition} does not have offset {offset}."
            ) from error
        is_earliest = self._offset_reset is OffsetReset.EARLIEST
        time = OffsetTime.EARLIEST if is_earliest else OffsetTime.LATEST
        outcomes = await OffsetOperations(self._connection).list_offsets(
            {topic_partition: time}, isolation_level=self._isolation_level
        )
        listed = require_all(outcomes)[topic_partition]
        self.positions[topic_partition] = listed.offset

    async def _recover(self, error: KafkaError) -> None:
        """Look around and pause after an error that may pass; raise it if it lasts."""
        lost = isinstance(error, NoBrokerError | UnknownBrokerError)
        if not lost and not may_retry(error, unknown_topic_is_final=False):
            raise error
        now_s = self._loop.time()
        if self._trouble is None:
            self._trouble = Deadline.after(self._connection.timeout_s, now_s)
        elif self._trouble.is_over(now_s):
            raise error
        self._trouble_count += 1
        policy, generator = self._connection.policy, self._connection.generator
        await asyncio.sleep(policy.pause_s(self._trouble_count, generator))
        try:
            await self._connection.refresh({tp.topic for tp in self.positions})
        except KafkaError as failure:
            if not isinstance(failure, NoBrokerError) and not may_retry(failure):
                raise
        for topic in {tp.topic for tp in self.positions}:
            if self._connection.metadata.topic(topic) is None and not lost:
                raise UnknownTopicError.topic(topic) from error
