from headwater.sim.campaigns.client import ClientCampaign
from headwater.sim.histories.transaction_history import Ending
from tests.support.tiers import rounds


def test_our_own_client_copies_everything_once_whatever_happens() -> None:
    broker_crash_count = client_crash_count = 0
    endings = dict.fromkeys(Ending, 0)
    for seed in range(rounds(small=8, full=80)):
        campaign = ClientCampaign(seed)
        campaign.run()
        broker_crash_count += campaign.crash_count
        client_crash_count += campaign.client_crash_count
        for ending in Ending:
            endings[ending] += campaign.transactions.count(ending)
    # The campaign would prove little without all of these, of which there are far more.
    assert broker_crash_count > 30
    assert client_crash_count > 5
    assert endings[Ending.COMMITTED] > 20
    assert endings[Ending.ABORTED] > 5
