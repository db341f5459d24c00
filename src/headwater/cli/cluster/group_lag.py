"""Which consumer groups are furthest behind."""

from __future__ import annotations

from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.admin import GroupOffsetOperations, GroupOperations, OffsetOperations
from headwater.client.admin.offsets import OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection

#: A cluster may have many more; those that are looked at are the first by name.
GROUPS_ASKED_MAX: Final = 200
WORST_COUNT: Final = 5


class GroupLag(NamedTuple):
    """How many records a group has yet to read, and where most of them are."""

    group_id: str
    state: str
    lag: int
    partition_count: int


class GroupLags(NamedTuple):
    """The worst groups, the worst first, of so many that there are."""

    worst: list[GroupLag]
    asked_count: int
    group_count: int


async def find_worst_groups(connection: ClusterConnection) -> GroupLags:
    """Those with the largest lag; groups that are not consumers' have no offsets and no lag."""
    groups = await GroupOperations(connection).list_groups()
    asked = {group.group_id: group for group in groups[:GROUPS_ASKED_MAX]}
    outcomes = await GroupOffsetOperations(connection).list_group_offsets(list(asked))
    committed = {
        group_id: offsets
        for group_id, offsets in outcomes.items()
        if not isinstance(offsets, KafkaError)
    }
    partitions = sorted({key for offsets in committed.values() for key in offsets})
    ends = await OffsetOperations(connection).list_offsets(
        dict.fromkeys(partitions, OffsetTime.LATEST)
    )
    lags = []
    for group_id, offsets in committed.items():
        behind = {}
        for key, offset in offsets.items():
            end = ends[key]
            # Offsets may outlive their topic; such a partition has no end.
            if not isinstance(end, KafkaError):
                behind[key] = max(0, end.offset - offset.offset)
        if any(behind.values()):
            count = sum(1 for lag in behind.values() if lag)
            lags.append(GroupLag(group_id, asked[group_id].state, sum(behind.values()), count))
    lags.sort(key=lambda each: (-each.lag, each.group_id))
    return GroupLags(lags[:WORST_COUNT], len(asked), len(groups))
