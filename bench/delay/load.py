"""Who sends and reads while delays are measured: processes of their own, at the protocol's level.

The clock is one for all processes of a machine, so a reader can tell how late a copy is: it has the
time at which it was due. What it takes to reach the reader is counted in, as the way to the broker
and back is in the time that an ordinary record takes to be acknowledged.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Final

from bench import job_process
from bench.broker.raw_client import RawClient, encode_frame, read_answer
from bench.delay.sizes import RECORD_SIZE_BYTES
from bench.job_process import answer
from headwater.base.errors import ErrorCode
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headwater.wire.records import Record, decode_batch, encode_batch, iter_batch_headers

DELIVER_AT: Final = "headwater-deliver-at"
_BATCH_COUNT: Final = 1_000
_FETCH_VERSION: Final = 12
_FETCH_WAIT_MS: Final = 500
_FETCH_BYTES: Final = 4 << 20
_PAYLOAD: Final = b"x" * RECORD_SIZE_BYTES


def start_job(job: str, **arguments: object) -> subprocess.Popen[bytes]:
    """Start a job; `finish_job` waits for it."""
    return job_process.start_job(__name__, job, **arguments)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def produce(client: RawClient, topic: str, partition: int, batch: bytes, acks: int = 1) -> None:
    """Append a batch; RuntimeError if it is refused."""
    data = PartitionProduceData(index=partition, records=batch)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    told = client.ask(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics))
    result = told.responses[0].partition_responses[0]
    if result.error_code != 0:
        name = ErrorCode.from_wire(result.error_code).name
        raise RuntimeError(f"{topic}-{partition}: {name} {result.error_message or ''}")


def due_batches(due_ms: Sequence[int]) -> Iterator[bytes]:
    """Batches of messages that are due at these times."""
    sent_ms = now_ms()
    for first in range(0, len(due_ms), _BATCH_COUNT):
        yield encode_batch(
            [
                Record(number, sent_ms, None, _PAYLOAD, ((DELIVER_AT, b"%d" % each),))
                for number, each in enumerate(due_ms[first : first + _BATCH_COUNT])
            ]
        )


def send_due(
    port: int, topic: str, partition_count: int, record_count: int, from_ms: int, span_ms: int
) -> float:
    """Messages whose due times are spread over a span, in no order; the seconds that it took.

    The times are made as they are sent: there may be many millions of them.
    """
    chance = random.Random(1)
    start = time.perf_counter()
    with RawClient(port) as client:
        for number, first in enumerate(range(0, record_count, _BATCH_COUNT)):
            count = min(_BATCH_COUNT, record_count - first)
            due = [from_ms + chance.randrange(span_ms) for _ in range(count)]
            for batch in due_batches(due):
                produce(client, topic, number % partition_count, batch)
    return time.perf_counter() - start


def receive_due(port: int, topic: str, partition_count: int, record_count: int) -> list[float]:
    """How late each copy came here, in ms, in the order in which they came."""
    offsets = [0] * partition_count
    received: list[tuple[float, bytes]] = []
    count = 0
    with RawClient(port) as client:
        while count < record_count:
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=_FETCH_WAIT_MS,
                min_bytes=1,
                max_bytes=_FETCH_BYTES,
                topics=[
                    FetchTopic(
                        topic=topic,
                        partitions=[
                            FetchPartition(
                                partition=partition,
                                fetch_offset=offset,
                                partition_max_bytes=_FETCH_BYTES,
                            )
                            for partition, offset in enumerate(offsets)
                        ],
                    )
                ],
            )
            frame = client.ask_bytes(encode_frame(request, version=_FETCH_VERSION))
            arrived_ms = time.time_ns() / 1e6
            told = read_answer(frame, ApiKey.FETCH, _FETCH_VERSION)
            for each in told.responses[0].partitions if told.responses else ():
                data = bytes(each.records or b"")
                for position, header in iter_batch_headers(data):
                    offsets[each.partition_index] = header.next_offset
                    count += header.record_count
                    # Reading it can wait.
                    received.append((arrived_ms, data[position : position + header.size_bytes]))
    return [
        arrived_ms - record.timestamp
        for arrived_ms, data in received
        for record in decode_batch(data, check_crc=False)
    ]


def send_ordinary(port: int, topic: str, seconds: float, rate_per_s: float) -> list[list[float]]:
    """Single ordinary records at a rate: when each was sent, and in how many ms it was answered."""
    found: list[list[float]] = []
    step_s = 1 / rate_per_s
    with RawClient(port) as client:
        begun = time.perf_counter()
        number = 0
        while (elapsed := time.perf_counter() - begun) < seconds:
            if elapsed < number * step_s:
                time.sleep(number * step_s - elapsed)
            number += 1
            batch = encode_batch([Record(0, now_ms(), None, _PAYLOAD)])
            sent_ns, start = time.time_ns(), time.perf_counter()
            produce(client, topic, 0, batch)
            found.append([sent_ns / 1e6, (time.perf_counter() - start) * 1000])
    return found


if __name__ == "__main__":
    answer({"send_due": send_due, "receive_due": receive_due, "send_ordinary": send_ordinary})
