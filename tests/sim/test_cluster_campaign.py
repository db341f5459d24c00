import pytest

from tests.support.cluster_campaign import ClusterCampaign
from tests.support.hash_seeds import hashes_in_processes
from tests.support.tiers import rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_a_cluster_keeps_its_promises_whatever_happens(part: int) -> None:
    crash_count = acknowledged_count = leader_count = expired_count = 0
    event_counts: dict[str, int] = {}
    for seed in range(part, rounds(small=200, full=2000), PARTS):
        campaign = ClusterCampaign(seed)
        campaign.run(event_count=5)
        crash_count += campaign.crash_count
        acknowledged_count += campaign.world.history.acknowledged_count
        leader_count += campaign.world.observer.leaders.count
        expired_count += campaign.world.store.expired_count
        for name, count in campaign.trouble.counts.items():
            event_counts[name] = event_counts.get(name, 0) + count
    # The campaign would prove little without all of these.
    assert crash_count > 25
    assert acknowledged_count > 2_000
    assert leader_count > 75
    assert expired_count > 25
    assert len(event_counts) >= 11


def test_long_trouble_is_survived_too() -> None:
    for seed in range(100_000, 100_000 + rounds(small=3, full=60)):
        campaign = ClusterCampaign(seed)
        campaign.run(event_count=40)
        assert campaign.world.history.acknowledged_count > 0


def test_a_seed_is_the_same_in_another_process() -> None:
    seeds = rounds(small=3, full=50)
    one, other = hashes_in_processes("cluster_campaign", "ClusterCampaign", seeds)
    assert one == other and len(one) == seeds
