"""Workers on a cluster: what is handled, sent on and committed, and what a crash leaves behind."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater import Admin, Consumer, KafkaError, NewTopic, Producer, TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.failures.failed_record import origin_of
from headwater.delivery import App, AsyncWorker, DeadLetter, Retry, RetryPolicy, Worker
from headwater.delivery.worker import cluster_reach
from headwater.delivery.worker.settler import Settler
from headwater.testing import broker
from tests.support.brokers.clusters import HEADWATER, Cluster, running_cluster

#: Members that were killed are to be missed soon, and commits seen soon.
QUICK: Any = {"session_timeout_ms": 900, "heartbeat_interval_ms": 200, "commit_interval": 0.05}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.min.session.timeout.ms": "500",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    yield from running_cluster(HEADWATER, tmp_path_factory.mktemp("cluster"), settings)


class Place:
    """A topic, and a group with a plain retry topic: what is sent on stays there to be seen."""

    def __init__(self, cluster: Cluster, partitions: int = 2) -> None:
        self.cluster = cluster
        self.topic = cluster.new_name("orders")
        self.group = cluster.new_name("billing")
        self.retry = f"retry.{self.group}"
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(self.topic, partitions), NewTopic(self.retry, 2)])
        self.partitions = partitions

    def send(
        self, values: range, key: Callable[[int], int | None] = lambda value: value % 7
    ) -> None:
        with Producer(bootstrap_servers=self.cluster.bootstrap) as producer:
            for value in values:
                number = key(value)
                raw = None if number is None else b"%d" % number
                producer.send(self.topic, b"%d" % value, raw, headers={"mine": "kept"})

    def worker(self, handler: Callable[[Any], Any], **settings: Any) -> Worker:
        given = {"bootstrap_servers": self.cluster.bootstrap, **QUICK, **settings}
        return Worker(self.topic, group=self.group, handler=handler, **given)

    def sent_on(self) -> list[ConsumerRecord]:
        with Consumer(
            bootstrap_servers=self.cluster.bootstrap, isolation_level="read_committed"
        ) as consumer:
            places = [TopicPartition(self.retry, number) for number in range(2)]
            consumer.assign(places)
            consumer.seek_to_beginning(places)
            ends = consumer.end_offsets(places)
            found: list[ConsumerRecord] = []
            while any(consumer.position(place) < end for place, end in ends.items()):
                found += consumer.poll(0.2)
            return found

    def lag(self) -> int:
        """How many records of the topic are not committed."""
        places = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        with Consumer(bootstrap_servers=self.cluster.bootstrap, group_id=self.group) as consumer:
            committed = consumer.committed(places)
            ends = consumer.end_offsets(places)
        return sum(
            ends[place] - (0 if (done := committed[place]) is None else done.offset)
            for place in places
        )


@contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(30)
        assert not thread.is_alive()
    assert failures == []


def until(is_so: Callable[[], object], timeout_s: float = 20.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.02)


def number(record: ConsumerRecord) -> int:
    return int(record.value)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_each_record_is_done_or_sent_on(cluster: Cluster, concurrency: int) -> None:
    place = Place(cluster)
    place.send(range(200))
    done: list[int] = []

    def handle(record: ConsumerRecord) -> None:
        match number(record) % 10:
            case 1:
                raise OSError("the database is away")
            case 2:
                raise Retry("busy", after="30s")
            case 3:
                raise DeadLetter("nonsense")
            case 4:
                raise KeyError("hopeless")
        done.append(number(record))

    with running(place.worker(handle, concurrency=concurrency, hopeless=KeyError)) as worker:
        until(lambda: worker.metrics().handled_count == 120 and place.lag() == 0)
        assert worker.health().is_healthy
    metrics = worker.metrics()
    assert (metrics.failed_count, metrics.retried_count, metrics.dead_count) == (80, 40, 40)
    assert sorted(done) == [value for value in range(200) if not 1 <= value % 10 <= 4]
    found = {number(record): dict(record.headers) for record in place.sent_on()}
    assert sorted(found) == [value for value in range(200) if 1 <= value % 10 <= 4]
    assert all(headers["mine"] == b"kept" for headers in found.values())
    assert found[1]["headwater-error"] == b"the database is away"
    assert found[1]["headwater-error-class"] == b"OSError"
    assert "headwater-retry-after" not in found[1]
    assert found[2]["headwater-retry-after"] == b"30s"
    assert found[3]["headwater-dead"] == b"nonsense"
    assert found[4]["headwater-dead"] == b"'hopeless'"
    origins = {origin_of(record) for record in place.sent_on()}
    assert len(origins) == 80
    assert {origin.topic for origin in origins} == {place.topic}


def test_the_order_of_keys_is_kept_by_many_threads(cluster: Cluster) -> None:
    place = Place(cluster)
    place.send(range(300))
    seen: dict[bytes, list[int]] = {}

    def handle(record: ConsumerRecord) -> None:
        seen.setdefault(record.key, []).append(number(record))

    with running(place.worker(handle, concurrency=8)):
        until(lambda: place.lag() == 0)
    assert sorted(value for values in seen.values() for value in values) == list(range(300))
    assert all(values == sorted(values) for values in seen.values())


def test_what_cannot_be_deserialized_is_a_dead_letter_with_its_bytes(cluster: Cluster) -> None:
    place = Place(cluster)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in (b'{"id": 1}', b"{broken", b'{"id": 2}'):
            producer.send(place.topic, value, b"k")
    seen: list[int] = []
    worker = place.worker(
        lambda record: seen.append(record.value["id"]), value_deserializer=json.loads
    )
    with running(worker):
        until(lambda: place.lag() == 0)
    assert seen == [1, 2]
    (dead,) = place.sent_on()
    assert dead.value == b"{broken"
    assert b"deserialized" in (dict(dead.headers)["headwater-dead"] or b"")


def test_nothing_is_sent_on_without_its_commit(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that fails leaves neither; the next try leaves both, once."""
    place = Place(cluster)
    place.send(range(50))
    seen: list[tuple[int, int]] = []
    commit = Settler._transact

    async def fail_first(self: Settler, settlement: Any) -> bool:
        if not seen:
            producer = self._producer or await self._renew()
            self._is_doubtful = True
            await producer.begin_transaction()
            for letter in settlement.letters:
                await producer.send(letter.produced.topic, letter.produced.value)
            seen.append((len(place.sent_on()), place.lag()))
            raise KafkaError("cut off")
        return await commit(self, settlement)

    monkeypatch.setattr(Settler, "_transact", fail_first)

    def handle(record: ConsumerRecord) -> None:
        if number(record) % 5 == 0:
            raise OSError("away")

    with running(place.worker(handle)) as worker:
        until(lambda: place.lag() == 0)
    assert seen == [(0, 50)]
    assert sorted(map(number, place.sent_on())) == list(range(0, 50, 5))
    assert worker.metrics().retried_count == 10


def test_a_transaction_whose_answer_was_lost_is_not_repeated(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(cluster)
    place.send(range(50))
    lost: list[int] = []
    commit = Settler._transact

    async def lose_answer(self: Settler, settlement: Any) -> bool:
        await commit(self, settlement)
        if not lost:
            lost.append(1)
            self._is_doubtful = True
            raise KafkaError("the answer was lost")
        return True

    monkeypatch.setattr(Settler, "_transact", lose_answer)

    def handle(record: ConsumerRecord) -> None:
        if number(record) % 5 == 0:
            raise OSError("away")

    with running(place.worker(handle)):
        until(lambda: lost and place.lag() == 0)
        time.sleep(1.5)
    assert Counter(map(number, place.sent_on())) == Counter(range(0, 50, 5))


def test_a_key_that_fails_is_waited_for(cluster: Cluster) -> None:
    """With keep_order: what is behind it waits, other keys go on, and in the end it is dead."""
    place = Place(cluster, partitions=1)
    place.send(range(40), key=lambda value: value % 4)
    seen: list[int] = []
    tries: Counter[int] = Counter()

    def handle(record: ConsumerRecord) -> None:
        tries[number(record)] += 1
        if number(record) == 1 and tries[1] < 3:
            raise OSError("away")
        if number(record) == 2:
            raise OSError("never")
        seen.append(number(record))

    policy = RetryPolicy(delays=["100ms"], attempts=3)
    with running(place.worker(handle, keep_order=True, retry=policy)) as worker:
        until(lambda: place.lag() == 0)
    assert tries[1] == 3
    assert tries[2] == 4
    by_key = {key: [value for value in seen if value % 4 == key] for key in range(4)}
    assert by_key == {
        key: [value for value in range(40) if value % 4 == key and value != 2] for key in range(4)
    }
    # The others did not wait.
    assert seen.index(39) < seen.index(1)
    (dead,) = place.sent_on()
    assert b"It failed 4 times" in (dict(dead.headers)["headwater-dead"] or b"")
    assert worker.metrics().dead_count == 1


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_rebalance_repeats_no_outcome(cluster: Cluster, concurrency: int) -> None:
    place = Place(cluster, partitions=4)
    place.send(range(300))
    done: Counter[int] = Counter()

    def handle(record: ConsumerRecord) -> None:
        time.sleep(0.002)
        if number(record) % 3 == 0:
            raise OSError("away")
        done[number(record)] += 1

    settings = {"concurrency": concurrency, "max_poll_records": 20}
    with running(place.worker(handle, **settings)) as first:
        until(lambda: first.metrics().handled_count > 50)
        with running(place.worker(handle, **settings)) as second:
            until(lambda: second._work._assigned)
            place.send(range(300, 600))
            until(lambda: second.metrics().handled_count > 20)
        until(lambda: place.lag() == 0)
    assert Counter(map(number, place.sent_on())) == Counter(range(0, 600, 3))
    # What was being handled was waited for.
    assert done == Counter(value for value in range(600) if value % 3)


def test_a_refused_record_goes_without_its_contents(cluster: Cluster) -> None:
    place = Place(cluster, partitions=1)
    with Producer(bootstrap_servers=cluster.bootstrap, max_request_size=4 << 20) as producer:
        for size in (10, 1_048_400, 20):
            producer.send(place.topic, bytes(size), b"k").result(10)

    def handle(record: ConsumerRecord) -> None:
        raise OSError("away")

    with running(place.worker(handle)):
        until(lambda: place.lag() == 0)
    found = place.sent_on()
    assert sorted(len(record.value or b"") for record in found) == [0, 10, 20]
    (bare,) = [record for record in found if record.value is None]
    assert origin_of(bare).offset == 1
    assert b"refused" in (dict(bare.headers)["headwater-dead"] or b"")


def test_nearly_everything_fails_until_the_circuit_opens(cluster: Cluster) -> None:
    place = Place(cluster)
    place.send(range(3000))
    is_away = [True]

    def handle(record: ConsumerRecord) -> None:
        if is_away[0]:
            raise OSError("away")

    with running(place.worker(handle, circuit_pause=0.3, max_poll_records=100)) as worker:
        until(lambda: worker.metrics().circuit_opened_count >= 2)
        assert worker.metrics().failed_count <= 300
        assert not worker.health().is_healthy
        is_away[0] = False
        until(lambda: place.lag() == 0)
        assert worker.health().is_healthy
    metrics = worker.metrics()
    assert metrics.handled_count + metrics.retried_count == 3000


def test_attempts_in_the_process_come_first(cluster: Cluster) -> None:
    place = Place(cluster)
    place.send(range(10))
    tries: Counter[int] = Counter()

    def handle(record: ConsumerRecord) -> None:
        tries[number(record)] += 1
        if number(record) == 3 and tries[3] < 3:
            raise OSError("away")

    settings = {"in_process_attempts": 3, "in_process_backoff": 0.01}
    with running(place.worker(handle, **settings)) as worker:
        until(lambda: place.lag() == 0)
    assert tries[3] == 3
    assert worker.metrics().in_process_retry_count == 2
    assert place.sent_on() == []


def test_a_worker_without_its_retry_topic_says_what_to_do(cluster: Cluster) -> None:
    worker = Worker("orders", group="nobody", handler=print, bootstrap_servers=cluster.bootstrap)
    with pytest.raises(KafkaError, match="headwater retry enable nobody --topics orders"):
        worker.run(handle_signals=False)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_coroutines(cluster: Cluster, concurrency: int) -> None:
    place = Place(cluster)
    place.send(range(100))
    done: list[int] = []

    async def handle(record: ConsumerRecord) -> None:
        await asyncio.sleep(0)
        if number(record) % 10 == 0:
            raise OSError("away")
        done.append(number(record))

    async def run() -> None:
        given: Any = {"bootstrap_servers": cluster.bootstrap, **QUICK}
        worker = AsyncWorker(
            place.topic, group=place.group, handler=handle, concurrency=concurrency, **given
        )
        task = asyncio.create_task(worker.run())
        while not (worker.metrics().handled_count == 90 and worker.metrics().retried_count == 10):
            assert not task.done(), task.exception()
            await asyncio.sleep(0.02)
        worker.stop()
        await task

    asyncio.run(asyncio.wait_for(run(), 30))
    assert sorted(done) == [value for value in range(100) if value % 10]
    assert sorted(map(number, place.sent_on())) == list(range(0, 100, 10))
    assert place.lag() == 0


def test_an_app_has_a_handler_for_each_topic(cluster: Cluster) -> None:
    first, second = Place(cluster), Place(cluster)
    first.send(range(10))
    second.send(range(10, 20))
    given: Any = {"bootstrap_servers": cluster.bootstrap, **QUICK}
    app = App(group=first.group, **given)
    seen: dict[str, list[int]] = {"first": [], "second": []}

    @app.handle(first.topic)
    def one(record: ConsumerRecord) -> None:
        seen["first"].append(number(record))

    @app.handle(second.topic)
    def two(record: ConsumerRecord) -> None:
        seen["second"].append(number(record))

    worker = app.make_worker()
    assert isinstance(worker, Worker)
    with running(worker):
        until(lambda: worker.metrics().handled_count == 20)
    assert sorted(seen["first"]) == list(range(10))
    assert sorted(seen["second"]) == list(range(10, 20))


# -- processes -----------------------------------------------------------------------------------

_PROGRAM = """
import os, sys, time
from headwater.delivery import Worker
bootstrap, topic, group, path, mode = sys.argv[1:]

def handle(record):
    number = int(record.value)
    if mode == "dies" and number == 5:
        os.kill(os.getpid(), 9)
    with open(path, "a") as file:
        file.write(f"{number}\\n")
    time.sleep(0.002)
    if number % 3 == 0:
        raise OSError("away")

Worker(topic, group=group, handler=handle, bootstrap_servers=bootstrap, session_timeout_ms=900,
       heartbeat_interval_ms=200, commit_interval=0.02, count_crashes=mode == "dies",
       concurrency=4 if mode == "many" else 1, instance="one").run()
"""


def start(place: Place, path: Path, mode: str) -> subprocess.Popen[bytes]:
    arguments = [place.cluster.bootstrap, place.topic, place.group, str(path), mode]
    return subprocess.Popen([sys.executable, "-c", _PROGRAM, *arguments])


@pytest.mark.parametrize("mode", ["one", "many"])
def test_killed_workers_leave_each_record_with_one_outcome(
    cluster: Cluster, tmp_path: Path, mode: str
) -> None:
    place = Place(cluster)
    place.send(range(600))
    path = tmp_path / "handled"
    path.touch()
    for round_number in range(1, 4):
        process = start(place, path, mode)
        until(lambda: len(path.read_text().splitlines()) >= 150 * round_number)  # noqa: B023
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = start(place, path, mode)
    until(lambda: place.lag() == 0, 60)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    sent_on = Counter(map(number, place.sent_on()))
    assert sent_on == Counter(range(0, 600, 3))
    assert set(map(int, path.read_text().split())) == set(range(600))


def test_a_record_that_kills_its_process_is_sent_on(cluster: Cluster, tmp_path: Path) -> None:
    place = Place(cluster, partitions=1)
    place.send(range(10))
    path = tmp_path / "handled"
    path.touch()
    for _ in range(3):
        assert start(place, path, "dies").wait(20) == -signal.SIGKILL
    process = start(place, path, "dies")
    until(lambda: place.lag() == 0, 30)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    sent_on = {number(record): dict(record.headers) for record in place.sent_on()}
    assert sorted(sent_on) == [0, 3, 5, 6, 9]
    assert sent_on[5]["headwater-error"] == b"the process died while handling it, 3 times"
    assert Counter(map(int, path.read_text().split())) == Counter(
        [value for value in range(10) if value != 5]
    )


_COROUTINES = """
import asyncio, sys
from headwater.delivery import AsyncWorker
bootstrap, topic, group, path, concurrency = sys.argv[1:]

async def handle(record):
    with open(path, "a") as file:
        file.write(f"{int(record.value)}\\n")
    await asyncio.sleep(0.1)

asyncio.run(AsyncWorker(topic, group=group, handler=handle, bootstrap_servers=bootstrap,
                        concurrency=int(concurrency)).run())
"""


@pytest.mark.parametrize("concurrency", [1, 5])
def test_sigterm_lets_coroutines_finish_what_they_have_begun(
    cluster: Cluster, tmp_path: Path, concurrency: int
) -> None:
    place = Place(cluster)
    place.send(range(200))
    path = tmp_path / "handled"
    path.touch()
    arguments = [cluster.bootstrap, place.topic, place.group, str(path), str(concurrency)]
    process = subprocess.Popen([sys.executable, "-c", _COROUTINES, *arguments])
    until(lambda: len(path.read_text().splitlines()) >= 8)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    handled = path.read_text().splitlines()
    assert len(set(handled)) == len(handled)
    assert place.lag() == 200 - len(handled) > 0


def test_a_worker_that_reaches_nobody_is_not_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_reach, "_UNREACHED_S", 0.3)
    with broker(tmp_path, settings={"group.min.session.timeout.ms": "500"}) as only_one:
        only_one.create_topic("orders")
        given: Any = {"bootstrap_servers": only_one.bootstrap, **QUICK}
        worker = Worker("orders", group="billing", handler=print, create_topics=True, **given)
        with running(worker):
            until(lambda: worker.health().state == "running")
            assert worker.health().reason == "It is no member of its group yet."
            until(lambda: worker.health().is_healthy)
            only_one.stop()
            until(lambda: not worker.health().is_healthy)
            assert "The cluster cannot be reached: " in worker.health().reason
            only_one.start()
            until(lambda: worker.health().is_healthy)


# -- the whole way -------------------------------------------------------------------------------


def test_a_record_comes_back_until_it_is_handled_or_given_up(cluster: Cluster) -> None:
    topic, group = cluster.new_name("orders"), cluster.new_name("billing")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in range(30):
            producer.send(topic, b"%d" % value, b"%d" % (value % 4))
    tries: Counter[int] = Counter()
    places: set[str] = set()

    def handle(record: ConsumerRecord) -> None:
        tries[number(record)] += 1
        places.add(record.topic)
        if number(record) % 10 == 1 and tries[number(record)] < 3:
            raise OSError("away")
        if number(record) % 10 == 2:
            raise OSError("never")
        if number(record) % 10 == 3:
            raise DeadLetter("nonsense")

    given: Any = {"bootstrap_servers": cluster.bootstrap, **QUICK, "create_topics": True}
    policy = RetryPolicy(delays=["100ms", "200ms"])
    worker = Worker(topic, group=group, handler=handle, retry=policy, **given)
    with running(worker), Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        until(lambda: worker.metrics().handled_count == 24)
        dead_letters = TopicPartition(f"dlq.{group}", 0)
        consumer.assign([dead_letters])
        consumer.seek_to_beginning([dead_letters])
        dead: list[ConsumerRecord] = []
        while len(dead) < 6:
            dead += consumer.poll()
    assert places == {topic, f"retry.{group}"}
    assert {value: count for value, count in tries.items() if count > 1} == {
        1: 3,
        11: 3,
        21: 3,
        2: 3,
        12: 3,
        22: 3,
    }
    assert sorted(map(number, dead)) == [2, 3, 12, 13, 22, 23]
    assert {origin_of(record).topic for record in dead} == {topic}
