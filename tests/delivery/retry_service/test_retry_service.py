"""The retry service on a cluster: what fails waits, comes back counted, and is given up once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headwater import Admin, Consumer, NewTopic, Producer, TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import DeadLetter, RetryPolicy, Worker
from headwater.delivery.delay_service.options import ServiceOptions
from headwater.delivery.retry_service.options import RetryServiceOptions, levels_of
from headwater.delivery.retry_service.service import RetryService
from tests.support.brokers.clusters import APACHE, KINDS, Cluster, running_cluster
from tests.support.command import run_command
from tests.support.waiting import eventually

QUICK = {"session.timeout.ms": 900, "heartbeat.interval.ms": 200}
POLICY = RetryPolicy(["100ms", "250ms"])


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


@contextmanager
def serving(cluster: Cluster, group: str) -> Iterator[None]:
    """A service in a thread of its own."""
    waiting = ServiceOptions(
        *(cluster.bootstrap, f"one-{group}", levels_of(POLICY)), consumer_settings=QUICK
    )
    options = RetryServiceOptions(group, POLICY, f"dlq.{group}", waiting)
    is_ready = threading.Event()
    services: list[tuple[RetryService, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        service = RetryService(options)
        await service.start()
        services.append((service, asyncio.get_running_loop()))
        is_ready.set()
        try:
            await service.run()
        finally:
            await service.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_ready.wait(30)
    try:
        yield
    finally:
        ((service, loop),) = services
        loop.call_soon_threadsafe(service.stop)
        thread.join(30)
        assert not thread.is_alive()


def read(cluster: Cluster, topic: str, count: int, wait_s: float = 40.0) -> list[ConsumerRecord]:
    """The first committed records of a topic, once they are there."""
    with Consumer(
        bootstrap_servers=cluster.bootstrap, isolation_level="read_committed"
    ) as consumer:
        places = [TopicPartition(topic, 0)]
        consumer.assign(places)
        consumer.seek_to_beginning(places)
        found: list[ConsumerRecord] = []
        deadline_s = time.monotonic() + wait_s
        while len(found) < count and time.monotonic() < deadline_s:
            found += consumer.poll(0.2)
    return found


def test_a_stock_client_sees_the_same_as_on_headwater(cluster: Cluster) -> None:
    """The notes' walk: Q1, Q2, and then the dead letters, with the headers of a retry topic."""
    group = cluster.new_name("billing")
    retry, ready, dead = f"retry.{group}", f"retry.{group}.ready", f"dlq.{group}"
    with serving(cluster, group), Producer(bootstrap_servers=cluster.bootstrap) as producer:
        first = [("headwater-origin", b"orders-3@1234"), ("mine", b"x"), ("headwater-error", b"no")]
        sent_ms = time.time() * 1000
        producer.send(retry, b"v", b"k", headers=first).result()
        (once,) = read(cluster, ready, 1)
        assert dict(once.headers)["headwater-attempts"] == b"1"
        assert once.timestamp >= sent_ms + 100
        producer.send(retry, once.value, once.key, headers=once.headers).result()
        _, twice = read(cluster, ready, 2)
        assert dict(twice.headers)["headwater-attempts"] == b"2"
        assert twice.timestamp >= once.timestamp + 250
        producer.send(retry, twice.value, twice.key, headers=twice.headers).result()
        (letter,) = read(cluster, dead, 1)
        # Headers that make no sense are refused by a broker; here they make a dead letter.
        wrong = [("headwater-attempts", b"many"), ("headwater-origin", b"nowhere")]
        told = producer.send(retry, b"w", headers=wrong).result()
        # What asks for longer than the longest level passes some of them one after the other.
        producer.send(retry, b"z", headers=[("headwater-retry-after", b"600ms")]).result()
        _, false = read(cluster, dead, 2)
        *_, later = read(cluster, ready, 3)
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["mine"]) == (b"k", b"v", b"x")
    assert headers["headwater-attempts"] == b"3"
    assert int(headers["headwater-first-failure"] or 0) < int(
        headers["headwater-last-failure"] or 0
    )
    family = {name: value for name, value in headers.items() if name.startswith("__dlq.errors.")}
    assert family == {
        "__dlq.errors.topic": b"orders",
        "__dlq.errors.partition": b"3",
        "__dlq.errors.offset": b"1234",
        "__dlq.errors.group": group.encode(),
        "__dlq.errors.delivery.count": b"3",
        "__dlq.errors.message": b"no",
    }
    assert b"must be a number" in (dict(false.headers)["__dlq.errors.message"] or b"")
    assert dict(false.headers)["headwater-origin"] == f"{retry}-0@{told.offset}".encode()
    failed_ms = int(dict(later.headers)["headwater-last-failure"] or 0)
    assert (later.value, later.timestamp >= failed_ms + 600) == (b"z", True)


def test_a_worker_needs_no_broker_of_headwater(cluster: Cluster) -> None:
    orders, group = cluster.new_name("orders"), cluster.new_name("billing")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(orders, 1)])
    seen: Counter[bytes] = Counter()

    def handle(record: ConsumerRecord) -> None:
        seen[record.value] += 1
        if record.value == b"hopeless":
            raise DeadLetter("nonsense")
        if record.value == b"bad" or (record.value == b"shaky" and seen[record.value] < 2):
            raise OSError("the database is away")

    with serving(cluster, group):
        worker = Worker(
            *(orders,),
            group=group,
            handler=handle,
            bootstrap_servers=cluster.bootstrap,
            commit_interval=0.05,
        )
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            with Producer(bootstrap_servers=cluster.bootstrap) as producer:
                for value in (b"good", b"shaky", b"bad", b"hopeless"):
                    producer.send(orders, value).result()
            dead = read(cluster, f"dlq.{group}", 2)
            assert eventually(lambda: seen[b"shaky"] == 2)
        finally:
            worker.stop()
            thread.join(30)
    assert {each.value: dict(each.headers)["__dlq.errors.message"] for each in dead} == {
        b"bad": b"the database is away",
        b"hopeless": b"nonsense",
    }
    assert seen == {b"good": 1, b"shaky": 2, b"bad": 3, b"hopeless": 1}


def test_killed_services_give_up_each_record_once(cluster: Cluster) -> None:
    """Records wait and are given up through kills, and who reads committed data sees each once."""
    group = cluster.new_name("billing")
    retry, ready, dead = f"retry.{group}", f"retry.{group}.ready", f"dlq.{group}"
    count = 300
    command = [sys.executable, "-m", "headwater", "retry-service", group, "-b", cluster.bootstrap]
    command += ["--delays", "100ms,250ms", "--instance", f"same-{group}"]
    for name, value in QUICK.items():
        command += ["--consumer-property", f"{name}={value}"]
    is_over = threading.Event()

    def kill_again_and_again() -> None:
        for life_s in (1.5, 2.0, 60.0):
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                while b"is ready" not in (line := process.stdout.readline()):
                    assert line, "the service ended"
                is_over.wait(life_s)
                process.send_signal(signal.SIGKILL)
            if is_over.is_set():
                return

    with serving(cluster, group):
        """It makes the topics."""
    killing = threading.Thread(target=kill_again_and_again)
    killing.start()
    try:
        with Producer(
            bootstrap_servers=cluster.bootstrap, transactional_id=f"sender-{group}"
        ) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(count):
                producer.send(retry, b"%d" % number)
            producer.commit_transaction()
            returned = read(cluster, ready, count, 90)
            producer.begin_transaction()
            for record in returned:
                headers = [*record.headers, ("headwater-attempts", b"2")]
                producer.send(retry, record.value, headers=headers)
            producer.commit_transaction()
        letters = read(cluster, dead, count, 90)
    finally:
        is_over.set()
        killing.join(60)
    assert not killing.is_alive()
    assert Counter(each.value for each in returned) == {b"%d" % each: 1 for each in range(count)}
    assert Counter(each.value for each in letters) == {b"%d" % each: 1 for each in range(count)}
    assert read(cluster, dead, count + 1, 1.0)[count:] == []


def test_enabling_retries_makes_topics_and_names_the_service(cluster: Cluster) -> None:
    orders, group = cluster.new_name("orders"), cluster.new_name("billing")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(orders, 2)])
    enable = ("retry", "enable", group, "--topics", orders, "-b", cluster.bootstrap)
    made = run_command(*enable, "--delays", "1s,2s")
    assert (made.exit_code, made.stderr) == (0, "")
    if cluster.kind != APACHE:
        assert "retry-service" not in made.stdout  # Headwater needs none.
        return
    assert made.lines[:3] == [
        f"Created dlq.{group} with 2 partitions.",
        f"Created retry.{group} with 2 partitions.",
        f"Created retry.{group}.ready with 2 partitions.",
    ]
    assert f"headwater retry-service {group} --delays 1s,2s" in made.lines[3]
    refused = run_command(*enable, "--queues")
    assert refused.exit_code == 1
    assert "has neither --queues nor --jitter nor --max-delay" in refused.stderr
