"""Exactly-once copies while leaders, coordinators and the controller are killed under them."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.brokers.three_brokers import Node, ThreeBrokers
from tests.support.traffic.cluster_copies import (
    PARTITION_COUNT,
    ClusterCopy,
    JavaCopier,
    wait_for_copies,
)

pytestmark = pytest.mark.full

CLIENTS = ("own-client", "confluent-kafka", "kafka-python", "aiokafka")
#: Enough for a copy that takes some seconds.
JAVA_RECORD_COUNT = 30_000
#: Copiers that lost a broker in the midst of a transaction wait for it to time out.
FINISH_TIMEOUT_S = 120.0


def node_of(cluster: ThreeBrokers, copy: ClusterCopy, role: str) -> Node:
    """Who plays a part in the copy just now."""
    match role:
        case "leader":
            return cluster.nodes[cluster.wait_for_leader(copy.target, 0, cluster.nodes)]
        case "group coordinator":
            return cluster.nodes[cluster.coordinator_of_group(copy.group)]
        case "transaction coordinator":
            return cluster.nodes[cluster.coordinator_of_transactions(copy.identities[0])]
        case _:
            return cluster.controller_node()


def restore(cluster: ThreeBrokers) -> None:
    """All brokers run, and the coordinators' topics could lose one again."""
    cluster.heal()
    for topic in ("__consumer_offsets", "__transaction_state"):
        for number in range(2):
            cluster.wait_in_sync(topic, number, 3)


def test_each_record_once(cluster: ThreeBrokers, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    copies = [ClusterCopy(client, cluster, f"copy-{client}") for client in CLIENTS]
    roles = ["leader", "transaction coordinator", "group coordinator", "controller", "client"]
    with ExitStack() as stack:
        copiers = [stack.enter_context(each) for copy in copies for each in copy.copiers(tmp_path)]
        for role in roles:
            for copy in copies:
                copy.write()
            wait_for_copies(copies, copiers, 0.5, FINISH_TIMEOUT_S)
            # At any moment of a transaction.
            time.sleep(chance.uniform(0, 0.2))
            if role == "client":
                chance.choice(copiers).kill()
                continue
            node = node_of(cluster, chance.choice(copies), role)
            node.kill()
            wait_for_copies(copies, copiers, 0.8, FINISH_TIMEOUT_S)
            restore(cluster)
        wait_for_copies(copies, copiers, 1.0, FINISH_TIMEOUT_S)
    assert [fault for copy in copies for fault in copy.faults()] == []


@pytest.mark.kafka
def test_apaches_own_copier(cluster: ThreeBrokers, tmp_path: Path) -> None:
    copy = ClusterCopy("java", cluster, "copy-java", mark=b"")
    copy.write(JAVA_RECORD_COUNT)
    with ExitStack() as stack:
        copiers = [
            stack.enter_context(
                JavaCopier(cluster.bootstrap, copy, number, identity, tmp_path / f"{identity}.txt")
            )
            for number, identity in zip(range(PARTITION_COUNT), copy.identities, strict=True)
        ]
        for share, role in ((0.05, "leader"), (0.3, "transaction coordinator")):
            wait_for_copies([copy], copiers, share, FINISH_TIMEOUT_S)
            node_of(cluster, copy, role).kill()
            wait_for_copies([copy], copiers, share + 0.2, FINISH_TIMEOUT_S)
            restore(cluster)
        wait_for_copies([copy], copiers, 1.0, FINISH_TIMEOUT_S)
    assert copy.faults() == []
