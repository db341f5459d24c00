import pytest

from headwater.sim.campaigns.cluster import ClusterCampaign
from tests.support.tiers import rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=4)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cluster_keeps_its_promises_whatever_happens(part: int) -> None:
    crash_count = acknowledged_count = leader_count = expired_count = 0
    event_counts: dict[str, int] = {}
    for seed in range(part, rounds(small=48, full=600), PARTS):
        campaign = ClusterCampaign(seed)
        campaign.run(event_count=5)
        crash_count += campaign.crash_count
        acknowledged_count += campaign.world.history.acknowledged_count
        leader_count += campaign.world.observer.leaders.count
        expired_count += campaign.world.store.expired_count
        for name, count in campaign.trouble.counts.items():
            event_counts[name] = event_counts.get(name, 0) + count
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 25
    assert acknowledged_count > 2_000
    assert leader_count > 75
    assert expired_count > 60
    assert len(event_counts) >= 11


def test_long_trouble_is_survived_too() -> None:
    for seed in range(100_000, 100_000 + rounds(small=3, full=16)):
        campaign = ClusterCampaign(seed)
        campaign.run(event_count=40)
        assert campaign.world.history.acknowledged_count > 0
