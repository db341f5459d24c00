"""Redrives in a cluster of processes: each letter goes back once, whoever is killed."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.brokers.three_brokers import ThreeBrokers
from tests.support.tiers import rounds
from tests.support.traffic.redrive_storm import RedriveStorm


def test_kills_while_letters_go_back(cluster: ThreeBrokers, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    storm = RedriveStorm(cluster, f"storm-{seed}", tmp_path / "told", seed)
    kills = rounds(small=2, full=12)
    figures = storm.run(kills, rounds(small=400, full=2_400))
    print(figures)
    # That each letter is where it belongs, once, the storm has found out.
    assert figures.kill_count == kills
    assert figures.runner_count > 1
    cluster.delete_topics([storm.source, storm.target])
