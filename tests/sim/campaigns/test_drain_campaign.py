"""A broker is emptied while brokers crash; then it holds nothing, or a planted bug is found."""

from collections.abc import Collection

import pytest

from headwater.cluster.image.image import PartitionImage
from headwater.cluster.reassignment import changes, steps
from headwater.sim.campaigns.drains import DrainCampaign
from tests.support.tiers import rounds


def test_an_emptied_broker_holds_nothing_whatever_happens() -> None:
    seeds = range(rounds(small=4, full=100))
    acknowledged_count = 0
    for seed in seeds:
        campaign = DrainCampaign(seed)
        campaign.run(event_count=4)
        acknowledged_count += campaign.world.history.acknowledged_count
    # Far more is written while they do.
    assert acknowledged_count > 20 * len(seeds)


def keep_who_was_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move ends with all the replicas that it had on its way."""
    next_state = steps.next_state

    def with_all(
        partition: PartitionImage,
        live: Collection[int],
        electable: Collection[int],
        min_isr: int,
    ) -> PartitionImage | None:
        state = next_state(partition, live, electable, min_isr)
        if state is None or state.is_moving:
            return state
        return state._replace(replicas=partition.replicas, isr=partition.isr)

    monkeypatch.setattr(changes, "next_state", with_all)


def test_the_campaign_finds_who_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_who_was_to_leave(monkeypatch)
    monkeypatch.setattr("headwater.sim.campaigns.drains.HEALED_TIME_MAX_S", 20.0)
    with pytest.raises(AssertionError, match="an emptied broker holds nothing"):
        for seed in range(20):
            DrainCampaign(seed).run(event_count=4)
