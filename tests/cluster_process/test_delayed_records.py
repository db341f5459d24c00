"""Delayed records in a cluster of processes: each comes once and none early, whoever is killed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.tiers import rounds
from tests.support.traffic.delayed_storm import DelayedStorm


@pytest.fixture
def running(cluster_of_kind: Callable[[str], ThreeBrokers]) -> ThreeBrokers:
    """Apache Kafka has no delays."""
    return cluster_of_kind("headwater")


def test_kills_in_the_midst_of_the_hand_over(
    cluster: HeadwaterCluster, new_topic: Callable[..., str]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    topic = new_topic(delay_mode="header")
    kills = rounds(small=3, full=12)
    figures = DelayedStorm(cluster, topic, seed).run(kills, rounds(small=2_000, full=6_000))
    print(figures)
    # That each came once and none early, the storm has found out.
    assert figures.kill_count == kills
