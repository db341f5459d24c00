"""Kills, restarts and rebalances lose and double nothing, and the audit shows nothing wrong.

Three broker processes; the producer is idempotent, and two groups commit what they have read. A
million records in the full tier.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import Consumer, Producer
from headwater.base.errors import KafkaError
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import SLOW_S
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.command import run_command
from tests.support.tiers import rounds
from tests.support.traffic.killer import Killer

SETTINGS = {
    "audit.bucket.ms": "1000",
    "audit.topic.num.partitions": "2",
}
PARTITION_COUNT = 4
RECORD_COUNT = rounds(small=20_000, full=1_000_000)
KILL_COUNT = rounds(small=2, full=6)
GROUPS = ("billing", "mails")
#: A member reads so many polls, leaves, and another one joins.
POLLS_PER_MEMBER = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[HeadwaterCluster]:
    address = shared_zookeeper().address + fresh_chroot()
    with HeadwaterCluster(tmp_path, address, settings=SETTINGS) as running:
        yield running


def audit(cluster: HeadwaterCluster, topic: str) -> dict[str, Any]:
    finished = run_command("audit", "topic", topic, "--json", "-b", cluster.bootstrap)
    assert finished.exit_code in (0, 3), finished.stderr
    found = json.loads(finished.stdout)
    assert isinstance(found, dict)
    return found


def read_in_turns(
    cluster: HeadwaterCluster, topic: str, group: str, is_over: threading.Event
) -> None:
    """Members that join, read for a while, commit, and leave."""
    while not is_over.is_set():
        with Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as member:
            member.subscribe([topic])
            for _ in range(POLLS_PER_MEMBER):
                if is_over.is_set():
                    return
                if member.poll(0.2):
                    # Who has lost its partitions meanwhile has read for nothing: others read it.
                    with contextlib.suppress(KafkaError):
                        member.commit()


def test_nothing_is_wrong_where_there_was_no_fault(cluster: HeadwaterCluster) -> None:
    topic = cluster.create_topic("orders", PARTITION_COUNT)
    for partition in range(PARTITION_COUNT):
        cluster.wait_in_sync(topic, partition, 3)
    is_over = threading.Event()
    members = [
        threading.Thread(target=read_in_turns, args=(cluster, topic, group, is_over))
        for group in GROUPS
        for _ in range(2)
    ]
    for member in members:
        member.start()
    try:
        with Producer(
            bootstrap_servers=cluster.bootstrap, delivery_timeout_ms=300_000, linger_ms=5
        ) as producer:
            with Killer(cluster, seed=1) as killer:
                for number in range(RECORD_COUNT):
                    producer.send(topic, b"%d" % number)
                    if number % (RECORD_COUNT // KILL_COUNT) == 0:
                        killer.wait_for(number * KILL_COUNT // RECORD_COUNT)
                producer.flush()
                killer.wait_for(KILL_COUNT)
            restarted = cluster.nodes[cluster.leader_of(topic, 0)]
            restarted.stop()
            restarted.start()
        cluster.heal()

        def told() -> list[int]:
            found = audit(cluster, topic)
            outs = {each["group"]: each["out_count"] for each in found["groups"]}
            return [found["count"], *(outs.get(group, 0) for group in GROUPS)]

        wanted = [RECORD_COUNT] * 3
        wait_until(lambda: told() == wanted, "all is counted and read", SLOW_S * 3)
    finally:
        is_over.set()
        for member in members:
            member.join()
    found = audit(cluster, topic)
    assert found["alarms"] == []
    assert found["stored_count"] == found["count"] == RECORD_COUNT
    assert (found["lost_count"], found["aborted_count"], found["uncounted_offsets"]) == (0, 0, 0)
    for group in found["groups"]:
        wrong = ("behind_count", "missing_count", "doubled_count", "went_back_count")
        assert {name: group[name] for name in wrong} == dict.fromkeys(wrong, 0)
        assert group["without_member_count"] == 0
