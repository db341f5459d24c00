"""DescribeGroups as clients see it, in each version."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headwater.wire.messages.join_group import JoinGroupResponse
from tests.support.brokers.handler_broker import HandlerBroker
from tests.support.values.group_requests import (
    GROUP,
    join_request,
    run_with_coordinator,
    stable_member,
)
from tests.support.worlds.classic_world import subscription

_VERSIONS = range(7)


async def describe(
    broker: HandlerBroker, version: int, *group_ids: str, operations: bool = False
) -> list[DescribedGroup]:
    request = DescribeGroupsRequest(
        groups=list(group_ids), include_authorized_operations=operations
    )
    return (await broker.ask(request, DescribeGroupsResponse, version=version)).groups


def test_every_version_describes_a_stable_group(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        joined = await stable_member(broker)
        for version in _VERSIONS:
            (group,) = await describe(broker, version, GROUP)
            assert (group.error_code, group.group_id) == (ErrorCode.NONE, GROUP)
            assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
            assert group.protocol_data == "range"
            assert group.authorized_operations == NOT_ASKED
            (member,) = group.members
            assert member.member_id == joined.member_id
            assert (member.client_id, member.client_host) == ("test", "/192.0.2.9")
            assert member.member_metadata == subscription("events")
            assert member.member_assignment == b"partitions"
            if version >= 3:
                (asked,) = await describe(broker, version, GROUP, operations=True)
                assert asked.authorized_operations == GROUP_OPERATIONS

    run_with_coordinator(tmp_path, scenario)


def test_a_group_that_rebalances_says_less_of_its_members(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = join_request(instance_id="first")
        await broker.ask(request, JoinGroupResponse)
        (group,) = await describe(broker, 6, GROUP)
        assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
        (member,) = group.members
        assert member.group_instance_id == "first"
        assert (member.member_metadata, member.member_assignment) == (b"", b"")

    run_with_coordinator(tmp_path, scenario)


def test_what_is_not_there_is_dead_and_from_version_6_on_an_error(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in _VERSIONS:
            (group,) = await describe(broker, version, "missing")
            assert (group.group_state, group.members) == ("Dead", [])
            is_error = version >= 6
            expected = ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE
            assert group.error_code == expected
            assert (group.error_message is not None) == is_error

    run_with_coordinator(tmp_path, scenario)


def test_a_group_of_the_newer_protocol_is_no_classic_one(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("events")
        request = ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id="anna",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["events"],
            topic_partitions=[],
        )
        joined = await broker.ask(request, ConsumerGroupHeartbeatResponse)
        assert joined.error_code == ErrorCode.NONE
        await stable_member(broker)
        groups = await describe(broker, 6, "modern", GROUP)
        assert [(each.group_id, each.group_state, each.error_code) for each in groups] == [
            ("modern", "Dead", ErrorCode.GROUP_ID_NOT_FOUND),
            (GROUP, "Stable", ErrorCode.NONE),
        ]
        (older,) = await describe(broker, 5, "modern")
        assert (older.group_state, older.error_code) == ("Dead", ErrorCode.NONE)

    run_with_coordinator(tmp_path, scenario)
