"""Traces of records whose leader is killed between their append and their acknowledgement."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer as ConfluentProducer

import headwater
from headwater.delivery import RetryPolicy, Worker
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import SLOW_S
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.command import run_command

pytestmark = pytest.mark.full

SETTINGS = {"audit.bucket.ms": "1000", "audit.topic.num.partitions": "1"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[HeadwaterCluster]:
    address = shared_zookeeper().address + fresh_chroot()
    with HeadwaterCluster(tmp_path, address, settings=SETTINGS) as running:
        yield running


def story(cluster: HeadwaterCluster, place: str) -> dict[str, Any]:
    finished = run_command("trace", place, "--json", "-b", cluster.bootstrap)
    if finished.exit_code:
        return {"events": [], "stderr": finished.stderr}
    (found,) = json.loads(finished.stdout)["messages"]
    assert isinstance(found, dict)
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [each["event"] for each in found["events"]]


def change_leader(cluster: HeadwaterCluster, topic: str, send: Callable[[], object]) -> int:
    """The leader ends when it has what is sent, and nobody was told so; returns who leads next."""
    leader = cluster.leader_of(topic, 0)
    heir, silent = cluster.others(leader)
    log = cluster.data_dir(heir) / f"{topic}-0" / "00000000000000000000.log"
    size_bytes = log.stat().st_size
    with cluster.paused(cluster.nodes[silent]):
        # It waits for the one who is silent; the other has it, and leads next.
        send()
        wait_until(lambda: log.stat().st_size > size_bytes, "the heir has it", SLOW_S)
        cluster.nodes[leader].kill()
        with cluster.away([leader]):
            cluster.wait_for_leader(topic, 0, [heir])
    cluster.heal()
    return heir


def test_a_leader_change_between_send_and_acknowledgement(cluster: HeadwaterCluster) -> None:
    topic = cluster.create_topic("orders", 1)
    cluster.wait_in_sync(topic, 0, 3)
    config: dict[str, object] = {
        "bootstrap.servers": cluster.bootstrap,
        "trace.enable": True,
        "trace.sample": 1.0,
        "client.id": "shop",
        "request.timeout.ms": 2_000,
    }
    with headwater.Producer(config) as producer:
        first = producer.send(topic, b"first", b"k").result(SLOW_S).message_id
        # `__trace` is led by somebody, and `__audit` is made.
        wait_until(lambda: "replicated" in names(story(cluster, str(first))), "it is told", SLOW_S)
        sendings: list[headwater.DeliveryFuture] = []
        heir = change_leader(
            cluster, topic, lambda: sendings.append(producer.send(topic, b"second", b"k"))
        )
        place = str(sendings[0].result(SLOW_S).message_id)

    def is_told() -> bool:
        return {"leader_changed", "replicated"} <= set(names(story(cluster, place)))

    wait_until(is_told, "all of it is told", SLOW_S)
    found = story(cluster, place)
    # Steps that were on their way to the broker that was killed are lost; what is there is right.
    reconstructed = [each for each in found["events"] if each["source"] in ("record", "audit")]
    assert [each["event"] for each in reconstructed if each["event"] != "created"] in (
        ["appended", "leader_changed", "replicated"],
        ["appended", "replicated", "leader_changed"],
    )
    told = names(found)
    assert told[0] == "created"
    for before, after in (("sent", "appended"), ("sent", "retried"), ("appended", "acknowledged")):
        if before in told and after in told:
            assert told.index(before) < told.index(after)
    by_name = {each["event"]: each for each in found["events"]}
    assert by_name["appended"]["within_ms"] is None, "the leader that took it is gone"
    assert by_name["leader_changed"]["host"] == f"broker-{heir}"
    epochs = by_name["leader_changed"]["details"]
    assert epochs["leader_epoch_before"] < epochs["leader_epoch"]


PIPELINE = """\
name: copy
sources: {{orders: {{topic: {topic}, format: raw}}}}
sinks: {{table: {{lake: {lake}}}}}
"""


#: Written by our producer and by librdkafka, while leaders change.
FAILING = (b"ours", b"stock")


def handle_by_attempts(cluster: HeadwaterCluster, topic: str) -> None:
    """The group billing: these records fail twice, and are handled the third time."""
    handled = threading.Event()
    attempts: dict[bytes, int] = {}

    def handler(record: headwater.ConsumerRecord) -> None:
        value = bytes(record.value or b"")
        attempts[value] = attempts.get(value, 0) + 1
        if value in FAILING and attempts[value] < 3:
            raise ValueError("no such currency")
        if all(attempts.get(each, 0) >= 3 for each in FAILING):
            handled.set()

    worker = Worker(
        [topic],
        group="billing",
        handler=handler,
        config={"bootstrap.servers": cluster.bootstrap, "trace.enable": True},
        retry=RetryPolicy(delays=["1s", "2s"]),
        create_topics=True,
        commit_interval=0.05,
    )
    running = threading.Thread(target=lambda: worker.run(handle_signals=False))
    running.start()
    try:
        assert handled.wait(SLOW_S * 2)
    finally:
        worker.stop()
        running.join()


def handle_at_once(cluster: HeadwaterCluster, topic: str, count: int) -> None:
    """The group mails."""
    with headwater.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "mails",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "trace.enable": True,
        }
    ) as reading:
        reading.subscribe([topic])
        while count:
            for record in reading.poll(1.0):
                with reading.handling(record):
                    count -= 1
        reading.commit()


def copy_to_a_lake(cluster: HeadwaterCluster, topic: str, directory: Path) -> None:
    """A pipeline, whose progress is the group copy."""
    file = directory / "copy.yaml"
    file.write_text(PIPELINE.format(topic=topic, lake=directory / "lake"))
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "headwater", "pipeline", "run", str(file), "--once"),
            *("--bootstrap-server", cluster.bootstrap, "--state-dir", str(directory / "state")),
            *("--master", "local[1]"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


#: What brokers and records tell of three attempts, by group.
BILLING = ["sent_on", "passed", "delivered", "sent_on", "passed", "delivered", "passed"]
RECONSTRUCTED = {"billing": BILLING, "mails": ["passed"], "copy": ["passed"]}
#: What workers and consumers write, if the record is traced.
BILLING_STEPS = ["fetched", "not_handled", "committed"] * 2 + ["fetched", "handled", "committed"]
WRITTEN = {"billing": BILLING_STEPS, "mails": ["fetched", "handled", "committed"]}


SENDING = ("sent", "retried", "acknowledged")


def by_group(found: dict[str, Any], sources: tuple[str, ...]) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for each in found["events"]:
        if each["source"] in sources and each["group"] is not None:
            told.setdefault(each["group"], []).append(each["event"])
    return told


def test_three_attempts_a_leader_change_two_groups_and_a_pipeline(
    cluster: HeadwaterCluster, tmp_path: Path
) -> None:
    topic = cluster.create_topic("orders", 1)
    cluster.wait_in_sync(topic, 0, 3)
    common = {"bootstrap.servers": cluster.bootstrap, "request.timeout.ms": 2_000}
    config: dict[str, object] = {**common, "trace.enable": True, "trace.sample": 1.0}
    stock = ConfluentProducer({**common, "enable.idempotence": True})
    places: list[str] = []
    with headwater.Producer(config) as producer:
        first = producer.send(topic, b"first", b"k").result(SLOW_S).message_id
        wait_until(lambda: "replicated" in names(story(cluster, str(first))), "it is told", SLOW_S)
        sendings: list[headwater.DeliveryFuture] = []

        def send() -> None:
            sendings.append(producer.send(topic, b"ours", b"k"))

        heir = change_leader(cluster, topic, send)
        places.append(str(sendings[0].result(SLOW_S).message_id))
        cluster.wait_in_sync(topic, 0, 3)
        stock.produce(topic, b"nothing special", b"k")
        assert stock.flush(SLOW_S) == 0  # It knows who leads.

        def send_by_librdkafka() -> None:
            stock.produce(
                topic,
                b"stock",
                b"k",
                on_delivery=lambda _, told: places.append(f"{topic}-0@{told.offset()}"),
            )

        heirs = [heir, change_leader(cluster, topic, send_by_librdkafka)]
        assert stock.flush(SLOW_S) == 0
        cluster.wait_in_sync(topic, 0, 3)
    handle_by_attempts(cluster, topic)
    handle_at_once(cluster, topic, 4)
    copy_to_a_lake(cluster, topic, tmp_path)
    for place, heir, is_ours in zip(places, heirs, (True, False), strict=True):

        def is_told(place: str = place) -> bool:
            found = story(cluster, place)
            return by_group(found, ("audit", "headers")).keys() >= RECONSTRUCTED.keys()

        wait_until(is_told, "all of it is told", SLOW_S)
        found = story(cluster, place)
        told = names(found)
        assert told[0] == "created"
        assert found["clocks"] == [], json.dumps(found["events"])
        changed = next(each for each in found["events"] if each["event"] == "leader_changed")
        # The first one may not have got to publish before it was ended too.
        assert changed["host"] in {f"broker-{heir}", f"broker-{heirs[-1]}"}
        assert {"appended", "replicated"} <= set(told)
        assert by_group(found, ("audit", "headers")) == RECONSTRUCTED
        if is_ours:
            assert by_group(found, ("written",)) == WRITTEN
            # Steps that were on their way to the broker that was killed are lost.
            sending = [each for each in told[: told.index("fetched")] if each in SENDING]
            assert sending == sorted(sending, key=SENDING.index)
            assert sending[-1] == "acknowledged"
        retries = [wait["text"] for wait in found["waits"] if wait["wait"] == "retry"]
        assert retries == ["retry 1 after 1 s", "retry 2 after 2 s"]
