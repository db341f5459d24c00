"""Transactions, failing writes and power losses against a model, over many seeds."""

import pytest

from tests.support.tiers import rounds
from tests.support.transaction_campaign import TransactionCampaign


@pytest.mark.parametrize("group", range(4))
def test_transactions_equal_the_model_through_crashes(group: int) -> None:
    seeds_per_group = rounds(small=25, full=1_000)
    crash_count = 0
    for seed in range(group * seeds_per_group, (group + 1) * seeds_per_group):
        campaign = TransactionCampaign(seed)
        campaign.run(80)
        crash_count += campaign.crash_count
    assert crash_count > seeds_per_group
