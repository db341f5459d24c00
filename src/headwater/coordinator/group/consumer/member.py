"""A member of a consumer group as the coordinator knows it, one value per state.

A member object never changes: an operation derives the next one, writes it as records, and replay
puts it into the group. Two kinds of records make it up: what the member said of itself, and where
it stands in the reconciliation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from headwater.coordinator.group.consumer.assigning.assignment import NOTHING, Assignment

#: The epoch with which a member joins, and with which it leaves.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
#: A static member leaves for a while: its place is kept until its session ends.
STATIC_LEAVE_EPOCH: Final = -2


class MemberState(IntEnum):
    """Where a member stands between two target assignments; the numbers are those on disk."""

    #: It has what it shall have, or is on the way to the next target with its next heartbeat.
    STABLE = 0
    #: It has to give up partitions before it may go on to the next epoch.
    UNREVOKED_PARTITIONS = 1
    #: It is in the target's epoch, and waits for partitions that others have not released yet.
    UNRELEASED_PARTITIONS = 2
    #: Another release wrote a state that this one does not know.
    UNKNOWN = 127

    @classmethod
    def from_stored(cls, number: int) -> MemberState:
        return cls(number) if number in _STATE_NUMBERS else cls.UNKNOWN


_STATE_NUMBERS: Final = frozenset(MemberState)


class ClassicProtocol(NamedTuple):
    """One way of assigning that a member of the classic protocol offers, with its subscription."""

    name: str
    metadata: bytes


class ClassicSide(NamedTuple):
    """What is known of a member that speaks the classic protocol inside a consumer group."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    #: A pattern for names of topics; empty or None without one.
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    #: Set for members that use JoinGroup and its kin.
    classic: ClassicSide | None = None

    epoch: int = JOIN_EPOCH
    previous_epoch: int = LEAVE_EPOCH
    state: MemberState = MemberState.STABLE
    #: What it has, or may take.
    assigned: Assignment = field(default_factory=lambda: NOTHING)
    #: What it has to give up; nobody else may take it before it has.
    revoking: Assignment = field(default_factory=lambda: NOTHING)

    @property
    def has_left_for_a_while(self) -> bool:
        return self.epoch == STATIC_LEAVE_EPOCH

    @property
    def metadata_bytes(self) -> int:
        """What it says of itself takes."""
        said = sum([len(name) for name in self.topics]) + len(self.regex or "")
        if self.classic is not None:
            said += sum([len(name) + len(data) for name, data in self.classic.protocols])
        return said

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment = NOTHING
    ) -> ConsumerMember:
        """The member after a step of its reconciliation."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def without_assignment(self) -> ConsumerMember:
        """The member when its current assignment was deleted: it is about to be removed."""
        return replace(
            self,
            epoch=LEAVE_EPOCH,
            previous_epoch=LEAVE_EPOCH,
            state=MemberState.STABLE,
            assigned=NOTHING,
            revoking=NOTHING,
        )

    def describes_same(self, other: ConsumerMember) -> bool:
        """Whether both say the same of themselves, wherever their reconciliation stands."""
        return (
            self.topics == other.topics
            and self.regex == other.regex
            and self.rebalance_timeout_ms == other.rebalance_timeout_ms
            and self.assignor == other.assignor
            and self.instance_id == other.instance_id
            and self.rack_id == other.rack_id
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.classic == other.classic
        )
