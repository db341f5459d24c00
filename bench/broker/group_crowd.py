"""Thousands of members in groups of a few, held over a bounded number of connections.

A crew has one connection for each member of a group, because a server that answers in order lets a
connection wait while its member joins. It forms one group after another; several crews do so at the
same time. Once a group is complete its members need no connections of their own: heartbeats may
come over any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from bench.broker.asyncio_client import AsyncioClient
from bench.broker.raw_client import RawClient, ServerRefused, encode_frame
from headwater.base.errors import ErrorCode
from headwater.coordinator.stored_record import encode_versioned
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

#: Nobody's session ends while the others join.
_SESSION_MS = 600_000
_REBALANCE_MS = 60_000
_LOOK_S = 0.002
_COORDINATOR_TIMEOUT_S = 60.0


class Member(NamedTuple):
    group_id: str
    member_id: str
    generation: int


def form_groups(
    port: int, group_ids: Sequence[str], *, member_count: int, crew_count: int
) -> list[Member]:
    """Let groups come together; returns all their members."""
    return asyncio.run(_form_groups(port, group_ids, member_count, crew_count))


async def _form_groups(
    port: int, group_ids: Sequence[str], member_count: int, crew_count: int
) -> list[Member]:
    clients = [
        [await AsyncioClient.connect(port) for _ in range(member_count)] for _ in range(crew_count)
    ]
    try:
        await _await_coordinator(clients[0][0], group_ids[0])
        work = [
            _form_some(crew, group_ids[number::crew_count]) for number, crew in enumerate(clients)
        ]
        return [member for some in await asyncio.gather(*work) for member in some]
    finally:
        for crew in clients:
            for client in crew:
                await client.close()


async def _await_coordinator(client: AsyncioClient, group_id: str) -> None:
    """The first question makes the topic of offsets, which takes a moment."""
    async with asyncio.timeout(_COORDINATOR_TIMEOUT_S):
        while True:
            answer = await client.ask(FindCoordinatorRequest(coordinator_keys=[group_id]))
            if answer.coordinators[0].error_code == 0:
                return
            await asyncio.sleep(_LOOK_S)


async def _form_some(crew: Sequence[AsyncioClient], group_ids: Sequence[str]) -> list[Member]:
    members: list[Member] = []
    for group_id in group_ids:
        forming = _Forming(group_id, len(crew))
        members += await asyncio.gather(*(forming.join(client) for client in crew))
    return members


class _Forming:
    """A group whose members are coming together."""

    def __init__(self, group_id: str, member_count: int) -> None:
        self._group_id = group_id
        self._member_count = member_count
        #: The generation that each member is in.
        self._generations: dict[str, int] = {}

    @property
    def _is_complete(self) -> bool:
        generations = self._generations.values()
        return len(generations) == self._member_count and len(set(generations)) == 1

    async def join(self, client: AsyncioClient) -> Member:
        member_id = ""
        while True:
            joined: JoinGroupResponse = await client.ask(self._join_request(member_id))
            if self._must_wait(joined.error_code):
                await asyncio.sleep(_LOOK_S)
                continue
            member_id, generation = joined.member_id, joined.generation_id
            synced = await client.ask(self._sync_request(joined))
            if self._must_wait(synced.error_code):
                continue
            self._generations[member_id] = generation
            while not self._is_complete:
                await asyncio.sleep(_LOOK_S)
                member = Member(self._group_id, member_id, generation)
                beat = await client.ask(heartbeat_request(member))
                if self._must_wait(beat.error_code):
                    break
            else:
                return Member(self._group_id, member_id, generation)

    def _must_wait(self, code: int) -> bool:
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return True
        if code != ErrorCode.NONE:
            raise ServerRefused(f"{self._group_id}: {ErrorCode.from_wire(code).name}")
        return False

    def _join_request(self, member_id: str) -> JoinGroupRequest:
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=["crowd"]), 0)
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )

    def _sync_request(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            # Only the leader knows the members. What they are assigned is between them.
            assignments=[
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"\0" * 50)
                for each in joined.members
            ],
        )


def heartbeat_request(member: Member) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
    )


def heartbeat_frames(members: Sequence[Member]) -> list[bytes]:
    return [encode_frame(heartbeat_request(member)) for member in members]


def disband(port: int, members: Sequence[Member]) -> None:
    """Let everybody leave, so that nobody's session ends in the middle of what comes next."""
    groups: dict[str, list[MemberIdentity]] = {}
    for member in members:
        groups.setdefault(member.group_id, []).append(MemberIdentity(member_id=member.member_id))
    with RawClient(port) as client:
        for group_id, identities in groups.items():
            client.ask(LeaveGroupRequest(group_id=group_id, members=identities))
