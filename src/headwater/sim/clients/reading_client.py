"""A simulated consumer: follows partitions, and checks that they only ever grow.

It fetches from where it is, with whatever limits the seed gives it. Offsets must come one after
another; what was read once must stay; the high watermark must not go back. After a power loss it
may find itself behind the end of the log: only what acks=all acknowledged has to be there then.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.sim.checkers.high_watermark import HighWatermarks
from headwater.sim.clients.broker_link import NO_LEADER_EPOCH, BrokerLink, Unanswered
from headwater.sim.histories.history import History, PropertyViolated, Stored
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headwater.wire.records import LOG_OVERHEAD, Buffer, decode_records

_TRY_AGAIN = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class ReadingClient:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        partitions: Sequence[TopicPartition],
    ) -> None:
        self._link = link
        self._history = history
        self._high_watermarks = HighWatermarks(history)
        self._partitions = list(partitions)
        self._random = link.random
        #: What was read, by partition; the index is the offset.
        self.read: dict[TopicPartition, list[Stored]] = {each: [] for each in partitions}
        self.ends: dict[TopicPartition, int] = {}
        # Version 13 names topics by id, those before it by name.
        self._version = self._random.choice(
            (17, 13, 12, 7, 4) if link.leader_epoch == NO_LEADER_EPOCH else (17, 13, 12)
        )

    def power_lost(self) -> None:
        """Forget what a power loss may have taken back."""
        self._high_watermarks.power_lost()
        self.ends.clear()
        for partition, records in self.read.items():
            del records[self._history.acknowledged_end(partition) :]

    async def follow(self) -> None:
        """Read without end."""
        while True:
            await self._fetch()
            if self._random.random() < 0.3:
                await self._link.pause()

    async def read_all(self) -> dict[TopicPartition, list[Stored]]:
        """Read until the end of every partition is reached."""
        while not all(
            len(self.read[partition]) == self.ends.get(partition) for partition in self._partitions
        ):
            await self._fetch()
        return self.read

    async def _fetch(self) -> None:
        epoch = self._high_watermarks.power_loss_count
        try:
            answer = await self._link.ask(self._request(), FetchResponse, version=self._version)
        except Unanswered:
            await self._link.pause()
            return
        if epoch != self._high_watermarks.power_loss_count:
            return  # What was true before the power went need not be true now.
        if answer.error_code != ErrorCode.NONE:
            raise PropertyViolated(
                f"a fetch works, and not {ErrorCode.from_wire(answer.error_code).name}"
            )
        names = {topic_id: name for name, topic_id in self._history.topics.items()}
        for topic in answer.responses:
            name = names[topic.topic_id] if self._version >= 13 else topic.topic
            for data in topic.partitions:
                await self._take(TopicPartition(name, data.partition_index), data)

    def _request(self) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for topic, partition in self._partitions:
            topic_id: uuid.UUID = self._history.topics[topic]
            wanted = topics.setdefault(topic, FetchTopic(topic=topic, topic_id=topic_id))
            wanted.partitions.append(
                FetchPartition(
                    partition=partition,
                    fetch_offset=len(self.read[TopicPartition(topic, partition)]),
                    current_leader_epoch=self._link.leader_epoch,
                    partition_max_bytes=self._random.choice((1, 500, 1 << 20)),
                )
            )
        return FetchRequest(
            max_wait_ms=self._random.choice((0, 100, 500)),
            min_bytes=self._random.choice((0, 1, 1_000)),
            max_bytes=self._random.choice((1, 2_000, 50 << 20)),
            topics=list(topics.values()),
        )

    async def _take(self, partition: TopicPartition, data: PartitionData) -> None:
        if data.error_code in _TRY_AGAIN:
            await self._link.look_again()
            await self._link.pause()
            return
        records = self.read[partition]
        if data.error_code != ErrorCode.NONE:
            error = ErrorCode.from_wire(data.error_code)
            raise PropertyViolated(
                f"what was read stays: {self._link.name} got {error.name} in {partition} behind "
                f"offset {len(records)}"
            )
        if self._link.leader_epoch == NO_LEADER_EPOCH:
            # In a cluster a new leader may be behind the old one for a moment.
            self._high_watermarks.observe(partition, data.high_watermark)
        self.ends[partition] = data.high_watermark
        if not isinstance(data.records, bytes | bytearray | memoryview):
            return
        for record in decode_records(whole_batches(data.records)):
            if record.offset < len(records):
                continue  # A batch is sent as a whole, also if its middle is asked for.
            if record.offset != len(records) or record.value is None:
                raise PropertyViolated(
                    f"offsets have no gaps: {self._link.name} read offset {record.offset} of "
                    f"{partition} behind {len(records) - 1}"
                )
            if record.offset >= data.high_watermark:
                break  # Sent along with its batch, but not for readers yet.
            records.append(Stored(record.offset, bytes(record.value)))


def whole_batches(records: Buffer) -> memoryview:
    """Without the last batch, if it was cut because the answer was to be no larger."""
    view = memoryview(records)
    end = 0
    while end + LOG_OVERHEAD <= len(view):
        size = LOG_OVERHEAD + int.from_bytes(view[end + 8 : end + LOG_OVERHEAD], "big")
        if end + size > len(view):
            break
        end += size
    return view[:end]
