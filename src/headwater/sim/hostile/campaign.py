"""Hostile peers against a broker, while a healthy client produces and fetches.

The healthy client owns a topic that the others do not know. It writes a record, reads it back and
looks at it, again and again, and notes how long that takes. The hostile ones draw their cases from
a seed and a number, so that `case(seed, number)` is what any of them sent. What must not happen is
collected as findings; a test asserts that there are none. `run_fuzz` is all of that for one seed.
"""

import asyncio
import random
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from headwater.sim.hostile.client import FuzzClient, read_answer
from headwater.sim.hostile.frames import HostileCase, HostileFrames
from headwater.sim.hostile.messages import RandomMessages
from headwater.testing.broker_process import HOST, BrokerProcess, free_port
from headwater.wire.api_keys import INTER_BROKER_APIS, SCHEMA_VERSIONS, ApiKey, VersionRange
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.records import Record, decode_records, encode_batch

HEALTHY_TOPIC: Final = "healthy"
FUZZ_TOPICS: Final = tuple(f"fuzz-{number}" for number in range(4))
#: Of those whose records may wait.
DELAY_MODES: Final = {"fuzz-1": "header", "fuzz-2": "timestamp"}
PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
#: Those that may leave a request without an answer: acks=0, and fetches that wait for weeks.
MAY_STAY_SILENT: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
HOSTILE_PEERS: Final = 8
HEALTHY_ROUNDS_MIN: Final = 20
SAMPLE_INTERVAL_S: Final = 0.1
RESIDENT_BYTES_MAX: Final = 200 << 20
#: On a machine that is busy with other things too.
ROUND_S_MAX: Final = 5.0


@dataclass
class FuzzReport:
    """What was seen; `findings` are the things that must not happen."""

    findings: list[str] = field(default_factory=list)
    case_count: int = 0
    answer_count: int = 0
    healthy_rounds: int = 0
    slowest_round_s: float = 0.0
    resident_bytes_max: int = 0


def run_fuzz(seed: int, case_count: int) -> None:
    """A broker of its own under so many cases; raises if anything is wrong."""
    # Somebody receives the metrics of clients, so that these APIs are served too.
    settings = {"metrics.listen": f"{HOST}:{free_port()}"}
    with (
        TemporaryDirectory() as directory,
        BrokerProcess(Path(directory), settings=settings) as broker,
    ):
        report = asyncio.run(FuzzCampaign(broker, seed).run(case_count))
        assert report.findings == [], f"seed {seed}: {report.findings}"
        check_health(broker, report)
        check_log(broker, report, seed)


def check_log(broker: BrokerProcess, report: FuzzReport, seed: int) -> None:
    output = broker.output.read_text(errors="replace")
    assert "Traceback" not in output, f"seed {seed}:\n{broker.tail()}"
    assert len(output.splitlines()) <= report.case_count + 100, "more than a line for each peer"


def check_health(broker: BrokerProcess, report: FuzzReport) -> None:
    assert broker.is_running
    assert report.healthy_rounds >= HEALTHY_ROUNDS_MIN
    assert report.slowest_round_s < ROUND_S_MAX
    assert report.resident_bytes_max < RESIDENT_BYTES_MAX


def case(seed: int, number: int, served: list[tuple[ApiKey, VersionRange]]) -> HostileCase:
    """The case of that number; the same whenever it is asked for.

    Every other one belongs to the next API and version, so that none is left out.
    """
    source = random.Random(f"{seed}/{number}")
    frames = HostileFrames(source, RandomMessages(source, FUZZ_TOPICS), served)
    return frames.case() if number % 2 else frames.covering_case(number // 2)


class FuzzCampaign:
    def __init__(self, broker: BrokerProcess, seed: int) -> None:
        self._broker = broker
        self._seed = seed
        self._next_case = 0
        self.report = FuzzReport()

    async def run(self, case_count: int) -> FuzzReport:
        healthy = FuzzClient(HOST, self._broker.port)
        await healthy.connect()
        served = await _served_apis(healthy)
        await _create_topics(healthy)
        done = asyncio.Event()
        watchers = [
            asyncio.ensure_future(self._stay_healthy(healthy, done)),
            asyncio.ensure_future(self._watch_memory(done)),
        ]
        try:
            peers = (self._attack(served, case_count) for _ in range(HOSTILE_PEERS))
            await asyncio.gather(*peers)
        finally:
            done.set()
            await asyncio.gather(*watchers)
            await healthy.close()
        self.report.case_count = case_count
        return self.report

    async def count_healthy_records(self) -> int:
        """How many records of the healthy client there are, each as it was written."""
        client = FuzzClient(HOST, self._broker.port)
        await client.connect()
        found = 0
        while records := await _fetch(client, found, max_wait_ms=0):
            for record in records:
                assert record == _value(found, self._seed)
                found += 1
        await client.close()
        return found

    # -- the hostile -------------------------------------------------------------------------------

    async def _attack(self, served: list[tuple[ApiKey, VersionRange]], case_count: int) -> None:
        while self._next_case < case_count:
            number = self._next_case
            self._next_case += 1
            drawn = case(self._seed, number, served)
            try:
                await self._send(drawn)
            except (TimeoutError, AssertionError) as error:
                self.report.findings.append(
                    f"seed {self._seed}, case {number} ({drawn.kind}): "
                    f"{type(error).__name__} {error}"
                )
            except ConnectionError:
                # The broker may close while we still write.
                continue

    async def _send(self, drawn: HostileCase) -> None:
        client = FuzzClient(HOST, self._broker.port)
        await client.connect()
        try:
            for chunk in drawn.chunks:
                await client.write(chunk)
                await asyncio.sleep(0)
            if drawn.is_well_formed:
                await self._expect_answer(client, drawn.chunks[0])
        finally:
            await client.end()

    async def _expect_answer(self, client: FuzzClient, request: bytes) -> None:
        """A request that can be read is answered in its own terms, or refused by closing."""
        key, version, correlation_id = struct.unpack_from(">hhi", request, 4)
        if key in MAY_STAY_SILENT:
            return
        answer = await client.read_frame()
        if answer is not None:
            read_answer(answer, ApiKey(key), version, correlation_id)
            self.report.answer_count += 1

    # -- the healthy -------------------------------------------------------------------------------

    async def _stay_healthy(self, client: FuzzClient, done: asyncio.Event) -> None:
        # Some rounds are left for when the hostile are gone.
        while not done.is_set() or self.report.healthy_rounds < HEALTHY_ROUNDS_MIN:
            began_s = time.monotonic()
            try:
                await self._healthy_round(client)
            except (TimeoutError, ConnectionError, AssertionError) as error:
                self.report.findings.append(f"the healthy client: {type(error).__name__} {error}")
                return
            took_s = time.monotonic() - began_s
            self.report.healthy_rounds += 1
            self.report.slowest_round_s = max(self.report.slowest_round_s, took_s)

    async def _healthy_round(self, client: FuzzClient) -> None:
        expected = self.report.healthy_rounds
        value = _value(expected, self._seed)
        offset = await _produce(client, value)
        assert offset == expected, f"offset {offset}, not {expected}"
        assert await _fetch(client, offset) == [value]

    async def _watch_memory(self, done: asyncio.Event) -> None:
        while not done.is_set() and self._broker.is_running:
            size = self._broker.resident_bytes()
            self.report.resident_bytes_max = max(self.report.resident_bytes_max, size)
            await asyncio.sleep(SAMPLE_INTERVAL_S)


async def _served_apis(client: FuzzClient) -> list[tuple[ApiKey, VersionRange]]:
    """What the broker serves, as far as there are schemas, and what it does not speak of."""
    answer = await client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
    served = []
    for api in answer.api_keys:
        schema = SCHEMA_VERSIONS[ApiKey(api.api_key)]
        lowest, highest = max(schema.lowest, api.min_version), min(schema.highest, api.max_version)
        served.append((ApiKey(api.api_key), VersionRange(lowest, highest)))
    return served + [(key, SCHEMA_VERSIONS[key]) for key in sorted(INTER_BROKER_APIS)]


async def _create_topics(client: FuzzClient) -> None:
    names = (HEALTHY_TOPIC, *FUZZ_TOPICS)
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=_configs(name))
        for name in names
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
    answer = await client.ask(request, CreateTopicsResponse, 5)
    assert [topic.error_code for topic in answer.topics] == [0] * len(names)


def _configs(topic: str) -> list[CreatableTopicConfig]:
    mode = DELAY_MODES.get(topic)
    return [] if mode is None else [CreatableTopicConfig(name="delay.mode", value=mode)]


async def _produce(client: FuzzClient, value: bytes) -> int:
    records = encode_batch([Record(0, int(time.time() * 1000), None, value)])
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=20_000,
        topic_data=[TopicProduceData(name=HEALTHY_TOPIC, partition_data=[data])],
    )
    answer = await client.ask(request, ProduceResponse, PRODUCE_VERSION)
    [partition] = answer.responses[0].partition_responses
    assert partition.error_code == 0, f"producing failed with {partition.error_code}"
    return partition.base_offset


def _value(number: int, seed: int) -> bytes:
    return b"%d of seed %d" % (number, seed)


async def _fetch(client: FuzzClient, offset: int, max_wait_ms: int = 10_000) -> list[bytes | None]:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic=HEALTHY_TOPIC, partitions=[wanted])],
    )
    answer = await client.ask(request, FetchResponse, FETCH_VERSION)
    [partition] = answer.responses[0].partitions
    assert partition.error_code == 0, f"fetching failed with {partition.error_code}"
    records = partition.records
    assert records is None or isinstance(records, bytes | bytearray | memoryview)
    return [record.value for record in decode_records(records or b"")]
