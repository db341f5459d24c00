"""Cooperative-sticky: sticky for members that keep their partitions while they join again.

Only what really moves is interrupted. A partition that is to move has an owner, who goes on with it
until he hears of the assignment; so it is given to nobody at first. Its owner lets go of it and
joins again, and the rebalance that this causes gives it to the one for whom it was meant.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from headwater.client.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
    PlainAssignor,
    RebalanceProtocol,
    Subscriptions,
    as_assignments,
)
from headwater.client.assignors.claims import NO_GENERATION, Claim, settle_claims
from headwater.client.assignors.sticky_dealing import StickyDealing

_GENERATION: Final = struct.Struct(">i")


class CooperativeStickyAssignor(PlainAssignor):
    name = "cooperative-sticky"
    protocol = RebalanceProtocol.COOPERATIVE

    def __init__(self) -> None:
        self._generation_id = NO_GENERATION

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        # Members that read no newer subscription than the second find the generation here.
        return _GENERATION.pack(self._generation_id)

    def on_assignment(self, assignment: MemberAssignment, generation_id: int) -> None:
        self._generation_id = generation_id

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        owned = settle_claims(
            {
                member_id: Claim(subscription.owned, _generation_of(subscription))
                for member_id, subscription in subscriptions.items()
            }
        )
        dealt = StickyDealing(partition_counts, subscriptions, owned).deal()
        holders = Counter(
            partition for wanted in subscriptions.values() for partition in wanted.owned
        )
        return as_assignments(
            {
                member_id: [
                    partition
                    for partition in partitions
                    if holders[partition] == (partition in subscriptions[member_id].owned)
                ]
                for member_id, partitions in dealt.items()
            }
        )


def _generation_of(subscription: MemberSubscription) -> int:
    told = subscription.user_data
    if subscription.generation_id != NO_GENERATION or told is None or len(told) < _GENERATION.size:
        return subscription.generation_id
    return int(_GENERATION.unpack_from(told)[0])
