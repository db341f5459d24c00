"""Partitions move between brokers in trouble, and nothing that was promised is broken."""

from headwater.sim.campaigns.reassignments import ReassignmentCampaign
from tests.support.tiers import rounds


def test_moves_keep_every_promise_whatever_happens() -> None:
    begun_count = cancelled_count = throttled_count = acknowledged_count = 0
    for seed in range(rounds(small=8, full=200)):
        campaign = ReassignmentCampaign(seed)
        campaign.run(event_count=5)
        begun_count += campaign.operator.begun_count
        cancelled_count += campaign.operator.cancelled_count
        throttled_count += campaign.operator.throttled_count
        acknowledged_count += campaign.world.history.acknowledged_count
    # The campaign would prove little without all of these, of which there are far more.
    assert begun_count > 30
    assert cancelled_count > 5
    assert throttled_count > 10
    assert acknowledged_count > 500


def test_long_trouble_is_survived_too() -> None:
    for seed in range(200_000, 200_000 + rounds(small=1, full=12)):
        campaign = ReassignmentCampaign(seed)
        campaign.run(event_count=40)
        assert campaign.operator.begun_count > 0
