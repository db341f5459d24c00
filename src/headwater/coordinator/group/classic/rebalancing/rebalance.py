"""The rebalance of a classic group: all members join, the leader assigns, everybody hears of it.

It begins when members come, go, or want something else. Who is in the group is told by its next
heartbeat, and has as long as its rebalance timeout says to join again; it waits until the others
have. Then a generation begins: the strategy is voted on, the leader hears all subscriptions, and
the members ask for their assignments (`sync`), again within the rebalance timeout. Who
stays away in either half is removed. A static member is expected back, so it keeps its place if it
misses the first half only, unless its session ends.

Functions here return the records that are to be written: a group without members is stored at
once, one with members when it has its assignments.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.coordinator.group.classic.errors import rebalance_in_progress
from headwater.coordinator.group.classic.group import ClassicGroup
from headwater.coordinator.group.classic.rebalancing.join_answer import join_answer
from headwater.coordinator.group.classic.sessions import MemberSessions
from headwater.coordinator.group.classic.state import TRANSITIONS, ClassicState
from headwater.coordinator.group.classic.stored.group import record_of
from headwater.coordinator.group.environment import GroupEnvironment
from headwater.coordinator.outcome import Outcome
from headwater.coordinator.stored_record import StoredRecord

_INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"

Records = Sequence[StoredRecord]
_NO_RECORDS: Records = ()


class Rebalance:
    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self._timers = environment.timers
        self.sessions = MemberSessions(environment.timers, self._on_session_expired)

    # -- beginning -------------------------------------------------------------------------------

    def begin_or_advance(self, group: ClassicGroup, reason: str, now_ms: int) -> Records:
        """The group has changed: begin a rebalance, or see whether the one under way is done."""
        if ClassicState.PREPARING_REBALANCE in TRANSITIONS[group.state]:
            return self.begin(group, reason, now_ms)
        return self.advance(group, now_ms)

    def begin(self, group: ClassicGroup, reason: str, now_ms: int) -> Records:
        """Let all members join again."""
        self._environment.log.rebalances(group.group_id, group.generation, reason, now_ms)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.drop_assignments(group, rebalance_in_progress(group.group_id))
        self.all_have_synced(group)
        is_first = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING_REBALANCE, now_ms)
        if is_first:
            delay_ms = initial_delay_ms(self._environment)
            longest_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            return self._wait_for_more(group, delay_ms, longest_ms, now_ms)
        if group.have_all_joined:
            return self._complete(group, now_ms)
        self._await_joins(group)
        return _NO_RECORDS

    def advance(self, group: ClassicGroup, now_ms: int) -> Records:
        """Complete the first half if nobody is missing. A new group waits for its time instead."""
        if (
            group.is_rebalancing
            and group.have_all_joined
            and group.previous_state is not ClassicState.EMPTY
        ):
            return self._complete(group, now_ms)
        return _NO_RECORDS

    def _wait_for_more(
        self, group: ClassicGroup, delay_ms: int, longest_ms: int, now_ms: int
    ) -> Records:
        """Wait for members of a new group; the wait is prolonged while more of them come."""
        if delay_ms <= 0:
            return self._complete(group, now_ms)

        def on_time(later_ms: int) -> Outcome:
            if not group.is_rebalancing:
                return Outcome()
            if not group.is_growing:
                return Outcome(self._complete(group, later_ms))
            group.is_growing = False
            next_delay_ms = min(delay_ms, longest_ms)
            rest_ms = max(longest_ms - delay_ms, 0)
            return Outcome(self._wait_for_more(group, next_delay_ms, rest_ms, later_ms))

        self._timers.schedule(_join_key(group), delay_ms, on_time)
        return _NO_RECORDS

    def _await_joins(self, group: ClassicGroup) -> None:
        def on_time(now_ms: int) -> Outcome:
            return Outcome(self._complete(group, now_ms) if group.is_rebalancing else _NO_RECORDS)

        self._timers.schedule(_join_key(group), group.rebalance_timeout_ms, on_time)

    # -- the next generation ---------------------------------------------------------------------

    def _complete(self, group: ClassicGroup, now_ms: int) -> Records:
        """Go on with those who have joined."""
        self._timers.cancel(_join_key(group))
        for member in list(group.members.values()):
            if not member.is_static and member.member_id not in group.joining:
                self.sessions.end(group, member.member_id)
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Static members only, and none of them is back: their sessions decide.
            self._await_joins(group)
            return _NO_RECORDS
        group.next_generation(now_ms)
        if group.state is ClassicState.EMPTY:
            return [record_of(group)]
        group.newcomer_ids.clear()
        for member in group.members.values():
            group.unsynced_ids.add(member.member_id)
            self.sessions.extend(group, member)
            group.joining.send(member.member_id, join_answer(group, member.member_id))
        self._await_syncs(group)
        return _NO_RECORDS

    def _await_syncs(self, group: ClassicGroup) -> None:
        generation = group.generation

        def on_time(now_ms: int) -> Outcome:
            if group.generation != generation or not group.unsynced_ids:
                return Outcome()
            if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
                return Outcome()
            for member_id in sorted(group.unsynced_ids):
                self.sessions.end(group, member_id)
                group.remove(member_id)
            return Outcome(self.begin(group, "members did not ask for assignments", now_ms))

        self._timers.schedule(_sync_key(group), group.rebalance_timeout_ms, on_time)

    def has_synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member asked for its assignment."""
        group.unsynced_ids.discard(member_id)
        if not group.unsynced_ids:
            self.all_have_synced(group)

    def all_have_synced(self, group: ClassicGroup) -> None:
        """Expect no one to ask for an assignment any more."""
        group.unsynced_ids.clear()
        self._timers.cancel(_sync_key(group))

    def drop_assignments(self, group: ClassicGroup, error: KafkaError) -> None:
        """There will be none in this generation: those who wait for theirs hear the error."""
        for member in group.members.values():
            member.assignment = b""
        for member_id in group.syncing.fail_all(error):
            self.sessions.extend(group, group.members[member_id])

    # -- members that go -------------------------------------------------------------------------

    def forget_pending(self, group: ClassicGroup, member_id: str, now_ms: int) -> Records:
        """Whoever got this member id does not come back with it."""
        self.sessions.end(group, member_id)
        group.pending_ids.discard(member_id)
        return self.advance(group, now_ms)

    def remove_member(
        self, group: ClassicGroup, member_id: str, reason: str, now_ms: int
    ) -> Records:
        """A member is gone; the others share what it had."""
        self.sessions.end(group, member_id)
        group.remove(member_id)
        return self.begin_or_advance(group, reason, now_ms)

    def _on_session_expired(self, group: ClassicGroup, member_id: str, now_ms: int) -> Records:
        if group.state is ClassicState.DEAD:
            return _NO_RECORDS
        if member_id in group.pending_ids:
            return self.forget_pending(group, member_id, now_ms)
        if member_id not in group.members:
            return _NO_RECORDS
        waits = member_id in group.joining or member_id in group.syncing
        if waits and member_id not in group.newcomer_ids:
            return _NO_RECORDS  # It cannot do more: the answer starts its session again.
        return self.remove_member(group, member_id, f"{member_id} was silent for too long", now_ms)

    # -- groups that go --------------------------------------------------------------------------

    def bury(self, group: ClassicGroup, error: KafkaError) -> None:
        """The group is gone from here: nobody waits any more, and no timer is left."""
        self.sessions.end_all(group)
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))
        group.joining.fail_all(error)
        group.syncing.fail_all(error)
        if group.state is not ClassicState.DEAD:
            group.move_to(ClassicState.DEAD, group.state_since_ms or 0)

    def resume(self, group: ClassicGroup, now_ms: int) -> None:
        """A group was loaded: its members have a session's time to be heard of."""
        for member in group.members.values():
            self.sessions.extend(group, member)
        size_max = self._environment.settings.integer("group.max.size")
        if len(group.members) > size_max:
            records = self.begin(group, "it has more members than it may", now_ms)
            check(not records, "a group with members was stored as an empty one")


def _join_key(group: ClassicGroup) -> Hashable:
    return "classic join", group.group_id


def _sync_key(group: ClassicGroup) -> Hashable:
    return "classic sync", group.group_id


def initial_delay_ms(environment: GroupEnvironment) -> int:
    """How long the first rebalance of a new group waits for more members to come.

    A cluster's consumers are many and start together, so a wait spares them rebalances. On a single
    broker there is a developer in front of it, and a wait is all that there is to notice: there it
    waits only if somebody said so.
    """
    settings = environment.settings
    if not settings.is_set(_INITIAL_DELAY) and len(environment.image().brokers) <= 1:
        return 0
    return max(settings.integer(_INITIAL_DELAY), 0)
