"""LeaveGroup as clients see it, in each version."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tests.support.brokers.handler_broker import HandlerBroker
from tests.support.values.group_requests import (
    GROUP,
    join_request,
    run_with_coordinator,
    stable_member,
)


def test_older_versions_name_one_member_and_answer_for_all(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in range(3):
            member_id = (await stable_member(broker)).member_id
            request = LeaveGroupRequest(group_id=GROUP, member_id="nobody")
            answer = await broker.ask(request, LeaveGroupResponse, version=version)
            assert (answer.error_code, answer.members) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
            request.member_id = member_id
            answer = await broker.ask(request, LeaveGroupResponse, version=version)
            assert (answer.error_code, answer.members) == (ErrorCode.NONE, [])

    run_with_coordinator(tmp_path, scenario)


def test_newer_versions_name_several_and_answer_for_each(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in range(3, 6):
            request = join_request(instance_id="first")
            member_id = (await broker.ask(request, JoinGroupResponse)).member_id
            leave = LeaveGroupRequest(
                group_id=GROUP,
                members=[
                    MemberIdentity(member_id="nobody"),
                    MemberIdentity(member_id="another", group_instance_id="first"),
                    MemberIdentity(member_id=member_id, group_instance_id="first"),
                ],
            )
            answer = await broker.ask(leave, LeaveGroupResponse, version=version)
            assert answer.error_code == ErrorCode.NONE
            assert [
                (each.member_id, each.group_instance_id, each.error_code) for each in answer.members
            ] == [
                ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
                ("another", "first", ErrorCode.FENCED_INSTANCE_ID),
                (member_id, "first", ErrorCode.NONE),
            ]

    run_with_coordinator(tmp_path, scenario)


def test_groups_that_are_not_there(tmp_path: Path) -> None:
    """Since a request names several members, each of them is told; a bad name is told once."""

    async def scenario(broker: HandlerBroker) -> None:
        for version in range(6):
            for group_id, expected in (
                ("", ErrorCode.INVALID_GROUP_ID),
                ("missing", ErrorCode.UNKNOWN_MEMBER_ID),
            ):
                request = LeaveGroupRequest(
                    group_id=group_id, member_id="anna", members=[MemberIdentity(member_id="anna")]
                )
                if version < 3:
                    request.members = []
                else:
                    request.member_id = ""
                answer = await broker.ask(request, LeaveGroupResponse, version=version)
                told = [each.error_code for each in answer.members]
                if version >= 3 and group_id:
                    assert (answer.error_code, told) == (0, [expected])
                else:
                    assert (answer.error_code, told) == (expected, [])

    run_with_coordinator(tmp_path, scenario)
