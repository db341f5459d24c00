"""How a partition moves to other brokers, one state after the other.

    origin   the replicas that it had, and has again if the move is cancelled
    target   the replicas that it shall have, the preferred leader first
    replicas all of them while it moves: the target first, then whoever is to leave

The move begins by giving the partition all of these replicas, and ends, when the whole target is
alive and in the ISR, by taking away those that are not in it. Who asks for another target meanwhile
turns the move around, and who cancels it turns it back to the origin. Replicas that the old target
had and neither the new one nor the origin has are *given up*: they are in both lists, `adding` and
`removing`, and leave as soon as they can be spared.

A move may have a throttle, for the replicas that are being added. It is part of the partition's
state like they are, may be changed at any time, and ends with the last step.

What keeps records safe:

- Nobody leaves who is needed. For the target to stay behind it must be in sync as a whole. Replicas
  that are given up leave if as many of the others are in sync as `min.insync.replicas` asks for; if
  so few are in sync at all, one of the others must be.
- Nobody is left alone with records that are on no disk. Where one member of the ISR is to stay, it
  first becomes the leader, and then asks itself to be the whole ISR, for which a leader makes
  durable what it has (`replication.leading.in_sync_replicas`). Only then do the others leave.
- Every state is one transaction, so whoever is the controller next finds a move at one of its
  steps, and takes the next one.

Nothing here reads or writes: the functions answer with states of partitions.
"""

from __future__ import annotations

from collections.abc import Collection

from headwater.cluster.image.image import NO_LEADER, PartitionImage
from headwater.cluster.partitions.elections import ReassignPartition


def turned_to(
    partition: PartitionImage, target: tuple[int, ...], throttle: int | None = None
) -> PartitionImage | None:
    """The partition on its way to the target, wherever it was on its way to; None if it was so.

    Without another throttle it keeps the one that it has, for as long as it moves.
    """
    origin = partition.origin
    replicas = tuple(dict.fromkeys((*target, *origin, *partition.replicas)))
    turned = partition._replace(
        replicas=replicas,
        adding=tuple(each for each in replicas if each not in origin),
        removing=tuple(each for each in replicas if each not in target),
    )
    wanted = partition.throttle if throttle is None else throttle
    turned = turned._replace(throttle=wanted if turned.is_moving else 0)
    if turned == partition:
        return None
    return turned._replace(partition_epoch=partition.partition_epoch + 1)


def leaving(partition: PartitionImage, live: Collection[int], min_isr: int) -> frozenset[int]:
    """The replicas whose time to go has come, as far as those who stay are in sync."""
    if has_arrived(partition, live):
        return frozenset(partition.removing)
    given_up = frozenset(partition.adding).intersection(partition.removing)
    in_sync = [each for each in partition.isr if each in live]
    staying_count = sum(each not in given_up for each in in_sync)
    replica_count = len(partition.replicas) - len(given_up)
    if staying_count >= max(1, min(min_isr, len(in_sync), replica_count)):
        return given_up
    return frozenset()


def has_arrived(partition: PartitionImage, live: Collection[int]) -> bool:
    """Whether the move can end: all of its target is alive and in sync."""
    return partition.is_moving and all(
        each in partition.isr and each in live for each in partition.target
    )


def next_state(
    partition: PartitionImage, live: Collection[int], electable: Collection[int], min_isr: int
) -> PartitionImage | None:
    """The next step of a move; None if it has to wait, or if there is none.

    `electable` are the live brokers that may lead.
    """
    outgoing = leaving(partition, live, min_isr)
    is_last_step = has_arrived(partition, live)
    if not outgoing and not is_last_step:
        return None
    isr = tuple(each for each in partition.isr if each not in outgoing)
    is_left_alone = len(isr) == 1 < len(partition.isr)
    staying = tuple(each for each in partition.replicas if each not in outgoing)
    state = partition
    if partition.leader == NO_LEADER or partition.leader in outgoing:
        elected = ReassignPartition(staying).elect(partition, electable)
        if elected is None or is_left_alone:
            return elected
        state = elected
    elif is_left_alone:
        return None  # It is for the leader to ask for it.
    state = state._replace(
        replicas=staying,
        isr=isr,
        partition_epoch=partition.partition_epoch + 1,
        adding=() if is_last_step else _without(partition.adding, outgoing),
        removing=_without(partition.removing, outgoing),
    )
    # A cancelled move is over when its replicas have left, though others may be out of sync.
    return state._replace(throttle=partition.throttle if state.is_moving else 0)


def _without(replicas: tuple[int, ...], others: Collection[int]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others)
