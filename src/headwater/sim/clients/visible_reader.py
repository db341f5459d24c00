"""A simulated consumer of one partition that has hidden batches: it reads on over any gap.

It keeps all that it has seen, and where it was told that the log begins further on. What it is told
of the partition's end must be an end that it can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import PASSING, BrokerLink, Unanswered
from headwater.sim.clients.committed_reader import READ_COMMITTED, AbortedFilter
from headwater.sim.clients.reading_client import whole_batches
from headwater.sim.histories.delay_history import VisibleRecord
from headwater.sim.histories.history import History, PropertyViolated
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headwater.wire.records import decode_batch, iter_batch_headers

_VERSION: Final = 12
_LIST_VERSION: Final = 5
_EARLIEST: Final = -2
_LATEST: Final = -1
_CONSUMER: Final = -1


class VisibleReader:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        partition: TopicPartition,
        on_seen: Callable[[TopicPartition, bytes], None],
        *,
        committed_only: bool,
    ) -> None:
        self.name = link.name
        self.partition = partition
        self.committed_only = committed_only
        self.seen: list[VisibleRecord] = []
        self.position = 0
        #: Stretches of offsets that were deleted before they were read.
        self.jumps: list[tuple[int, int]] = []
        #: The end that was told last.
        self.end: int | None = None
        self._link = link
        self._history = history
        self._on_seen = on_seen
        self._random = link.random
        self._setback_count = 0

    def set_back(self, offset: int) -> None:
        """What was at this offset and behind may be gone."""
        self._setback_count += 1
        self.end = None
        self.position = min(self.position, offset)
        self.seen = [each for each in self.seen if each.offset < offset]

    async def follow(self) -> None:
        """Read without end."""
        while True:
            await self.fetch()
            if self._random.random() < 0.3:
                await self._link.pause()

    async def read_to_end(self) -> None:
        """Read until the end that is told is reached; the latest offset must be that end."""
        await self._go_to_start()
        while self.end is None or self.position < self.end:
            await self.fetch()
        latest = await self.ask_offset(_LATEST)
        if latest != self.position:
            raise PropertyViolated(
                f"lag comes to 0: {self.name} is at {self.position} of {self.partition}, whose "
                f"latest offset is {latest}"
            )

    async def fetch(self) -> None:
        setback_count = self._setback_count
        try:
            answer = await self._link.ask(self._request(), FetchResponse, version=_VERSION)
        except Unanswered:
            await self._link.pause()
            return
        if setback_count != self._setback_count:
            return  # What was true before the power went need not be true now.
        for topic in answer.responses:
            for data in topic.partitions:
                await self._take(data)

    def _request(self) -> FetchRequest:
        wanted = FetchPartition(
            partition=self.partition.partition,
            fetch_offset=self.position,
            current_leader_epoch=self._link.leader_epoch,
            partition_max_bytes=self._random.choice((1, 500, 1 << 20)),
        )
        return FetchRequest(
            max_wait_ms=self._random.choice((0, 100, 500)),
            min_bytes=self._random.choice((0, 1, 1_000)),
            max_bytes=self._random.choice((1, 2_000, 50 << 20)),
            isolation_level=READ_COMMITTED if self.committed_only else 0,
            topics=[FetchTopic(topic=self.partition.topic, partitions=[wanted])],
        )

    async def _take(self, data: PartitionData) -> None:
        if data.error_code in PASSING:
            await self._link.look_again()
            await self._link.pause()
            return
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._go_to_start()
            return
        if data.error_code != ErrorCode.NONE:
            error = ErrorCode.from_wire(data.error_code)
            raise PropertyViolated(f"{self.partition} can be read, and not {error.name}")
        end = data.last_stable_offset if self.committed_only else data.high_watermark
        self.end = data.high_watermark
        if isinstance(data.records, bytes | bytearray | memoryview):
            self._read(data, memoryview(data.records), end)

    def _read(self, data: PartitionData, records: memoryview, end: int) -> None:
        left_out = AbortedFilter(data.aborted_transactions or [])
        for start, header in iter_batch_headers(whole_batches(records)):
            if header.is_delayed:
                raise PropertyViolated(
                    f"nobody sees what waits: {self.name} got {header.base_offset} of "
                    f"{self.partition}"
                )
            if header.next_offset > end:
                if self.committed_only:
                    raise PropertyViolated(
                        f"a committed read stops at the last stable offset: {self.partition} had "
                        f"{end} and gave a batch up to {header.next_offset}"
                    )
                break  # Sent along, but not for readers yet.
            batch = records[start : start + header.size_bytes]
            position, self.position = self.position, max(self.position, header.next_offset)
            is_left_out = left_out.leaves_out(header, batch) if self.committed_only else False
            if is_left_out or header.is_control:
                continue
            for record in decode_batch(batch):
                if record.offset >= position:
                    value = bytes(record.value or b"")
                    self.seen.append(VisibleRecord(record.offset, value))
                    self._on_seen(self.partition, value)

    # -- offsets ---------------------------------------------------------------------------------

    async def _go_to_start(self) -> None:
        """What was not read yet may be deleted by now."""
        start = await self.ask_offset(_EARLIEST)
        if start > self.position:
            self.jumps.append((self.position, start))
            self.position = start

    async def ask_offset(self, timestamp: int) -> int:
        wanted = ListOffsetsPartition(
            partition_index=self.partition.partition,
            current_leader_epoch=-1,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=READ_COMMITTED if self.committed_only else 0,
            topics=[ListOffsetsTopic(name=self.partition.topic, partitions=[wanted])],
        )
        answer = await self._link.insist(
            request,
            ListOffsetsResponse,
            lambda answer: [answer.topics[0].partitions[0].error_code],
            version=_LIST_VERSION,
        )
        return answer.topics[0].partitions[0].offset
