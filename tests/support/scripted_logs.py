"""The partitions of a scripted cluster: what was produced to them, and fetches from them.

`refuse` is asked about each partition of each produce and fetch request, and may name an error code
instead of the work being done.
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
from headwater.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from headwater.wire.records import Record, decode_batch, iter_batch_headers, patch_batch
from tests.support.scripted_cluster import Call, Disconnect, ScriptedCluster


class Visit(NamedTuple):
    """One partition in one request."""

    broker_id: int
    topic_partition: TopicPartition
    #: The records that come, or the offset that is asked for.
    records: list[Record]
    offset: int


class ScriptedLogs:
    """Answers Produce and Fetch for a cluster."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.batches: dict[TopicPartition, list[bytes]] = {}
        self.visits: list[Visit] = []
        self.refuse: Callable[[Visit], int] = lambda visit: 0
        #: Stop answering, or close connections, after the work is done.
        self.lose_answer: Callable[[Call], bool] = lambda call: False
        self.aborted: list[AbortedTransaction] = []
        self._cluster = cluster
        cluster.script(ApiKey.PRODUCE, self._produce)
        cluster.script(ApiKey.FETCH, self._fetch)

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """What a partition holds."""
        batches = self.batches.get(TopicPartition(topic, partition), [])
        return [record.value for batch in batches for record in decode_batch(batch)]

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

    def _produce(self, call: Call) -> ProduceResponse | Disconnect | None:
        response = ProduceResponse()
        for topic in call.request.topic_data:
            name = self._name(topic.name, topic.topic_id)
            answer = TopicProduceResponse(name=name, topic_id=topic.topic_id)
            response.responses.append(answer)
            for data in topic.partition_data:
                key = TopicPartition(name, data.index)
                batch = bytes(data.records)
                visit = Visit(call.broker_id, key, decode_batch(batch), -1)
                self.visits.append(visit)
                code = self.refuse(visit)
                offset = -1 if code else self.append(key, batch)
                answer.partition_responses.append(
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=offset)
                )
        if self.lose_answer(call):
            return Disconnect()
        return None if call.request.acks == 0 else response

    def _fetch(self, call: Call) -> FetchResponse | Disconnect | None:
        request = call.request
        response = FetchResponse(session_id=0)
        for topic in request.topics:
            name = self._name(topic.topic, topic.topic_id)
            answer = FetchableTopicResponse(topic=name, topic_id=topic.topic_id)
            response.responses.append(answer)
            for wanted in topic.partitions:
                key = TopicPartition(name, wanted.partition)
                visit = Visit(call.broker_id, key, [], wanted.fetch_offset)
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
        return Disconnect() if self.lose_answer(call) else response

    def _read(self, key: TopicPartition, offset: int) -> bytes:
        """One batch at a time, the one that holds the offset."""
        for batch in self.batches.get(key, []):
            [(_, header)] = iter_batch_headers(batch)
            if header.last_offset >= offset:
                return batch
        return b""
