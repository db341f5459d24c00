"""Transactions, failing writes and power losses against a model, over many seeds."""

import pytest

from headwater.sim.campaigns.transactions import TransactionCampaign
from headwater.storage.indexes.transaction_index import TransactionIndex
from tests.support.tiers import rounds


@pytest.mark.parametrize("group", range(4))
def test_transactions_equal_the_model_through_crashes(group: int) -> None:
    seeds_per_group = rounds(small=25, full=400)
    crash_count = 0
    for seed in range(group * seeds_per_group, (group + 1) * seeds_per_group):
        campaign = TransactionCampaign(seed)
        campaign.run(80)
        crash_count += campaign.crash_count
    assert crash_count > seeds_per_group


def _keep_all(_index: TransactionIndex) -> None:
    """Recovery trusts what a crash has left of the index."""


def _cut_nothing(_index: TransactionIndex, _offset: int) -> None:
    """Truncation leaves the aborts of what it removes."""


@pytest.mark.parametrize(
    ("method", "planted"), [("reset", _keep_all), ("truncate_to", _cut_nothing)]
)
def test_a_stale_transaction_index_is_caught(
    method: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransactionIndex, method, planted)
    with pytest.raises(AssertionError, match=r"^seed "):
        for seed in range(100):
            TransactionCampaign(seed).run(80)
