"""Who owned what before a rebalance, where members contradict each other about it.

A member that was cut off for a while may claim partitions that others were given since. The claim
of the later generation holds. If two members claim a partition in the same generation, neither can
be believed, and it counts as nobody's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from headwater.base.ids import TopicPartition

NO_GENERATION: Final = -1


class Claim(NamedTuple):
    """What a member says that it had, and in which generation of the group."""

    partitions: Collection[TopicPartition] = ()
    generation_id: int = NO_GENERATION


def settle_claims(claims: Mapping[str, Claim]) -> dict[str, set[TopicPartition]]:
    """What each member really had."""
    latest: dict[TopicPartition, int] = {}
    owners: dict[TopicPartition, str | None] = {}
    for member_id, (partitions, generation_id) in claims.items():
        for partition in set(partitions):
            known = latest.get(partition)
            if known is None or generation_id > known:
                latest[partition] = generation_id
                owners[partition] = member_id
            elif generation_id == known:
                owners[partition] = None
    owned: dict[str, set[TopicPartition]] = {member_id: set() for member_id in claims}
    for partition, owner in owners.items():
        if owner is not None:
            owned[owner].add(partition)
    return owned
