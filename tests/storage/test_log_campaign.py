"""The log against its model, over many seeds, crashes included."""

import pytest

from headwater.sim.campaigns.log import LogCampaign, run_with_failing_disk
from tests.support.tiers import rounds


@pytest.mark.parametrize("group", range(8))
def test_log_equals_model_through_crashes(group: int) -> None:
    seeds_per_group = rounds(small=25, full=200)
    crash_count = 0
    for seed in range(group * seeds_per_group, (group + 1) * seeds_per_group):
        campaign = LogCampaign(seed)
        campaign.run(60)
        crash_count += campaign.crash_count
    assert crash_count > seeds_per_group  # The campaign would prove little without crashes.


def test_a_full_disk_refuses_appends_and_loses_nothing() -> None:
    for seed in range(rounds(small=40, full=200)):
        campaign = LogCampaign(seed)
        campaign.run(15)
        run_with_failing_disk(campaign)
        assert campaign.log.failure is None
