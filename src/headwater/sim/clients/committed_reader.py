"""A simulated consumer that reads what is committed, as clients with read_committed do.

The broker answers up to the last stable offset and tells which transactions there were aborted; the
client leaves those out. What it needs for that is checked here: nothing behind the last stable
offset comes along, and every batch comes at an offset where one can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import PASSING, BrokerLink, Unanswered
from headwater.sim.clients.reading_client import whole_batches
from headwater.sim.histories.history import History, PropertyViolated
from headwater.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headwater.wire.records import (
    BatchHeader,
    ControlType,
    decode_batch,
    iter_batch_headers,
    read_control_type,
)

READ_COMMITTED: Final = 1
#: Since then topics are named by their ids.
_BY_ID_SINCE: Final = 13


class Visible(NamedTuple):
    """A record that a reader with read_committed gets."""

    partition: TopicPartition
    offset: int
    key: bytes
    value: bytes


def no_limit(_partition: TopicPartition) -> int:
    return 1 << 62


class CommittedReader:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        limit_of: Callable[[TopicPartition], int] = no_limit,
    ) -> None:
        """`limit_of` tells up to which offset to read, as of now."""
        self._link = link
        self._history = history
        self._limit_of = limit_of
        self._random = link.random
        self._version = self._random.choice((17, 13, 12, 7, 4))
        #: Where to go on, by partition; the caller decides what is read.
        self.positions: dict[TopicPartition, int] = {}
        #: High watermarks that were told last.
        self.ends: dict[TopicPartition, int] = {}
        #: Whether every answer is checked to stop at the last stable offset it tells. Apache Kafka
        #: notes that offset before it reads the log, so that more may have become stable meanwhile.
        self.checks_stable_offset = True
        #: Partitions that were told to end before the position: a power loss took something back.
        self.cut_off: set[TopicPartition] = set()

    async def fetch(self) -> list[Visible]:
        """What comes next in some partitions, perhaps nothing; positions go on behind it."""
        if not self.positions:
            await self._link.pause()
            return []
        try:
            answer = await self._link.ask(self._request(), FetchResponse, version=self._version)
        except Unanswered:
            await self._link.pause()
            return []
        if answer.error_code != ErrorCode.NONE:
            raise PropertyViolated(
                f"a fetch works, and not {ErrorCode.from_wire(answer.error_code).name}"
            )
        names = {topic_id: name for name, topic_id in self._history.topics.items()}
        found: list[Visible] = []
        for topic in answer.responses:
            name = names[topic.topic_id] if self._version >= _BY_ID_SINCE else topic.topic
            for data in topic.partitions:
                found += self._take(TopicPartition(name, data.partition_index), data)
        return found

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read that stands in the partitions: no transaction is open."""
        return all(self.ends.get(each) == position for each, position in self.positions.items())

    def _request(self) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for (topic, partition), position in self.positions.items():
            topic_id = self._history.topics[topic]
            wanted = topics.setdefault(topic, FetchTopic(topic=topic, topic_id=topic_id))
            wanted.partitions.append(
                FetchPartition(
                    partition=partition,
                    fetch_offset=position,
                    partition_max_bytes=self._random.choice((1, 500, 1 << 20)),
                )
            )
        return FetchRequest(
            max_wait_ms=self._random.choice((0, 100, 500)),
            min_bytes=self._random.choice((0, 1, 1_000)),
            max_bytes=self._random.choice((1, 2_000, 50 << 20)),
            isolation_level=READ_COMMITTED,
            topics=list(topics.values()),
        )

    def _take(self, partition: TopicPartition, data: PartitionData) -> Iterator[Visible]:
        if data.error_code in PASSING:
            return
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.cut_off.add(partition)
            return
        if data.error_code != ErrorCode.NONE:
            error = ErrorCode.from_wire(data.error_code)
            raise PropertyViolated(f"{partition} can be read, and not {error.name}")
        self.ends[partition] = data.high_watermark
        if isinstance(data.records, bytes | bytearray | memoryview):
            yield from self._read(partition, data, memoryview(data.records))

    def _read(
        self, partition: TopicPartition, data: PartitionData, records: memoryview
    ) -> Iterator[Visible]:
        left_out = AbortedFilter(data.aborted_transactions or [])
        for start, header in iter_batch_headers(whole_batches(records)):
            batch = records[start : start + header.size_bytes]
            if self.checks_stable_offset and header.next_offset > data.last_stable_offset:
                raise PropertyViolated(
                    f"a committed read stops at the last stable offset: {partition} had "
                    f"{data.last_stable_offset} and gave a batch up to {header.next_offset}"
                )
            if header.next_offset > self._limit_of(partition):
                break
            position = self.positions[partition]
            self.positions[partition] = max(position, header.next_offset)
            if left_out.leaves_out(header, batch):
                continue
            for record in decode_batch(batch):
                if record.offset >= position:
                    key, value = bytes(record.key or b""), bytes(record.value or b"")
                    yield Visible(partition, record.offset, key, value)


class AbortedFilter:
    """Tells which batches a reader with read_committed does not look into."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._under_way: set[int] = set()

    def leaves_out(self, header: BatchHeader, batch: memoryview) -> bool:
        """Ask for every batch, in their order."""
        while self._to_come and self._to_come[-1].first_offset < header.next_offset:
            self._under_way.add(self._to_come.pop().producer_id)
        if header.is_control:
            if any(read_control_type(each) is ControlType.ABORT for each in decode_batch(batch)):
                self._under_way.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._under_way
