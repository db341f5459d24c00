"""The partitions of a scripted cluster, and fetches from them.

`refuse` is asked about each partition of each fetch, and may name an error code instead of records.
"""

from collections.abc import Callable
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from headwater.wire.records import iter_batch_headers, patch_batch
from tests.support.fakes.peers.brokers import Call, FakeBrokers


class Visit(NamedTuple):
    """One partition in one request, and the offset that is asked for."""

    broker_id: int
    topic_partition: TopicPartition
    offset: int


class FakeLogs:
    """Answers Fetch for a cluster."""

    def __init__(self, cluster: FakeBrokers) -> None:
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.visits: list[Visit] = []
        self.refuse: Callable[[Visit], int] = lambda visit: 0
        self.aborted: list[AbortedTransaction] = []
        self._cluster = cluster
        cluster.script(ApiKey.FETCH, self._fetch)

    def append(self, topic_partition: TopicPartition, batch: bytes) -> int:
        """Store a batch; its base offset."""
        stored = self.batches.setdefault(topic_partition, [])
        base_offset = self.end_offset(topic_partition)
        patched = bytearray(batch)
        patch_batch(patched, 0, base_offset=base_offset, leader_epoch=3)
        stored.append(bytes(patched))
        return base_offset

    def end_offset(self, topic_partition: TopicPartition) -> int:
        batches = self.batches.get(topic_partition, [])
        headers = [header for _, header in iter_batch_headers(b"".join(batches))]
        return headers[-1].next_offset if headers else 0

    def _name(self, name: str, topic_id: object) -> str:
        names = {self._cluster.topic_id(topic): topic for topic in self._cluster.topics}
        return name or next(found for id_, found in names.items() if id_ == topic_id)

    def _fetch(self, call: Call) -> FetchResponse:
        request = call.request
        response = FetchResponse(session_id=0)
        for topic in request.topics:
            name = self._name(topic.topic, topic.topic_id)
            answer = FetchableTopicResponse(topic=name, topic_id=topic.topic_id)
            response.responses.append(answer)
            for wanted in topic.partitions:
                key = TopicPartition(name, wanted.partition)
                visit = Visit(call.broker_id, key, wanted.fetch_offset)
                self.visits.append(visit)
                code = self.refuse(visit)
                answer.partitions.append(
                    PartitionData(
                        partition_index=wanted.partition,
                        error_code=code,
                        high_watermark=self.end_offset(key),
                        aborted_transactions=self.aborted,
                        records=b"" if code else self._read(key, wanted.fetch_offset),
                    )
                )
        return response

    def _read(self, key: TopicPartition, offset: int) -> bytes:
        """One batch at a time, the one that holds the offset."""
        for batch in self.batches.get(key, []):
            [(_, header)] = iter_batch_headers(batch)
            if header.last_offset >= offset:
                return batch
        return b""
