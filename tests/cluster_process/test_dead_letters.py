"""Dead letters in a cluster of processes: each is in its topic once, whoever is killed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.tiers import rounds
from tests.support.traffic.dead_letter_storm import DeadLetterStorm


@pytest.fixture
def running(cluster_of_kind: Callable[[str], ThreeBrokers]) -> ThreeBrokers:
    """Apache Kafka has no retry topics."""
    return cluster_of_kind("headwater")


def test_kills_while_letters_are_moved(cluster: HeadwaterCluster) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    storm = DeadLetterStorm(cluster, f"storm-{seed}", seed)
    kills = rounds(small=2, full=12)
    figures = storm.run(kills, rounds(small=1_000, full=6_000))
    print(figures)
    # That each is where it belongs, once, the storm has found out.
    assert figures.letter_count > figures.shown_count > 0
    assert figures.kill_count == kills
    cluster.delete_topics([storm.retry_topic, storm.dead_topic])
