"""Members leave a consumer group, or are fenced from it.

With the last member of the consumer protocol the group may go back to the classic one, if all that
are left speak that.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.coordinator.group.consumer.assigning.rebalance import ConsumerRebalance
from headwater.coordinator.group.consumer.draft import GroupDraft
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.group.consumer.member import ConsumerMember
from headwater.coordinator.group.migration.migration import Migration
from headwater.coordinator.stored_record import StoredRecord


class ConsumerDeparture:
    def __init__(self, rebalance: ConsumerRebalance, migration: Migration) -> None:
        self._rebalance = rebalance
        self._migration = migration

    def remove(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], now_ms: int
    ) -> list[StoredRecord]:
        """What has to be written for the members to be gone."""
        if not members:
            return []
        draft = GroupDraft(group)
        self._rebalance.remove(draft, members)
        may_downgrade = any(member.classic is None for member in members)
        # A classic group goes on in the generation that its members know, and rebalances.
        if not (may_downgrade and self._migration.downgrade_if_all_classic(draft, now_ms)):
            self._rebalance.share_anew(draft, now_ms)
        return draft.records
