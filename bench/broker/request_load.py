"""A load that costs the client next to nothing: requests encoded beforehand, sent over and over.

Any number of connections from one thread, each with a fixed number of requests in flight: an answer
that comes in lets the next request go out. Every answer to a request of one shape has one size, so
a reply is not parsed: its length and its error code are compared at their places, many at once.
Afterwards the caller asks the server how many records it has, which nothing can fake.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple, Self

from bench.broker.raw_client import HOST, RawClient, encode_frame, read_answer
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Record, encode_batch

_RECEIVE_BYTES = 1 << 18
_ANSWER_TIMEOUT_S = 60.0
#: What a producer gathers by default before it sends.
_BATCH_BYTES = 16 * 1024


class RequestKind(NamedTuple):
    """What a load has to know of the answers to its requests."""

    api_key: ApiKey
    #: From the end of an answer that is no error back to its error code.
    error_from_end: int
    error_of: Callable[[Any], int]


#: Of one partition. Behind the error are offsets and times, 3 x 8, three empty fields, the topic's
#: tags, throttle time, tags.
PRODUCE = RequestKind(
    ApiKey.PRODUCE,
    2 + 24 + 3 + 1 + 4 + 1,
    lambda answer: answer.responses[0].partition_responses[0].error_code,
)
HEARTBEAT = RequestKind(ApiKey.HEARTBEAT, 2 + 1, lambda answer: answer.error_code)
#: Of one partition. Behind the error are the tags of the partition, the topic and the answer.
OFFSET_COMMIT = RequestKind(
    ApiKey.OFFSET_COMMIT, 2 + 3, lambda answer: answer.topics[0].partitions[0].error_code
)


class LoadCount(NamedTuple):
    """What was answered in how long, while the load was on; `total_count` has the rest too."""

    answer_count: int
    seconds: float
    total_count: int


def produce_frame(
    topic: str,
    partition: int,
    record_size_bytes: int,
    record_count: int,
    *,
    acks: int = 1,
    key_size_bytes: int | None = None,
) -> bytes:
    """A produce request with one batch for one partition: equal values, keys that differ."""
    now_ms = int(time.time() * 1000)
    payload = bytes(ord("A") + index % 26 for index in range(record_size_bytes))
    keys: list[bytes | None] = [None] * record_count
    if key_size_bytes is not None:
        first = partition * record_count
        keys = [b"%0*d" % (key_size_bytes, first + index) for index in range(record_count)]
    batch = encode_batch([Record(index, now_ms, key, payload) for index, key in enumerate(keys)])
    data = PartitionProduceData(index=partition, records=batch)
    return encode_frame(
        ProduceRequest(
            acks=acks,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
    )


def records_per_batch(record_size_bytes: int) -> int:
    """As many as a producer gathers by default."""
    return max(1, _BATCH_BYTES // record_size_bytes)


def frames_for_all(
    topic: str,
    partition_count: int,
    record_size_bytes: int,
    *,
    key_size_bytes: int | None = None,
) -> list[bytes]:
    """A request for each partition, with a batch as large as a producer's."""
    count = records_per_batch(record_size_bytes)
    return [
        produce_frame(topic, index, record_size_bytes, count, key_size_bytes=key_size_bytes)
        for index in range(partition_count)
    ]


class RequestLoad:
    """Connections to one server, and what goes round and round over them."""

    def __init__(
        self,
        port: int,
        frames: Sequence[bytes],
        *,
        connection_count: int,
        in_flight: int,
        kind: RequestKind = PRODUCE,
    ) -> None:
        self._frames = cycle(frames)
        self._in_flight = in_flight
        self._answer_size, self._error_position = _answer_shape(port, frames[0], kind)
        #: The one request that told the shape.
        self.probe_count = 1
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._rests: dict[int, bytes] = {}
        self._buffer = bytearray(_RECEIVE_BYTES)
        try:
            for _ in range(connection_count):
                self._connect(port)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()

    def run(self, seconds: float, count_max: int | None = None) -> LoadCount:
        """Keep the server busy for a while, or until so many answers have come."""
        limit = count_max if count_max is not None else 1 << 62
        sent = 0
        for descriptor in self._sockets:
            allowed = min(self._in_flight, limit - sent)
            self._send(descriptor, allowed)
            sent += allowed
        start = now = time.perf_counter()
        deadline = start + seconds
        answered = 0
        while now < deadline and answered < limit:
            for descriptor, _ in self._poll.poll(_ANSWER_TIMEOUT_S):
                count = self._receive(descriptor)
                answered += count
                allowed = min(count, limit - sent)
                if allowed > 0:
                    self._send(descriptor, allowed)
                    sent += allowed
            now = time.perf_counter()
        in_time, seconds_taken = answered, now - start
        while answered < sent:
            answered += self._drain()
        return LoadCount(in_time, seconds_taken, answered)

    def run_at_rate(self, seconds: float, rate_per_s: float) -> list[float]:
        """Send evenly in time, over the connections in turn; what each answer took, in ms."""
        sent_s: dict[int, deque[float]] = {each: deque() for each in self._sockets}
        turns = cycle(self._sockets)
        latencies_ms: list[float] = []
        start = time.perf_counter()
        wanted, sent = max(1, int(seconds * rate_per_s)), 0
        while len(latencies_ms) < wanted:
            now = time.perf_counter()
            while sent < wanted and start + sent / rate_per_s <= now:
                descriptor = next(turns)
                # The time at which it was due: a client that is late makes nobody look faster.
                sent_s[descriptor].append(start + sent / rate_per_s)
                self._send(descriptor, 1)
                sent += 1
            due_s = _ANSWER_TIMEOUT_S
            if sent < wanted:
                due_s = max(0.0, start + sent / rate_per_s - time.perf_counter())
            events = self._poll.poll(due_s)
            if not events and sent == wanted:
                raise RuntimeError(f"{wanted - len(latencies_ms)} requests were not answered")
            for descriptor, _ in events:
                count = self._receive(descriptor)
                now = time.perf_counter()
                latencies_ms += [1000 * (now - sent_s[descriptor].popleft()) for _ in range(count)]
        return latencies_ms

    def _connect(self, port: int) -> None:
        connection = socket.create_connection((HOST, port), timeout=_ANSWER_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[connection.fileno()] = connection
        self._rests[connection.fileno()] = b""
        self._poll.register(connection.fileno(), select.EPOLLIN)

    def _send(self, descriptor: int, count: int) -> None:
        if count > 0:
            self._sockets[descriptor].sendall(b"".join(islice(self._frames, count)))

    def _drain(self) -> int:
        events = self._poll.poll(_ANSWER_TIMEOUT_S)
        if not events:
            raise RuntimeError(
                f"The server left requests without answer for {_ANSWER_TIMEOUT_S} s."
            )
        return sum(self._receive(descriptor) for descriptor, _ in events)

    def _receive(self, descriptor: int) -> int:
        """How many answers this completes."""
        size = self._sockets[descriptor].recv_into(self._buffer)
        if size == 0:
            raise ConnectionError("the server closed a connection under load")
        data = self._rests[descriptor] + self._buffer[:size]
        step = self._answer_size
        count, rest = divmod(len(data), step)
        self._rests[descriptor] = bytes(data[count * step :]) if rest else b""
        whole = data[: count * step]
        error = self._error_position
        if (
            whole[3::step].count((step - 4) & 0xFF) != count
            or whole[error::step].count(0) != count
            or whole[error + 1 :: step].count(0) != count
        ):
            raise RuntimeError("the server answered a request of the load with an error")
        return count


def _answer_shape(port: int, frame: bytes, kind: RequestKind = PRODUCE) -> tuple[int, int]:
    """The size of an answer with its length, and where its error code is; one request is sent."""
    with RawClient(port) as client:
        answer = client.ask_bytes(frame)
    code = kind.error_of(read_answer(answer, kind.api_key))
    if code != 0:
        raise RuntimeError(f"the server refuses the load: error {code}")
    size = len(answer) + 4
    return size, size - kind.error_from_end
