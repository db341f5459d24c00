"""The fetches of one range: made on the client's loop, ahead of the thread that reads them.

A few answers may be ahead of the reader, so that the broker works while the reader decodes. A range
ends when a fetch has passed its end. Whether the last offsets hold records that anybody sees does
not matter: they may be control records, aborted, or compacted away. Passing trouble is waited out
as long as something comes within the time limit; all else is raised to the reader, after what
came before it. A partition that ends before the range does has lost records, or is a new one of the
same name.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_connection import ClusterConnection, Lane
from headwater.client.connection.cluster_metadata import NO_LEADER
from headwater.client.connection.retry import FINAL_FOR_NAMES, may_retry
from headwater.client.errors import BrokerUnreachableError, DeadlineError, NoBrokerError, refusal
from headwater.client.fetch.conversation import FetchConversation, FetchLimits
from headwater.client.fetch.fetched_partition import FetchedPartition
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.fetch.session import FetchPosition
from headwater.client.kafka_errors import LeaderNotAvailableError, OffsetOutOfRangeError
from headwater.client.ranges.fetch_size import FetchSize
from headwater.net.peer_errors import PeerTimeoutError
from headwater.wire.api_keys import ApiKey

_logger = logging.getLogger("headwater.client")

#: So many answers may wait for the reader.
_AHEAD_COUNT: Final = 2
#: A broker may not have heard of a new partition yet, and a new leader not of how far records are
#: settled: what is missing counts as still to come for so long.
PASSING_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class RangeFetchOptions:
    """How fetches are made, from the settings of a consumer."""

    limits: FetchLimits
    isolation_level: IsolationLevel
    check_crc: bool
    rack: str
    request_timeout_s: float
    #: How long a reader waits for the next records.
    progress_timeout_s: float


class RangeFetches:
    """Iterates over what was fetched; belongs to the reader's thread but for `fetch_all`."""

    def __init__(
        self,
        connection: ClusterConnection,
        options: RangeFetchOptions,
        topic_partition: TopicPartition,
        start: int,
        end: int,
        *,
        post: Callable[[Callable[[], object]], None],
    ) -> None:
        self.topic_partition = topic_partition
        #: Where the reader is: what was handed out ends before it.
        self.position = start
        self._connection = connection
        self._options = options
        self._end = end
        self._post = post
        self._size = FetchSize(options.limits.max_partition_bytes)
        self._results: queue.SimpleQueue[FetchedPartition | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._room = asyncio.Semaphore(_AHEAD_COUNT)
        self._broker_id: int | None = None
        #: Where this reader is; forgotten when only the leader can say what is so.
        self._rack = options.rack
        #: Whether the broker is one that the leader named.
        self._is_at_follower = False
        self._task: asyncio.Task[None] | None = None

    # -- the reader's side -----------------------------------------------------------------------

    def __iter__(self) -> Iterator[FetchedPartition]:
        self._post(self._begin)
        try:
            while (result := self._results.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                self._post(self._room.release)
                yield result
                self.position = result.next_offset
        finally:
            self._post(self._stop)

    # -- the loop's side -------------------------------------------------------------------------

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._fetch_all(self.position))

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _fetch_all(self, offset: int) -> None:
        try:
            while offset < self._end:
                await self._room.acquire()
                fetched = await self._fetch(offset)
                self._size.learn(fetched.next_offset - offset, fetched.size_bytes)
                offset = fetched.next_offset
                self._results.put(fetched)
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)
            if not isinstance(error, Exception):
                raise

    async def _fetch(self, offset: int) -> FetchedPartition:
        """What begins at `offset`, by as many attempts as it takes."""
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        attempt_count = 0
        while True:
            error: KafkaError | None = None
            fetched: FetchedPartition | None = None
            try:
                fetched = await self._attempt(offset)
                if fetched is not None and fetched.next_offset > offset:
                    return fetched
            except KafkaError as failure:
                error = failure
            waited_s = loop.time() - start_s
            is_doubtful = self._is_at_follower and (
                waited_s > PASSING_S or (error is not None and _is_out_of_range(error))
            )
            if is_doubtful:
                # A follower may be behind: what its leader says is so.
                self._ask_leader()
                self._rack, error = "", None
            elif fetched is not None and waited_s > PASSING_S:
                self._check_is_to_come(offset, fetched)
            if error is not None:
                self._ask_leader()
                if not self._may_pass(error, waited_s):
                    raise error
            if waited_s > self._options.progress_timeout_s:
                raise DeadlineError(
                    f"{self.topic_partition} has given no records from offset {offset} on within "
                    f"{self._options.progress_timeout_s:g} s{f': {error}' if error else '.'}"
                )
            if error is not None:
                attempt_count += 1
                policy = self._connection.policy
                await asyncio.sleep(policy.pause_s(attempt_count, self._connection.generator))
                await self._refresh()

    async def _attempt(self, offset: int) -> FetchedPartition | None:
        """One request; None if another replica is to be asked."""
        connection, topic_partition = self._connection, self.topic_partition
        topic = connection.metadata.topic(topic_partition.topic)
        if topic is None:
            await connection.refresh([topic_partition.topic])
            topic = connection.metadata.existing_topic(topic_partition.topic)
        broker_id = self._broker_id
        if broker_id is None:
            broker_id = connection.metadata.leader_of(*topic_partition)
            if broker_id == NO_LEADER:
                raise LeaderNotAvailableError(f"{topic_partition} has no leader.")
            self._broker_id = broker_id
        size_bytes = self._size.next_bytes(self._end - offset)
        conversation = FetchConversation(
            limits=self._options.limits._replace(
                max_partition_bytes=size_bytes,
                max_bytes=min(size_bytes, self._options.limits.max_bytes),
            ),
            isolation_level=self._options.isolation_level,
            use_session=False,
            check_crc=self._options.check_crc,
            rack=self._rack,
        )
        request = conversation.request({topic_partition: FetchPosition(topic.topic_id, offset)})
        version = None
        if (version_max := conversation.version_max) is not None:
            version = await connection.highest_version(ApiKey.FETCH, broker_id, version_max)
        channel = await connection.channel(broker_id, Lane.FETCH)
        limit_s = self._options.request_timeout_s + self._options.limits.max_wait_ms / 1000
        try:
            response = await channel.send(request, version=version, timeout_s=limit_s)
        except PeerTimeoutError as error:
            channel.give_up(error)
            raise
        if response.error_code:
            raise refusal(response.error_code, None, str(topic_partition))
        answer = conversation.answered(response)
        if topic_partition in answer.errors:
            raise answer.errors[topic_partition]
        if topic_partition in answer.preferred:
            self._broker_id, self._is_at_follower = answer.preferred[topic_partition], True
            return None
        return answer.fetched[0] if answer.fetched else None

    def _ask_leader(self) -> None:
        self._broker_id, self._is_at_follower = None, False

    def _check_is_to_come(self, offset: int, fetched: FetchedPartition) -> None:
        """Raise if the partition ends here, so that the range will never be filled."""
        is_committed_only = self._options.isolation_level is IsolationLevel.READ_COMMITTED
        end = fetched.last_stable_offset if is_committed_only else fetched.high_watermark
        if 0 <= end <= offset:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition} ends at offset {end}, and records up to {self._end} were "
                "to be read."
            )

    def _may_pass(self, error: KafkaError, waited_s: float) -> bool:
        if error.code in FINAL_FOR_NAMES:
            return waited_s < PASSING_S
        if _is_out_of_range(error):
            return False
        return isinstance(error, NoBrokerError | BrokerUnreachableError) or may_retry(error)

    async def _refresh(self) -> None:
        try:
            await self._connection.refresh([self.topic_partition.topic])
        except KafkaError as error:
            _logger.debug("Metadata of %s: %s", self.topic_partition.topic, error)


def _is_out_of_range(error: KafkaError) -> bool:
    return error.code is ErrorCode.OFFSET_OUT_OF_RANGE
