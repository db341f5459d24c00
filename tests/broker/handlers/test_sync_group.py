"""SyncGroup as clients see it, in each version."""

import asyncio
from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from tests.support.brokers.handler_broker import HandlerBroker
from tests.support.values.group_requests import (
    GROUP,
    join,
    join_request,
    run_with_coordinator,
    stable_member,
    sync_request,
)

_VERSIONS = range(6)


def test_every_version_gets_its_assignment(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in _VERSIONS:
            group_id = f"group-{version}"
            joined = await join(broker, 9, group_id=group_id)
            request = sync_request(joined, b"mine", group_id=group_id)
            answer = await broker.ask(request, SyncGroupResponse, version=version)
            assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"mine")
            names = (answer.protocol_type, answer.protocol_name)
            assert names == (("consumer", "range") if version >= 5 else (None, None))

    run_with_coordinator(tmp_path, scenario)


def test_every_version_tells_errors(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        joined = await join(broker, 9)
        for version in _VERSIONS:
            stale = sync_request(joined)
            stale.generation_id = 0
            answer = await broker.ask(stale, SyncGroupResponse, version=version)
            assert (answer.error_code, answer.assignment) == (ErrorCode.ILLEGAL_GENERATION, b"")
            unnamed = sync_request(joined, group_id="")
            answer = await broker.ask(unnamed, SyncGroupResponse, version=version)
            assert answer.error_code == ErrorCode.INVALID_GROUP_ID
        wrong = sync_request(joined)
        wrong.protocol_name = "sticky"
        answer = await broker.ask(wrong, SyncGroupResponse)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run_with_coordinator(tmp_path, scenario)


def test_two_members_wait_for_each_other(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        leader = await stable_member(broker)
        first = await broker.ask(join_request(), JoinGroupResponse)
        follower_joins = asyncio.ensure_future(
            broker.ask(join_request(first.member_id), JoinGroupResponse)
        )
        await asyncio.sleep(0)
        heartbeat = HeartbeatRequest(
            group_id=GROUP, member_id=leader.member_id, generation_id=leader.generation_id
        )
        beat = await broker.ask(heartbeat, HeartbeatResponse)
        assert beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        leading = await broker.ask(join_request(leader.member_id), JoinGroupResponse)
        following = await follower_joins
        assert leading.generation_id == following.generation_id == 2
        follower_syncs = asyncio.ensure_future(
            broker.ask(sync_request(following), SyncGroupResponse)
        )
        request = sync_request(leading, b"one")
        request.assignments.append(
            SyncGroupRequestAssignment(member_id=following.member_id, assignment=b"two")
        )
        assert (await broker.ask(request, SyncGroupResponse)).assignment == b"one"
        assert (await follower_syncs).assignment == b"two"

    run_with_coordinator(tmp_path, scenario)
