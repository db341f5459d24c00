"""The next step of one member from what it has to what it shall have.

A member goes through three states. With a new target it first gives up what it shall not keep
(UNREVOKED_PARTITIONS), and says so by no longer naming those partitions in its heartbeats. Then it
is in the target's epoch and gets what is free; for the rest it waits until the others have given it
up (UNRELEASED_PARTITIONS). When it has everything it is STABLE. A partition is given only if nobody
else has it, so it never has two owners, and no member ever waits for all the others.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.group.consumer.assigning.assignment import (
    NOTHING,
    Assignment,
    common,
    overlap,
    together,
    without,
)
from headwater.coordinator.group.consumer.member import ConsumerMember, MemberState

#: Tells which member has a partition, or still has to give it up.
Owner = Callable[[uuid.UUID, int], str | None]


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    owner: Owner,
    owned: Assignment | None,
) -> ConsumerMember:
    """The member after the step; the same one if it has to wait.

    `owned` is what the member says that it has, None if its heartbeat does not tell.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_has(owned, member.revoking):
        return member
    if member.state is MemberState.UNKNOWN and owned != NOTHING:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.member_id} is in a state that is not known here and must rejoin.",
        )
    kept = common(member.assigned, target)
    revoking = without(member.assigned, kept)
    if revoking and _still_has(owned, revoking):
        # It stays in its epoch until it has given those up.
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    wanted = without(target, kept)
    free = _free(wanted, member.member_id, owner)
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS
    if member.epoch == target_epoch and member.state is state and not free and not revoking:
        return member
    return member.moved_to(target_epoch, state, together(kept, free))


def _still_has(owned: Assignment | None, partitions: Assignment) -> bool:
    """A member that does not tell what it has may have everything."""
    return owned is None or overlap(owned, partitions)


def _free(wanted: Assignment, member_id: str, owner: Owner) -> Assignment:
    """What nobody else has; what the member itself was about to give up counts as free."""
    free = {
        topic_id: frozenset(
            partition for partition in partitions if owner(topic_id, partition) in (None, member_id)
        )
        for topic_id, partitions in wanted.items()
    }
    return {topic_id: partitions for topic_id, partitions in free.items() if partitions}
