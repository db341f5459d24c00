"""ListGroups as clients see it, in each version."""

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.group_requests import (
    join_request,
    loading,
    run_with_coordinator,
    stable_member,
)


async def names(
    broker: HandlerBroker, states: list[str] | None = None, types: list[str] | None = None
) -> set[str]:
    request = ListGroupsRequest(states_filter=states or [], types_filter=types or [])
    answer = await broker.ask(request, ListGroupsResponse, version=5 if types else 4)
    assert answer.error_code == ErrorCode.NONE
    return {group.group_id for group in answer.groups}


async def three_groups(broker: HandlerBroker) -> None:
    await broker.create_topic("events")
    await stable_member(broker, group_id="stable")
    await broker.ask(join_request(group_id="empty"), JoinGroupResponse)
    request = ConsumerGroupHeartbeatRequest(
        group_id="modern",
        member_id="anna",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["events"],
        topic_partitions=[],
    )
    joined = await broker.ask(request, ConsumerGroupHeartbeatResponse)
    assert joined.error_code == ErrorCode.NONE


def test_every_version_lists_the_groups_of_all_partitions(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await three_groups(broker)
        for version in range(6):
            answer = await broker.ask(ListGroupsRequest(), ListGroupsResponse, version=version)
            assert answer.error_code == ErrorCode.NONE
            listed = {group.group_id: group for group in answer.groups}
            assert listed.keys() == {"stable", "empty", "modern"}
            types = {name: group.protocol_type for name, group in listed.items()}
            assert types == {"stable": "consumer", "empty": "", "modern": "consumer"}
            states = {name: group.group_state for name, group in listed.items()}
            kinds = {name: group.group_type for name, group in listed.items()}
            if version >= 4:
                assert states == {"stable": "Stable", "empty": "Empty", "modern": "Stable"}
            if version >= 5:
                assert kinds == {"stable": "classic", "empty": "classic", "modern": "consumer"}

    run_with_coordinator(tmp_path, scenario)


def test_filters_do_not_mind_case(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await three_groups(broker)
        assert await names(broker, ["Stable"]) == {"stable", "modern"}
        assert await names(broker, ["stable", "EMPTY"]) == {"stable", "modern", "empty"}
        assert await names(broker, ["PreparingRebalance"]) == set()
        assert await names(broker, types=["Classic"]) == {"stable", "empty"}
        assert await names(broker, types=["consumer"]) == {"modern"}
        assert await names(broker, ["stable"], ["classic"]) == {"stable"}
        assert await names(broker, types=["unheard of"]) == set()

    run_with_coordinator(tmp_path, scenario)


def test_a_broker_without_groups_has_none(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        assert await names(broker) == set()

    run_with_broker(tmp_path, scenario)


def test_while_groups_are_loaded_there_is_no_list(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await stable_member(broker)
        with loading(broker):
            answer = await broker.ask(ListGroupsRequest(), ListGroupsResponse)
        expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (answer.error_code, answer.groups) == (expected, [])
        assert await names(broker) == {"orders"}

    run_with_coordinator(tmp_path, scenario)
