"""A group's members keep to their promises in random trouble; see the campaign."""

from __future__ import annotations

import pytest

from tests.support.tiers import rounds
from tests.support.worlds.membership_campaign import KINDS, MembershipCampaign


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_shares_a_partition_and_all_ends_well(kind: str) -> None:
    for seed in range(rounds(2, 40)):
        MembershipCampaign(kind, seed).run()
