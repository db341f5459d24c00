"""What the classic protocol asks of the newer one, when a classic member is in a group of that.

While a group moves from one protocol to the other it has members of both, and their requests come
in by their own APIs. The operations have the form that `ClassicProtocol` gives them.
"""

from __future__ import annotations

from typing import Protocol

from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.outcome import Change, Outcome, Reply
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ConsumerGroupHook(Protocol):
    """Called for groups that are there, have members, and are not classic ones."""

    def join(
        self,
        request: JoinGroupRequest,
        client: JoiningClient,
        now_ms: int,
        reply: Reply[JoinGroupResponse],
    ) -> Outcome: ...

    def sync(
        self, request: SyncGroupRequest, now_ms: int, reply: Reply[SyncGroupResponse]
    ) -> Outcome: ...

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> None:
        """Raise what the member has to know, REBALANCE_IN_PROGRESS for instance."""
        ...

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Change[LeaveGroupResponse]: ...
