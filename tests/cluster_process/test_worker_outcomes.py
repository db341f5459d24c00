"""Workers in a cluster of processes: each record has one outcome, whoever is killed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.tiers import rounds
from tests.support.traffic.worker_storm import WorkerStorm


@pytest.fixture
def running(cluster_of_kind: Callable[[str], ThreeBrokers]) -> ThreeBrokers:
    """Apache Kafka has no retry topics."""
    return cluster_of_kind("headwater")


def test_kills_of_workers_and_brokers(cluster: HeadwaterCluster, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    worker_count = rounds(small=2, full=3)
    storm = WorkerStorm(cluster, f"storm-{seed}", tmp_path / "runs", seed, worker_count)
    kills = rounds(small=2, full=12)
    figures = storm.run(kills, rounds(small=200, full=6_000))
    print(figures)
    # That each has one outcome the storm has found out.
    assert figures.kill_count == kills
    assert figures.run_count >= figures.record_count
    assert figures.shown_count > 0
    assert figures.dead_count > 0
    cluster.delete_topics([storm.topic, storm.retry, storm.dead])
