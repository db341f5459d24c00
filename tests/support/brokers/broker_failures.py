"""The ways in which brokers fail, as Apache Kafka's own replication tests have them.

A shutdown leaves the broker down; a bounce ends it and starts it again, several times, each time
the one that leads or is the controller by then. Clean is SIGTERM, hard is kill -9.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from tests.support.brokers.three_brokers import Node, ThreeBrokers
from tests.support.tiers import rounds

BOUNCE_COUNT = rounds(1, 3)


class Victim(StrEnum):
    LEADER = "leader"
    CONTROLLER = "controller"


def victim_node(cluster: ThreeBrokers, topic: str, victim: Victim) -> Node:
    """The node in question now; the leader is that of the topic's first partition."""
    if victim is Victim.CONTROLLER:
        return cluster.controller_node()
    leader = cluster.wait_for_leader(topic, 0, cluster.nodes)
    return cluster.nodes[leader]


def stop_cleanly(node: Node) -> None:
    """It ends as it should, and says so where it has an exit code to tell."""
    assert node.stop() in (None, 0)


def clean_shutdown(cluster: ThreeBrokers, topic: str, victim: Victim) -> None:
    stop_cleanly(victim_node(cluster, topic, victim))


def hard_shutdown(cluster: ThreeBrokers, topic: str, victim: Victim) -> None:
    victim_node(cluster, topic, victim).kill()


def clean_bounce(cluster: ThreeBrokers, topic: str, victim: Victim) -> None:
    for _ in range(BOUNCE_COUNT):
        node = victim_node(cluster, topic, victim)
        stop_cleanly(node)
        node.start()


def hard_bounce(cluster: ThreeBrokers, topic: str, victim: Victim) -> None:
    """The next is killed as soon as the last is in sync again: two replicas must be left."""
    for _ in range(BOUNCE_COUNT):
        node = victim_node(cluster, topic, victim)
        node.kill()
        node.start()
        for number in range(3):
            cluster.wait_in_sync(topic, number, 3)


Failure = Callable[[ThreeBrokers, str, Victim], None]
FAILURES: dict[str, Failure] = {
    each.__name__: each for each in (clean_shutdown, hard_shutdown, clean_bounce, hard_bounce)
}
