"""A connection on which a test says exactly what it sends, and in which version.

No third-party client can be told to send the same batch twice, or a fetch that names no partition.
The bytes are those of `headwater.wire`, so these tests show nothing about the codec; that the same
tests pass against Apache Kafka does.
"""

from __future__ import annotations

import socket
import uuid
from types import TracebackType
from typing import Any, Self

from headwater.wire.api_keys import ApiKey, VersionRange, response_class
from headwater.wire.codec import decode
from headwater.wire.frames import encode_request, read_response_header
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Record, decode_batch, iter_batch_headers
from headwater.wire.schema import Message
from tests.support.other_clients.contract import TIMEOUT_S

CLIENT_ID = "raw"
PARTITION_BYTES_MAX = 1_000_000
#: Since when Produce and Fetch name a topic by its id.
PRODUCE_BY_ID = 13
FETCH_BY_ID = 13
#: The end, in ListOffsets.
LATEST = -1


class RawConnection:
    """One socket; requests may be pipelined with `send` and `receive`."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._correlation_id = 0
        self._offered: dict[int, VersionRange] | None = None

    def send(self, message: Message, version: int) -> int:
        """Returns the correlation id."""
        self._correlation_id += 1
        parts = encode_request(message.API_KEY, version, self._correlation_id, CLIENT_ID, message)
        self.send_bytes(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        return self._correlation_id

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        size = int.from_bytes(self._receive_exactly(4), "big")
        return self._receive_exactly(size)

    def receive(self, api_key: int, version: int) -> tuple[int, Any]:
        """The correlation id and the message of the next answer."""
        frame = self.receive_frame()
        correlation_id, position = read_response_header(frame, api_key, version)
        message, end = decode(response_class(ApiKey(api_key)), frame, version, position)
        assert end == len(frame), "the answer is longer than its message"
        return correlation_id, message

    def ask(self, message: Message, version: int) -> Any:
        """Send and wait for the answer."""
        sent = self.send(message, version)
        correlation_id, answer = self.receive(message.API_KEY, version)
        assert correlation_id == sent
        return answer

    def is_closed_by_peer(self) -> bool:
        """Wait for whatever comes next, and say whether it is the end."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            received += piece
        return bytes(received)

    # -- what many tests ask ---------------------------------------------------------------------

    def versions(self, api_key: ApiKey) -> range:
        """The versions that the broker offers and that have a schema here; perhaps none."""
        if self._offered is None:
            answer = self.ask(ApiVersionsRequest(), 0)
            self._offered = {
                each.api_key: VersionRange(each.min_version, each.max_version)
                for each in answer.api_keys
            }
        offered = self._offered.get(api_key)
        if offered is None:
            return range(0)
        known = api_key.schema_versions
        return range(max(offered.lowest, known.lowest), min(offered.highest, known.highest) + 1)

    def topic_id(self, topic: str) -> uuid.UUID:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        [described] = self.ask(request, 12).topics
        assert described.error_code == 0
        found: uuid.UUID = described.topic_id
        return found

    def serves(self, topic: str, partitions: int) -> bool:
        """Whether the broker tells the offsets of all of the topic's partitions."""
        wanted = [
            ListOffsetsPartition(partition_index=number, timestamp=LATEST)
            for number in range(partitions)
        ]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
        )
        [answer] = self.ask(request, 7).topics
        return all(each.error_code == 0 for each in answer.partitions)

    def produce(
        self, topic: str, records: bytes | None, version: int = 9, *, acks: int = -1
    ) -> PartitionProduceResponse:
        """Send one partition's records as they are; what the broker says of them."""
        request = produce_request(topic, records, acks=acks)
        if version >= PRODUCE_BY_ID:
            request.topic_data[0].topic_id = self.topic_id(topic)
        answer = self.ask(request, version)
        found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return found

    def fetch(self, request: FetchRequest, version: int = 12) -> FetchResponse:
        answer: FetchResponse = self.ask(request, version)
        return answer


def produce_request(topic: str, records: bytes | None, *, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch_topic(
    topic: str,
    *offsets: int,
    topic_id: uuid.UUID | None = None,
    partition_bytes_max: int = PARTITION_BYTES_MAX,
) -> FetchTopic:
    """From those offsets in partitions 0, 1, ..."""
    partitions = [
        FetchPartition(
            partition=number, fetch_offset=offset, partition_max_bytes=partition_bytes_max
        )
        for number, offset in enumerate(offsets)
    ]
    return FetchTopic(topic=topic, topic_id=topic_id or uuid.UUID(int=0), partitions=partitions)


def fetched_records(answer: FetchResponse) -> dict[tuple[str, int], list[Record]]:
    """The whole batches in an answer, by topic and partition, for those that it names."""
    return {
        (topic.topic, partition.partition_index): records_in(partition.records)
        for topic in answer.responses
        for partition in topic.partitions
    }


def records_in(data: Any) -> list[Record]:
    found: list[Record] = []
    data = bytes(data or b"")
    for position, header in iter_batch_headers(data):
        found += decode_batch(data[position : position + header.size_bytes])
    return found
