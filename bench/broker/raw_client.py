"""A client at the level of the protocol: one blocking connection, one request at a time.

For what measurements need beside the load itself: topics, end offsets, the first acknowledgement.
It costs next to nothing to start, unlike any real client, and speaks only versions that both
servers serve.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from headwater.base.errors import ErrorCode
from headwater.wire.api_keys import ApiKey, response_class
from headwater.wire.codec import decode
from headwater.wire.frames import encode_request, read_response_header
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.records import Buffer
from headwater.wire.schema import Message

HOST = "127.0.0.1"
CLIENT_ID = "bench"
_VERSIONS = {
    ApiKey.PRODUCE: 9,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.API_VERSIONS: 0,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.FIND_COORDINATOR: 4,
    # The newest that hands out a member id and lets the member in at once.
    ApiKey.JOIN_GROUP: 3,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.END_TXN: 5,
}
_LATEST = -1
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1
_LENGTH = struct.Struct(">i")
#: A server with thousands of partitions takes its time for some of these.
_TIMEOUT_S = 300.0
_POLL_S = 0.005


class ServerRefused(Exception):
    """A request was answered with an error."""


def encode_frame(message: Message, correlation_id: int = 0, version: int | None = None) -> bytes:
    """A whole request as bytes, for whoever sends it many times."""
    key = message.API_KEY
    chosen = _VERSIONS[ApiKey(key)] if version is None else version
    parts = encode_request(key, chosen, correlation_id, CLIENT_ID, message)
    return b"".join(part for part in parts if isinstance(part, (bytes, bytearray, memoryview)))


def read_answer(answer: Buffer, key: ApiKey, version: int | None = None) -> Any:
    """The message in an answer, which is given without the length in front."""
    chosen = _VERSIONS[key] if version is None else version
    _, position = read_response_header(answer, key, chosen)
    message, _ = decode(response_class(key), answer, chosen, position)
    return message


class RawClient:
    """One connection; made by connecting, closed by `close` or by leaving its context."""

    def __init__(self, port: int, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, message: Message) -> Any:
        """Send a request and return the message that answers it."""
        return read_answer(self.ask_bytes(encode_frame(message)), ApiKey(message.API_KEY))

    def ask_bytes(self, frame: bytes) -> bytearray:
        """Send a request that was encoded before; its answer without the length in front."""
        self._socket.sendall(frame)
        (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        return self._receive(size)

    def create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait until every partition of it is served."""
        entries = [
            CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partition_count, replication_factor=1, configs=entries
        )
        response = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=int(_TIMEOUT_S * 1000)))
        [result] = response.topics
        if result.error_code != 0:
            raise ServerRefused(
                f"{name}: {ErrorCode.from_wire(result.error_code).name} {result.error_message}"
            )
        wait_until(lambda: self._serves(name, partition_count), f"{name} is not served")

    def delete_topic(self, name: str) -> None:
        states = [DeleteTopicState(name=name)]
        response = self.ask(DeleteTopicsRequest(topics=states, timeout_ms=int(_TIMEOUT_S * 1000)))
        [result] = response.responses
        if result.error_code != 0:
            raise ServerRefused(f"{name}: {ErrorCode.from_wire(result.error_code).name}")

    def set_topic_config(self, topic: str, name: str, value: str | None) -> None:
        """Set a topic's own setting; None takes it away."""
        operation = _SET if value is not None else _DELETE
        config = AlterableConfig(name=name, value=value, config_operation=operation)
        resource = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=[config]
        )
        response = self.ask(IncrementalAlterConfigsRequest(resources=[resource]))
        [result] = response.responses
        if result.error_code != 0:
            raise ServerRefused(f"{name} of {topic}: {result.error_message}")

    def record_count(self, topic: str, partition_count: int) -> int:
        """How many records were ever written to the topic."""
        partitions = self._end_offsets(topic, partition_count)
        for partition in partitions:
            if partition.error_code != 0:
                raise ServerRefused(f"{topic}: {ErrorCode.from_wire(partition.error_code).name}")
        return sum(partition.offset for partition in partitions)

    def _serves(self, topic: str, partition_count: int) -> bool:
        partitions = self._end_offsets(topic, partition_count)
        return all(partition.error_code == 0 for partition in partitions)

    def _end_offsets(self, topic: str, partition_count: int) -> list[Any]:
        wanted = [
            ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
            for index in range(partition_count)
        ]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
        )
        partitions: list[Any] = self.ask(request).topics[0].partitions
        return partitions

    def _receive(self, size: int) -> bytearray:
        received = bytearray(size)
        view = memoryview(received)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise ConnectionError("the server closed the connection")
            view = view[count:]
        return received


def wait_until(
    condition: Callable[[], bool], complaint: str, timeout_s: float = _TIMEOUT_S
) -> None:
    """Ask again and again; RuntimeError if it takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{complaint} after {timeout_s:g} s")
        time.sleep(_POLL_S)
