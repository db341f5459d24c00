"""No client at all: what broker and machine would give to one that costs nothing.

Producing sends requests that were made before the clock started, over one connection with five of
them under way, as large as a topic takes them by default or with batches of the size that all
producers have. Consuming asks for the next megabyte of each partition, for half of the partitions
while the other half is received into the same memory again and again, and reads of each batch only
where the next one begins. A real client is measured by how near it comes.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Sequence

from bench.broker.raw_client import encode_frame, read_answer
from bench.client.load import TUNED_BATCH_BYTES, WAIT_S, Load, Stopwatch, TooFewRecords
from headwater.base.errors import ErrorCode
from headwater.net.endpoint import split_address
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headwater.wire.records import Buffer, CorruptRecordError, Record, encode_batch
from headwater.wire.records.batch_header import iter_batch_headers

_IN_FLIGHT = 5
#: As many bytes as go into a request if nobody says otherwise, for two partitions.
_LARGE_BATCH_BYTES = 500_000
_LARGE_BATCHES_PER_REQUEST = 2
#: What a record takes beside key and value, about.
_RECORD_OVERHEAD_BYTES = 12
_FETCH_VERSION = 12
_FETCHED_BYTES_MAX = 1 << 20
_LENGTH = struct.Struct(">i")


class _Connection:
    """Sends whole requests, and receives answers into one buffer; each is there until the next."""

    def __init__(self, bootstrap: str, answer_bytes_max: int) -> None:
        self._socket = socket.create_connection(split_address(bootstrap), WAIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(answer_bytes_max))

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        return self._receive(size)

    def _receive(self, size: int) -> memoryview:
        received = 0
        while received < size:
            count = self._socket.recv_into(self._buffer[received:size])
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            received += count
        return self._buffer[:size]

    def close(self) -> None:
        self._socket.close()


def produce(load: Load) -> dict[str, float]:
    frames, records_per_frame = _produce_frames(load)
    connection = _Connection(load.bootstrap, 1 << 16)
    sent_count = answered_count = 0
    watch = Stopwatch(load)
    while not watch.is_over() or answered_count < sent_count:
        if not watch.is_over() and sent_count - answered_count < _IN_FLIGHT:
            connection.send(frames[sent_count % len(frames)])
            sent_count += 1
            continue
        answer = read_answer(bytes(connection.receive()), ApiKey.PRODUCE)
        for partition in answer.responses[0].partition_responses:
            _require(partition.error_code)
        answered_count += 1
    result = watch.result(answered_count * records_per_frame)
    connection.close()
    return result


def _produce_frames(load: Load) -> tuple[list[bytes], int]:
    """Requests that together have all partitions, and how many records each has."""
    pairs: Sequence[tuple[bytes | None, bytes]] = [(None, value) for value in load.values()]
    if load.is_keyed:
        pairs = [pair for chunk in load.keyed_chunks() for pair in chunk]
    pair_bytes = sum(map(len, filter(None, pairs[0]))) + _RECORD_OVERHEAD_BYTES
    batch_bytes = TUNED_BATCH_BYTES if load.is_tuned else _LARGE_BATCH_BYTES
    record_count = batch_bytes // pair_bytes
    now_ms = int(time.time() * 1000)
    batch = encode_batch(
        [Record(index, now_ms, *pairs[index % len(pairs)]) for index in range(record_count)]
    )
    group_count = load.partition_count if load.is_tuned else _LARGE_BATCHES_PER_REQUEST
    frames = []
    for first in range(0, load.partition_count, group_count):
        data = [
            PartitionProduceData(index=index, records=batch)
            for index in range(first, first + group_count)
        ]
        request = ProduceRequest(
            acks=-1 if load.acks == "all" else int(load.acks),
            timeout_ms=int(WAIT_S * 1000),
            topic_data=[TopicProduceData(name=load.topic, partition_data=data)],
        )
        frames.append(encode_frame(request))
    return frames, record_count * group_count


def consume(load: Load) -> dict[str, float]:
    offsets = [0] * load.partition_count
    halves = [range(0, load.partition_count, 2), range(1, load.partition_count, 2)]
    connection = _Connection(load.bootstrap, (load.partition_count + 1) * _FETCHED_BYTES_MAX)
    watch = Stopwatch(load)
    for half in halves:
        connection.send(_fetch_frame(load, half, offsets))
    number = 0
    while sum(offsets) < load.record_count and not watch.is_over():
        before_count = sum(offsets)
        answer = read_answer(connection.receive(), ApiKey.FETCH, _FETCH_VERSION)
        for partition in answer.responses[0].partitions:
            _require(partition.error_code)
            offsets[partition.partition_index] = max(
                offsets[partition.partition_index], _next_offset(partition.records)
            )
        connection.send(_fetch_frame(load, halves[number % 2], offsets))
        number += 1
        if sum(offsets) == before_count and number > 2 * load.partition_count:
            raise TooFewRecords(before_count)
    result = watch.result(sum(offsets))
    connection.close()
    return result


def _fetch_frame(load: Load, partitions: Sequence[int], offsets: Sequence[int]) -> bytes:
    wanted = [
        FetchPartition(
            partition=index, fetch_offset=offsets[index], partition_max_bytes=_FETCHED_BYTES_MAX
        )
        for index in partitions
    ]
    request = FetchRequest(
        topics=[FetchTopic(topic=load.topic, partitions=wanted)],
        max_wait_ms=1,
        min_bytes=1,
        session_epoch=-1,
    )
    return encode_frame(request, version=_FETCH_VERSION)


def _next_offset(records: Buffer) -> int:
    """The offset after the last whole batch; 0 if there is none."""
    next_offset = 0
    with contextlib.suppress(CorruptRecordError):
        # What was asked for may end in the middle of a batch.
        for _, header in iter_batch_headers(records):
            next_offset = header.next_offset
    return next_offset


def _require(error_code: int) -> None:
    if error_code != 0:
        raise RuntimeError(f"the broker answered {ErrorCode.from_wire(error_code).name}")


JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    "wire-produce": produce,
    "wire-consume": consume,
}
