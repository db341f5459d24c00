"""How long members of consumer groups may be silent, or take to do what they were told.

All of it is soft: a new coordinator starts all sessions anew. A timer that is due asks to fence its
member; whether that is still right is decided then, since the member may have moved on.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from headwater.base.errors import KafkaError
from headwater.coordinator.group.consumer.member import ConsumerMember
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.timers import Timers


class Deadline(StrEnum):
    """What a member has to do in time."""

    #: Send a heartbeat.
    SESSION = "consumer session"
    #: Give up the partitions that it shall not keep.
    REVOCATION = "consumer revocation"
    #: As a member of the classic protocol: join again, and ask for its assignment.
    REJOIN = "consumer rejoin"
    SYNC = "consumer sync"


#: Gets the ids of group and member, the deadline that was missed, the member's epoch when it was
#: set, and the time.
Fence = Callable[[str, str, Deadline, int, int], Outcome]

#: Before a member is fenced again that could not be, because the topic did not take the records.
_RETRY_MS = 1_000


class ConsumerTimers:
    def __init__(self, timers: Timers, fence: Fence) -> None:
        self._timers = timers
        self._fence = fence

    def start(
        self, deadline: Deadline, group_id: str, member: ConsumerMember, timeout_ms: int
    ) -> None:
        """Start a timer, or start it anew."""
        member_id, epoch = member.member_id, member.epoch

        def fire(now_ms: int) -> Outcome:
            outcome = self._fence(group_id, member_id, deadline, epoch, now_ms)

            def try_again(_: KafkaError) -> None:
                self._timers.schedule((deadline, group_id, member_id), _RETRY_MS, fire)

            outcome.on_failed = try_again
            return outcome

        self._timers.schedule((deadline, group_id, member_id), timeout_ms, fire)

    def hear_of_classic(self, group_id: str, member: ConsumerMember) -> None:
        """A member of the classic protocol is alive; its session is as long as it said."""
        if member.classic is not None:
            self.start(Deadline.SESSION, group_id, member, member.classic.session_timeout_ms)

    def start_if_absent(
        self, deadline: Deadline, group_id: str, member: ConsumerMember, timeout_ms: int
    ) -> None:
        if not self._timers.is_scheduled((deadline, group_id, member.member_id)):
            self.start(deadline, group_id, member, timeout_ms)

    def cancel(self, deadline: Deadline, group_id: str, member_id: str) -> None:
        self._timers.cancel((deadline, group_id, member_id))

    def cancel_steps(self, group_id: str, member_id: str) -> None:
        """All but the session."""
        for deadline in (Deadline.REVOCATION, Deadline.REJOIN, Deadline.SYNC):
            self.cancel(deadline, group_id, member_id)
