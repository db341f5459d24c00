"""The trace of a record whose leader is killed between its append and its acknowledgement."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
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
        leader = cluster.leader_of(topic, 0)
        heir, silent = cluster.others(leader)
        log = cluster.data_dir(heir) / f"{topic}-0" / "00000000000000000000.log"
        size_bytes = log.stat().st_size
        with cluster.paused(cluster.nodes[silent]):
            # It waits for the one who is silent; the other has it, and leads next.
            sending = producer.send(topic, b"second", b"k")
            wait_until(lambda: log.stat().st_size > size_bytes, "the heir has it", SLOW_S)
            assert not sending.done()
            cluster.nodes[leader].kill()
            with cluster.away([leader]):
                cluster.wait_for_leader(topic, 0, [heir])
        cluster.heal()
        place = str(sending.result(SLOW_S).message_id)

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
