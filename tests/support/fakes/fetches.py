"""Brokers of a few partitions that answer fetches when a test says so, with incremental sessions.

Every record's value is its offset in digits, so that a reader can be checked record by record.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.records import ControlType, Record, encode_batch, encode_end_transaction_marker

TOPIC = "orders"
TOPIC_ID = uuid.uuid5(uuid.NAMESPACE_DNS, TOPIC)


class StoredBatch(NamedTuple):
    base_offset: int
    next_offset: int
    data: bytes
    #: Of the records that a reader gets to see.
    offsets: tuple[int, ...]


class FakeLog:
    """One partition."""

    def __init__(self) -> None:
        self.batches: list[StoredBatch] = []
        self.start_offset = 0
        self.end_offset = 0
        self.epoch = 0

    def append(self, count: int, gap: int = 0) -> None:
        """A batch of records, after offsets that compaction has removed."""
        first = self.end_offset + gap
        records = [Record(first + i, 1000 + i, None, b"%d" % (first + i)) for i in range(count)]
        data = encode_batch(records, leader_epoch=self.epoch)
        offsets = tuple(record.offset for record in records)
        self._store(StoredBatch(first, first + count, data, offsets))

    def append_marker(self) -> None:
        """A control batch, which nobody gets to see."""
        data = encode_end_transaction_marker(
            ControlType.COMMIT,
            base_offset=self.end_offset,
            timestamp_ms=1000,
            producer_id=5,
            producer_epoch=0,
            coordinator_epoch=0,
        )
        self._store(StoredBatch(self.end_offset, self.end_offset + 1, data, ()))

    def _store(self, batch: StoredBatch) -> None:
        self.batches.append(batch)
        self.end_offset = batch.next_offset

    def visible(self, from_offset: int) -> list[int]:
        """The offsets of all records from there on."""
        return [
            offset for batch in self.batches for offset in batch.offsets if offset >= from_offset
        ]

    def read(self, offset: int, batch_count: int) -> bytes:
        found = [batch for batch in self.batches if batch.next_offset > offset]
        return b"".join(batch.data for batch in found[:batch_count])


class FakeBroker:
    """A leader with a fetch session for each that asks for one."""

    def __init__(self, logs: dict[int, FakeLog]) -> None:
        self.logs = logs
        self.session: dict[int, int] = {}
        self._session_id = 0
        self._epoch = 0

    def answer(
        self, request: FetchRequest, *, batch_count: int = 2, errors: Iterable[int] = ()
    ) -> FetchResponse:
        """What the leader answers: at most so many batches of each partition."""
        if request.session_epoch == 0:
            self.session = {}
            self._session_id += 1
            self._epoch = 0
        else:
            assert request.session_id == self._session_id
            assert request.session_epoch == self._epoch
        self._epoch += 1
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                del self.session[number]
        for topic in request.topics:
            for partition in topic.partitions:
                self.session[partition.partition] = partition.fetch_offset
        found = [
            self._partition(number, offset, batch_count, number in set(errors))
            for number, offset in self.session.items()
        ]
        news = [data for data in found if data.records or data.error_code or self._epoch == 1]
        return FetchResponse(
            session_id=self._session_id,
            responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=news)] if news else [],
        )

    def _partition(
        self, number: int, offset: int, batch_count: int, is_error: bool
    ) -> PartitionData:
        log = self.logs[number]
        if is_error:
            return PartitionData(partition_index=number, error_code=6)
        if not log.start_offset <= offset <= log.end_offset:
            return PartitionData(partition_index=number, error_code=1)
        return PartitionData(
            partition_index=number,
            high_watermark=log.end_offset,
            last_stable_offset=log.end_offset,
            log_start_offset=log.start_offset,
            records=log.read(offset, batch_count),
        )


def fake_metadata(leaders: dict[int, int], epoch: int = 0) -> ClusterMetadata:
    """What a client knows: the leader of each partition of the topic."""
    metadata = ClusterMetadata()
    metadata.learn(metadata_response(leaders, epoch), [TOPIC])
    return metadata


def metadata_response(leaders: dict[int, int], epoch: int = 0) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker_id, host="broker", port=9000 + broker_id)
            for broker_id in sorted(set(leaders.values()))
        ],
        cluster_id="played",
        topics=[
            MetadataResponseTopic(
                name=TOPIC,
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=number, leader_id=leader_id, leader_epoch=epoch
                    )
                    for number, leader_id in leaders.items()
                ],
            )
        ],
    )


def partition(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)
