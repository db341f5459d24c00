"""The service on a cluster: what is forwarded, when, how often, and what becomes of bad records."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from headwater import Admin, Consumer, NewTopic, Producer, TopicPartition
from headwater.base.errors import KafkaError
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.delay_levels import level_record, parse_levels
from headwater.delivery.delay_service.level_loop import LevelReport
from headwater.delivery.delay_service.options import ServiceOptions
from headwater.delivery.delay_service.service import DelayService
from tests.support.brokers.clusters import HEADWATER, KINDS, Cluster, running_cluster

LEVELS_TEXT = "200ms,500ms"
LEVELS = parse_levels(LEVELS_TEXT)
#: Members that were killed are to be missed soon.
QUICK = {"session.timeout.ms": 900, "heartbeat.interval.ms": 200}
#: No codec makes it smaller.
LARGE = random.Random(1).randbytes(2000)


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.min.session.timeout.ms": "500",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"), settings)


def make_topic(cluster: Cluster, name: str, partitions: int = 1, **configs: str) -> None:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, configs=settings)])


def options_of(cluster: Cluster, **given: object) -> ServiceOptions:
    options = {"levels": LEVELS, "consumer_settings": QUICK, **given}
    return ServiceOptions(cluster.bootstrap, "one", **options)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(options: ServiceOptions) -> AsyncIterator[DelayService]:
    service = DelayService(options)
    await service.start()
    running = asyncio.get_running_loop().create_task(service.run())
    try:
        yield service
    finally:
        service.stop()
        await running
        await service.close()


@contextmanager
def killable(cluster: Cluster, instance: str) -> Iterator[None]:
    """A service in a process of its own, killed without a warning at the end."""
    command = [sys.executable, "-m", "headwater", "delay-service", "-b", cluster.bootstrap]
    command += ["--levels", LEVELS_TEXT, "--instance", instance]
    for name, value in QUICK.items():
        command += ["--consumer-property", f"{name}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        while b"is ready" not in (line := process.stdout.readline()):
            assert line, "the service ended"
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def send(cluster: Cluster, topic: str, values: range, delay_ms: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in values:
            written = level_record(topic, delay_ms, levels=LEVELS)
            key = str(value % 5).encode()
            producer.send(written.topic, str(value).encode(), key=key, headers=written.headers)


class Reader:
    """Reads a topic's committed records from its start, and notices what comes early."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._consumer = Consumer(
            bootstrap_servers=cluster.bootstrap, isolation_level="read_committed"
        )
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            found = admin.describe_topics([topic])[topic]
        assert not isinstance(found, KafkaError)
        partitions = [TopicPartition(topic, number) for number in range(len(found.partitions))]
        self._consumer.assign(partitions)
        self._consumer.seek_to_beginning(partitions)
        self.records: list[ConsumerRecord] = []
        self.early: list[ConsumerRecord] = []

    def read(self, timeout_s: float = 0.1) -> None:
        found = self._consumer.poll(timeout_s)
        now_ms = time.time_ns() // 1_000_000
        self.records += found
        self.early += [record for record in found if record.timestamp > now_ms]

    def until(self, is_enough: Callable[[list[ConsumerRecord]], bool]) -> list[ConsumerRecord]:
        end_s = time.monotonic() + 40
        while not is_enough(self.records):
            assert time.monotonic() < end_s, f"only {len(self.records)} records came"
            self.read()
        return self.records

    def close(self) -> None:
        self._consumer.close()


async def read_count(cluster: Cluster, topic: str, count: int) -> list[ConsumerRecord]:
    reader = Reader(cluster, topic)
    try:
        records = await asyncio.to_thread(reader.until, lambda found: len(found) >= count)
        assert reader.early == []
        return records
    finally:
        reader.close()


async def done(service: DelayService, count: int) -> list[LevelReport]:
    """All reports until so much is done; each has the lateness since the one before.

    Readers may see a transaction before the service hears that it is committed.
    """
    seen: list[LevelReport] = []
    while True:
        reports = service.reports()
        seen += reports
        if sum(each.forwarded_count + each.dead_count for each in reports) >= count:
            return seen
        await asyncio.sleep(0.01)


def test_records_arrive_once_when_due_as_they_were_sent(cluster: Cluster) -> None:
    make_topic(cluster, "orders", 2)

    async def scene() -> None:
        async with serving(options_of(cluster, partition_count=2)) as service:
            await asyncio.to_thread(send, cluster, "orders", range(50), 170)
            await asyncio.to_thread(send, cluster, "orders", range(50, 100), 400)
            records = await read_count(cluster, "orders", 100)
            assert sorted(int(record.value) for record in records) == list(range(100))
            for record in records:
                (name, sent_ms) = record.headers[-1]
                assert name == "headwater-sent-at" and sent_ms is not None
                level_ms = 200 if int(record.value) < 50 else 500
                assert record.timestamp >= int(sent_ms) + level_ms
                assert [header for header, _ in record.headers] == ["headwater-sent-at"]
            for key in {record.key for record in records}:
                of_one = [int(record.value) for record in records if record.key == key]
                assert of_one[:10] == sorted(of_one[:10])
            seen = await done(service, 100)
            reports = {report.level: report for report in seen}
            assert [reports[name].forwarded_count for name in ("200ms", "500ms")] == [50, 50]
            late = [each.lateness.p99_ms for each in seen if each.level == "200ms"]
            assert any(figure is not None for figure in late)

    asyncio.run(scene())


def test_bad_records_become_dead_letters_and_hold_up_nobody(cluster: Cluster) -> None:
    make_topic(cluster, "narrow", max_message_bytes="500")

    async def scene() -> None:
        async with serving(options_of(cluster)) as service:

            def write() -> None:
                with Producer(bootstrap_servers=cluster.bootstrap) as producer:
                    for value, headers in (
                        (b"nowhere", {}),
                        (b"absent", {"headwater-topic": "absent"}),
                        (b"beyond", {"headwater-topic": "narrow", "headwater-partition": "7"}),
                        (LARGE, {"headwater-topic": "narrow"}),
                        (b"good", {"headwater-topic": "narrow"}),
                    ):
                        producer.send("__delay_200ms", value, headers=headers, partition=0)

            await asyncio.to_thread(write)
            good = await read_count(cluster, "narrow", 1)
            assert [record.value for record in good] == [b"good"]
            dead = await read_count(cluster, "__delay_dead", 4)
            reasons = [dict(record.headers)["headwater-dead-reason"] for record in dead]
            assert [(reason or b"").decode()[:30] for reason in reasons] == [
                "It has no header headwater-top",
                "There is no topic 'absent'.",
                "The topic 'narrow' has no part",
                "The topic 'narrow' refused it:",
            ]
            assert dead[3].value == LARGE
            await done(service, 5)
            (report, _) = service.reports()
            assert (report.dead_count, report.forwarded_count) == (4, 1)

    asyncio.run(scene())


def test_fetching_pauses_and_what_waits_beyond_comes_too(cluster: Cluster) -> None:
    make_topic(cluster, "paused")

    async def scene() -> None:
        async with serving(options_of(cluster, waiting_max_per_partition=3)) as service:
            await asyncio.to_thread(send, cluster, "paused", range(40), 200)
            records = await read_count(cluster, "paused", 40)
            assert sorted(int(record.value) for record in records) == list(range(40))
            await done(service, 40)
            assert service.reports()[0].forwarded_count == 40

    asyncio.run(scene())


def test_each_once_through_kills_and_rebalances(cluster: Cluster) -> None:
    """Two services share the partitions; both are killed while records come due."""
    make_topic(cluster, "killed", 2)
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        for level in LEVELS:
            if isinstance(admin.describe_topics([level.topic])[level.topic], KafkaError):
                admin.create_topics([NewTopic(level.topic, 2)])
    reader = Reader(cluster, "killed")
    sent = 0
    try:
        for instance in ("a", "b", "a"):
            with killable(cluster, instance), killable(cluster, "other"):
                send(cluster, "killed", range(sent, sent + 100), 200)
                sent += 100
                # Some have come, others are on their way.
                wanted = sent - 60
                reader.until(lambda found, wanted=wanted: len(found) >= wanted)  # type: ignore[misc]
        with killable(cluster, "b"):
            reader.until(lambda found: len(found) >= sent)
            reader.read(0.5)
    finally:
        reader.close()
    assert sorted(int(record.value) for record in reader.records) == list(range(sent))
    assert reader.early == []


def test_missing_topics_are_named_if_they_are_not_to_be_created(cluster: Cluster) -> None:
    async def scene() -> None:
        options = options_of(cluster, levels=parse_levels("7s"), creates_topics=False)
        service = DelayService(options)
        with pytest.raises(KafkaError, match="__delay_7s"):
            await service.start()
        await service.close()

    asyncio.run(scene())


def test_level_topics_are_internal_but_clients_write_to_them(cluster: Cluster) -> None:
    if cluster.kind != HEADWATER:
        pytest.skip("on Apache Kafka they are topics like others")

    async def scene() -> None:
        service = DelayService(options_of(cluster))
        await service.start()
        await service.close()

    asyncio.run(scene())
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        internal = {topic.name for topic in admin.list_topics() if topic.is_internal}
    assert {"__delay_200ms", "__delay_500ms", "__delay_dead"} <= internal
