from headwater.sim.campaigns.broker import BrokerCampaign
from tests.support.tiers import rounds


def test_the_broker_keeps_its_promises_whatever_happens() -> None:
    crash_count = acknowledged_count = 0
    for seed in range(rounds(small=12, full=150)):
        campaign = BrokerCampaign(seed)
        campaign.run()
        crash_count += campaign.crash_count
        acknowledged_count += campaign.world.history.acknowledged_count
    # The campaign would prove little without these.
    assert crash_count > 80
    assert acknowledged_count > 1000
