"""Delayed deliveries on a cluster in trouble."""

import pytest

from headwater.sim.campaigns.delays.campaign import DelayCampaign
from tests.support.tiers import rounds

#: The seeds are run in so many parts, which may run at the same time.
PARTS = rounds(small=1, full=4)


@pytest.mark.parametrize("part", range(PARTS))
def test_delayed_messages_come_once_and_in_time_whatever_happens(part: int) -> None:
    crash_count = delivered_count = cancelled_count = change_count = state_count = 0
    rolled_count = deleted_count = 0
    event_counts: dict[str, int] = {}
    for seed in range(part, rounds(small=5, full=300), PARTS):
        campaign = DelayCampaign(seed)
        campaign.run(event_count=6)
        crash_count += campaign.crash_count
        delivered_count += campaign.delivered_count
        cancelled_count += campaign.cancelled_count
        rolled_count += campaign.rolled_count
        deleted_count += campaign.deleted_count
        change_count += campaign.change_count
        state_count += campaign.state_count
        for name, count in campaign.trouble.counts.items():
            event_counts[name] = event_counts.get(name, 0) + count
    # The campaign would prove little without all of these, of which there are far more.
    assert crash_count > 4
    assert delivered_count > 60
    assert cancelled_count > 8
    assert change_count > 8
    assert rolled_count > 0
    assert deleted_count > 0
    assert state_count > 25
    assert len(event_counts) >= 7
