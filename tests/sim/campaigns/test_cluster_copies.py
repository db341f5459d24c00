import pytest

from headwater.sim.campaigns.cluster_copies import ClusterCopyCampaign
from headwater.sim.histories.transaction_history import Ending
from tests.support.tiers import rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=2)


@pytest.mark.parametrize("part", range(PARTS))
def test_everything_is_copied_once_while_coordinators_move(part: int) -> None:
    crash_count = committed_count = 0
    for seed in range(part, rounds(small=8, full=50), PARTS):
        campaign = ClusterCopyCampaign(seed)
        campaign.run(event_count=12)
        crash_count += campaign.cluster.crash_count
        committed_count += campaign.transactions.count(Ending.COMMITTED)
    # The campaign would prove little without these, of which there are far more.
    assert crash_count > 3
    assert committed_count > 20
