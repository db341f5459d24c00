"""Which brokers get the replicas of a new topic's partitions.

The aim is an even load: leaders, which are the first replicas, and followers shall be spread over
the brokers, and the followers of the partitions that one broker leads over all the others, so that
its load is shared when it fails.

The brokers stand in a circle. Partition 0 begins at a random broker, and each next partition one
broker further: that spreads the leaders. The followers of a partition stand behind its leader, at a
distance, the shift, that is random too and grows by one whenever the partitions have gone round the
circle: so two partitions with the same leader have different followers. With brokers 0 to 4, three
replicas, start 0 and shift 0:

    partition 0: 0 1 2    partition 5: 0 2 3
    partition 1: 1 2 3    partition 6: 1 3 4
    partition 2: 2 3 4    partition 7: 2 4 0
    partition 3: 3 4 0    partition 8: 3 0 1
    partition 4: 4 0 1    partition 9: 4 1 2

If all brokers say in which rack they stand, the circle alternates between the racks, and a
follower's place is passed over while its rack holds a replica of the partition and another rack
holds none.

Partitions that are added to a topic continue where its first partition began.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from headwater.base.checks import check

#: By partition, the brokers; the first one is to lead.
Assignment = list[tuple[int, ...]]


def place_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    generator: random.Random,
) -> Assignment:
    """Place a new topic; `racks` has the live brokers."""
    brokers = _circle(racks)
    start = generator.randrange(len(brokers))
    shift = generator.randrange(len(brokers))
    return _place(racks, brokers, range(partition_count), replication_factor, start, shift)


def place_added_replicas(
    racks: Mapping[int, str | None],
    first_replicas: Sequence[int],
    partitions: range,
    replication_factor: int,
    generator: random.Random,
) -> Assignment:
    """Place more partitions of a topic whose partition 0 is at `first_replicas`."""
    brokers = _circle(racks)
    if first_replicas and first_replicas[0] in racks:
        start = brokers.index(first_replicas[0])
    else:
        start = generator.randrange(len(brokers))
    return _place(racks, brokers, partitions, replication_factor, start, start)


def _place(
    racks: Mapping[int, str | None],
    brokers: list[int],
    partitions: range,
    replication_factor: int,
    start: int,
    shift: int,
) -> Assignment:
    count = len(brokers)
    check(0 < replication_factor <= count, "%d replicas on %d brokers", replication_factor, count)
    rack_count = len(set(racks.values())) if _rack_aware(racks) else 0
    assignment: Assignment = []
    for partition in partitions:
        leader = (start + partition) % count
        followers = _followers(brokers, leader, shift + partition // count)
        chosen = [brokers[leader]]
        while len(chosen) < replication_factor:
            used_racks = {racks[broker] for broker in chosen}
            any_rack = len(used_racks) >= rack_count
            chosen.append(
                next(
                    broker
                    for broker in followers
                    if broker not in chosen and (any_rack or racks[broker] not in used_racks)
                )
            )
        assignment.append(tuple(chosen))
    return assignment


def _followers(brokers: list[int], leader: int, shift: int) -> Iterable[int]:
    """All brokers but the leader, beginning at the shift and going round once."""
    count = len(brokers)
    others = range(count - 1)
    return [brokers[(leader + 1 + (shift + step) % (count - 1)) % count] for step in others]


def _rack_aware(racks: Mapping[int, str | None]) -> bool:
    return None not in racks.values()


def _circle(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers in order, or alternating between the racks if all of them have one."""
    check(racks, "there is no broker to place replicas on")
    if not _rack_aware(racks):
        return sorted(racks)
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(rack or "", []).append(broker)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    deepest = max(len(row) for row in rows)
    return [row[depth] for depth in range(deepest) for row in rows if depth < len(row)]
