"""Nothing that was acknowledged is lost, whoever fails in whatever order; see the campaign."""

from __future__ import annotations

import pytest

from headwater.replication import fetch
from headwater.replication.following import plan as follower_plan
from headwater.sim.campaigns.replicas import ReplicaCampaign
from headwater.storage.partition_log import PartitionLog
from headwater.storage.truncation import truncate_to
from tests.support.tiers import rounds

SEEDS = rounds(100, 3_000)
STEPS = 150


@pytest.mark.parametrize("first_seed", range(0, SEEDS, 50))
def test_replicas_agree_and_keep_what_was_acknowledged(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        ReplicaCampaign(seed).run(STEPS)


def _found(seed_count: int) -> bool:
    for seed in range(seed_count):
        try:
            ReplicaCampaign(seed).run(STEPS)
        except AssertionError:
            return True
    return False


def _by_high_watermark(log: PartitionLog, now_ms: int) -> None:
    truncate_to(log, log.high_watermark, now_ms)


def test_the_campaign_notices_truncation_to_the_high_watermark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower_plan, "begin_following", _by_high_watermark)
    assert _found(20)


def test_the_campaign_notices_a_leader_that_does_not_compare_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch, "find_divergence", lambda _partition, _target: None)
    assert _found(20)
