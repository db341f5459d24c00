"""JoinGroup as clients see it, in each version."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.group_requests import (
    join,
    join_request,
    run_with_coordinator,
    stable_member,
)
from tests.support.worlds.classic_world import subscription

_VERSIONS = range(10)


def test_every_version_joins_as_the_leader_of_a_new_group(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in _VERSIONS:
            answer = await join(broker, version, group_id=f"group-{version}")
            assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
            assert answer.leader == answer.member_id
            assert answer.member_id.startswith("test-")
            assert answer.protocol_name == "range"
            assert answer.protocol_type == ("consumer" if version >= 7 else None)
            assert [each.metadata for each in answer.members] == [subscription("events")]

    run_with_coordinator(tmp_path, scenario)


def test_every_version_tells_errors(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in _VERSIONS:
            unknown = join_request("nobody")
            answer = await broker.ask(unknown, JoinGroupResponse, version=version)
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert (answer.member_id, answer.leader, answer.members) == ("nobody", "", [])
            assert answer.generation_id == -1
            assert answer.protocol_name == (None if version >= 7 else "")
            unnamed = join_request(group_id="")
            answer = await broker.ask(unnamed, JoinGroupResponse, version=version)
            assert answer.error_code == ErrorCode.INVALID_GROUP_ID
            hasty = join_request()
            hasty.session_timeout_ms = 1
            answer = await broker.ask(hasty, JoinGroupResponse, version=version)
            assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT

    run_with_coordinator(tmp_path, scenario)


def test_a_static_member_joins_in_one_step(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in range(5, 10):
            request = join_request(group_id=f"group-{version}", instance_id="first")
            answer = await broker.ask(request, JoinGroupResponse, version=version)
            assert answer.error_code == ErrorCode.NONE
            assert answer.members[0].group_instance_id == "first"

    run_with_coordinator(tmp_path, scenario)


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await stable_member(broker)
        request = join_request()
        request.protocols = [JoinGroupRequestProtocol(name="sticky")]
        answer = await broker.ask(request, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run_with_coordinator(tmp_path, scenario)


def test_without_the_topic_there_is_no_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await broker.ask(join_request(), JoinGroupResponse)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run_with_broker(tmp_path, scenario)
