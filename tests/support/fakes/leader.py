"""A broker that is followed, played: it has logs, answers fetches with sessions, and fails at will.

It is reached through channels as `PeerChannel` is one, without sockets. A fetch that finds nothing
new waits as long as it says, or until something is written. Every request is kept, so that a test
can see what was asked.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, NoReturn, cast

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import PartitionImage
from headwater.net.peer_channel import PeerChannel, PeerUnavailableError
from headwater.replication.partition.environment import PartitionEnvironment
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.replication.partition.partition import Partition
from headwater.sim.campaigns.logs import NOW_MS, batch_of
from headwater.sim.campaigns.replica_set import NoEvents, Proposals
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.recovery.loader import LogLoader
from headwater.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

TOPIC = "topic"
TOPIC_ID = uuid.UUID(int=7)
#: The follower.
NODE_ID = 9
LATEST = -1


def new_log(number: int, seed: int = 0) -> PartitionLog:
    """A log on a disk of its own."""
    disk = FaultyDisk(seed * 1_000 + number, directories=["/data"])
    return LogLoader(
        TopicPartition(TOPIC, number),
        f"/data/{TOPIC}-{number}",
        LogConfig(),
        disk,
        HandleCache(disk, 16),
        now_ms=NOW_MS,
    ).load()


def follower_of(
    leader: int, number: int, *, leader_epoch: int = 0, log: PartitionLog | None = None
) -> Partition:
    """A partition that broker `NODE_ID` follows."""

    async def no_thread(_work: object) -> NoReturn:
        raise AssertionError("nothing here waits for the disk in a thread")

    return Partition(
        TopicPartition(TOPIC, number),
        TOPIC_ID,
        log or new_log(number, seed=1),
        image_of(leader, leader_epoch),
        options=PartitionOptions(1, AcksAllFlush.OFF),
        environment=PartitionEnvironment(
            node_id=NODE_ID,
            events=NoEvents(),
            clock=SimulatedClock(asyncio.get_running_loop()),
            run_in_thread=no_thread,
            isr_changes=Proposals(),
            tasks=BackgroundTasks(),
        ),
    )


def image_of(leader: int, leader_epoch: int) -> PartitionImage:
    return PartitionImage((leader, NODE_ID), (leader,), leader, leader_epoch, leader_epoch)


class FakeLeader:
    def __init__(self, broker_id: int = 1) -> None:
        self.broker_id = broker_id
        self.logs: dict[int, PartitionLog] = {}
        #: Answered in place of records.
        self.errors: dict[int, ErrorCode] = {}
        self.is_reachable = True
        self.connection_count = 0
        #: Every fetch, and when it came.
        self.fetches: list[tuple[float, FetchRequest]] = []
        self.channels: list[_FakeChannel] = []
        self._news = asyncio.Event()

    async def connect(self, broker_id: int) -> PeerChannel:
        assert broker_id == self.broker_id
        await asyncio.sleep(0.001)
        self.connection_count += 1
        if not self.is_reachable:
            raise PeerUnavailableError("Nobody is there.")
        channel = _FakeChannel(self)
        self.channels.append(channel)
        return cast(PeerChannel, channel)

    def write(self, number: int, *values: bytes) -> None:
        """Records for a partition, which is made if need be."""
        if number not in self.logs:
            self.logs[number] = new_log(number)
        log = self.logs[number]
        log.append_as_leader(batch_of(*values), leader_epoch=0, now_ms=NOW_MS)
        log.raise_high_watermark(log.log_end_offset)
        self.tell()

    def tell(self) -> None:
        """Whoever waits looks again."""
        self._news.set()
        self._news = asyncio.Event()

    def hang_up(self) -> None:
        """All connections are lost."""
        for channel in self.channels:
            channel.lose()
        self.channels.clear()

    def asked_for(self, number: int) -> list[FetchPartition]:
        """Every time that a partition was named in a fetch."""
        return [
            each
            for _, request in self.fetches
            for topic in request.topics
            for each in topic.partitions
            if each.partition == number
        ]

    async def wait(self, max_wait_ms: int) -> None:
        try:
            async with asyncio.timeout(max_wait_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            return


class _FakeChannel:
    """One connection, with one session."""

    def __init__(self, leader: FakeLeader) -> None:
        self.is_closed = False
        self._leader = leader
        self._session: dict[int, FetchPartition] = {}
        self._epoch = 0
        self._lost = asyncio.get_running_loop().create_future()

    def lose(self) -> None:
        self.is_closed = True
        if not self._lost.done():
            self._lost.set_result(None)

    async def close(self) -> None:
        self.lose()

    async def send(self, message: Any, *, timeout_s: float) -> Any:
        if self.is_closed:
            raise PeerUnavailableError("The connection is closed.")
        answer = asyncio.ensure_future(self._answer(message))
        try:
            await asyncio.wait({answer, self._lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not answer.done():
                answer.cancel()
        if self.is_closed:
            raise PeerUnavailableError("The connection was lost.")
        return answer.result()

    async def _answer(self, message: Any) -> Any:
        if isinstance(message, ListOffsetsRequest):
            return self._offsets(message)
        assert isinstance(message, FetchRequest)
        leader = self._leader
        leader.fetches.append((asyncio.get_running_loop().time(), message))
        if message.session_epoch == 0:
            self._session, self._epoch = {}, 0
        elif message.session_epoch != self._epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                self._session.pop(number, None)
        for fetched in message.topics:
            self._session.update({each.partition: each for each in fetched.partitions})
        self._epoch += 1
        news = self._news()
        if not news:
            await leader.wait(message.max_wait_ms)
            news = self._news()
        return FetchResponse(
            session_id=1, responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=news)]
        )

    def _news(self) -> list[PartitionData]:
        return [data for each in self._session.values() if (data := self._read(each)) is not None]

    def _read(self, asked: FetchPartition) -> PartitionData | None:
        number = asked.partition
        error = self._leader.errors.get(number)
        log = self._leader.logs.get(number)
        if error is None and log is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if log is not None and not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        if error is not None or log is None:
            return PartitionData(partition_index=number, error_code=int(error or 0))
        region = log.read(asked.fetch_offset, asked.partition_max_bytes, min_one_batch=True).region
        if region is None:
            return None
        return PartitionData(
            partition_index=number,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            records=region.read(),
        )

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=self._offset(each.partition_index, each.timestamp),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _offset(self, number: int, which: int) -> int:
        log = self._leader.logs[number]
        return log.log_end_offset if which == LATEST else log.log_start_offset
