"""How long members of classic groups may be silent before they are given up."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.member import ClassicMember
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.stored_record import StoredRecord
from headwater.coordinator.timers import Timers

#: A member that joins for the first time does not know its id, so it cannot send heartbeats while
#: it waits. If it goes away nobody notices, and it tries again under another id: so it may wait
#: for only so long.
NEWCOMER_TIMEOUT_MS: Final = 5 * 60_000

#: Gets the group, the id of the member that was silent for too long, and the time.
OnExpired = Callable[[ClassicGroup, str, int], Sequence[StoredRecord]]


class MemberSessions:
    def __init__(self, timers: Timers, on_expired: OnExpired) -> None:
        self._timers = timers
        self._on_expired = on_expired

    def extend(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member was heard of."""
        self._start(group, member.member_id, member.session_timeout_ms)
        member.extend_session = lambda: self.extend(group, member)

    def await_newcomer(self, group: ClassicGroup, member_id: str) -> None:
        """A new member waits for the first time."""
        self._start(group, member_id, NEWCOMER_TIMEOUT_MS)

    def await_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """A member id was handed out, and its owner has to come back with it."""
        self._start(group, member_id, timeout_ms)

    def end(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(_key(group, member_id))

    def end_all(self, group: ClassicGroup) -> None:
        for member_id in (*group.members, *group.pending_ids):
            self.end(group, member_id)

    def _start(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        self._timers.schedule(
            _key(group, member_id),
            timeout_ms,
            lambda now_ms: Outcome(self._on_expired(group, member_id, now_ms)),
        )


def _key(group: ClassicGroup, member_id: str) -> Hashable:
    return "classic session", group.group_id, member_id
