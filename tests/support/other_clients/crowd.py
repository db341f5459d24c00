"""Many connections at once: `python -m tests.support.other_clients.crowd ADDRESS TOPIC N`.

Half of them produce a small batch again and again, half of them wait for what comes next. All are
open before the first of them begins, and none closes before the last is done. A line of JSON tells
of each of the two when it is reached: how long opening and working took, and what was answered.
Behind each the crowd stands still until it reads a line, so that whoever started it can look at the
broker meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass

from headwater.wire.codec import decode
from headwater.wire.frames import encode_request, read_response_header
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.fetch import FetchRequest, FetchResponse
from headwater.wire.messages.produce import ProduceRequest, ProduceResponse
from headwater.wire.records import Record, encode_batch
from headwater.wire.schema import Message
from tests.support.other_clients.raw import fetch_topic, produce_request

PRODUCE_VERSION = 9
FETCH_VERSION = 12
#: What each producer sends; each consumer answers as many fetches with data.
ROUNDS = 5
API_VERSIONS_VERSION = 3
#: How many are opened at the same time: fewer than a listener's queue holds, which are 50
#: (socket.listen.backlog.size). Those beyond are connected for themselves but not for the broker.
OPENING_MAX = 40


@dataclass
class Report:
    open_count: int = 0
    open_s: float = 0.0
    work_s: float = 0.0
    acknowledged_count: int = 0
    fetched_count: int = 0
    error_count: int = 0
    #: The longest that one producer waited for one answer.
    produce_max_s: float = 0.0


class CrowdConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def ask(self, message: Message, version: int) -> bytes:
        parts = encode_request(message.API_KEY, version, 1, "crowd", message)
        self.writer.writelines([bytes(part) for part in parts])  # type: ignore[arg-type]
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)


async def produce(connection: CrowdConnection, topic: str, report: Report) -> None:
    for number in range(ROUNDS):
        records = [Record(0, int(time.time() * 1000), None, b"%d" % number)]
        started_s = time.monotonic()
        frame = await connection.ask(
            produce_request(topic, encode_batch(records), acks=1), PRODUCE_VERSION
        )
        report.produce_max_s = max(report.produce_max_s, time.monotonic() - started_s)
        _, position = read_response_header(frame, ProduceRequest.API_KEY, PRODUCE_VERSION)
        answer, _ = decode(ProduceResponse, frame, PRODUCE_VERSION, position)
        error = answer.responses[0].partition_responses[0].error_code
        report.acknowledged_count += error == 0
        report.error_count += error != 0


async def consume(connection: CrowdConnection, topic: str, report: Report) -> None:
    for offset in range(ROUNDS):
        request = FetchRequest(
            topics=[fetch_topic(topic, offset, partition_bytes_max=4_096)],
            max_wait_ms=30_000,
            min_bytes=1,
            session_epoch=-1,
        )
        frame = await connection.ask(request, FETCH_VERSION)
        _, position = read_response_header(frame, FetchRequest.API_KEY, FETCH_VERSION)
        answer, _ = decode(FetchResponse, frame, FETCH_VERSION, position)
        partition = answer.responses[0].partitions[0]
        has_data = partition.error_code == 0 and len(partition.records or b"") > 0  # type: ignore[arg-type]
        report.fetched_count += has_data
        report.error_count += not has_data


async def run(address: str, topic: str, count: int) -> None:
    host, _, port = address.rpartition(":")
    report = Report()
    opening = asyncio.Semaphore(OPENING_MAX)

    async def open_one() -> CrowdConnection:
        async with opening:
            connection = CrowdConnection(*await asyncio.open_connection(host, int(port)))
            # Any client's first question. Whoever is answered was taken from the queue.
            await connection.ask(ApiVersionsRequest(), API_VERSIONS_VERSION)
            return connection

    started_s = time.monotonic()
    connections = await asyncio.gather(*(open_one() for _ in range(count)))
    report.open_count = len(connections)
    report.open_s = time.monotonic() - started_s
    stand_still(report)
    started_s = time.monotonic()
    await asyncio.gather(
        *(consume(each, topic, report) for each in connections[::2]),
        *(produce(each, topic, report) for each in connections[1::2]),
    )
    report.work_s = time.monotonic() - started_s
    stand_still(report)
    for each in connections:
        each.writer.close()


def stand_still(report: Report) -> None:
    """Nothing is under way, so the loop may as well wait for the line itself."""
    print(json.dumps(asdict(report)), flush=True)
    sys.stdin.readline()


def main() -> None:
    address, topic, count = sys.argv[1:4]
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    asyncio.run(run(address, topic, int(count)))


if __name__ == "__main__":
    main()
