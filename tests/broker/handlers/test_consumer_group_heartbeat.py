"""ConsumerGroupHeartbeat and ConsumerGroupDescribe on a real broker."""

from __future__ import annotations

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.broker.access.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from headwater.cluster.image.image import ConfigResource, ResourceKind
from headwater.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


def join_request(member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )


async def find_coordinator(broker: HandlerBroker) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    response = await broker.ask(request, FindCoordinatorResponse)
    assert [found.error_code for found in response.coordinators] == [ErrorCode.NONE]


async def describe(broker: HandlerBroker, *group_ids: str) -> ConsumerGroupDescribeResponse:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=True
    )
    return await broker.ask(request, ConsumerGroupDescribeResponse)


def test_a_member_joins_is_described_and_leaves(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=3)
        await find_coordinator(broker)
        joined = await broker.ask(join_request(), ConsumerGroupHeartbeatResponse)
        assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 1)
        assert joined.assignment is not None
        assert [entry.partitions for entry in joined.assignment.topic_partitions] == [[0, 1, 2]]
        (group,) = (await describe(broker, "g")).groups
        assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
        assert group.authorized_operations == GROUP_OPERATIONS
        assert group.members[0].client_host == "/192.0.2.9"
        leave = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
        left = await broker.ask(leave, ConsumerGroupHeartbeatResponse)
        assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
        (group,) = (await describe(broker, "g")).groups
        assert (group.group_state, group.members) == ("Empty", [])

    run_with_broker(tmp_path, scenario)


def test_a_group_that_has_its_own_settings_is_told_so_while_it_goes_on(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await find_coordinator(broker)
        joined = await broker.ask(join_request(), ConsumerGroupHeartbeatResponse)
        assert joined.heartbeat_interval_ms == 5_000
        group = ConfigResource(ResourceKind.GROUP, "g")
        own = {"consumer.heartbeat.interval.ms": "9000"}
        await broker.context.controller.set_configs(group, own)
        beat = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=joined.member_epoch
        )
        told = await broker.ask(beat, ConsumerGroupHeartbeatResponse)
        assert (told.error_code, told.heartbeat_interval_ms) == (0, 9_000)

    run_with_broker(tmp_path, scenario)


def test_errors_come_with_a_reason(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await find_coordinator(broker)
        refused = await broker.ask(join_request(""), ConsumerGroupHeartbeatResponse, version=1)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert refused.error_message
        accepted = await broker.ask(join_request(""), ConsumerGroupHeartbeatResponse, version=0)
        assert accepted.error_code == ErrorCode.NONE
        (group,) = (await describe(broker, "nobody")).groups
        assert (group.group_id, group.error_code) == ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)
        assert group.error_message
        assert group.authorized_operations == NOT_ASKED

    run_with_broker(tmp_path, scenario)


def test_without_a_coordinator_nobody_joins(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        refused = await broker.ask(join_request(), ConsumerGroupHeartbeatResponse)
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run_with_broker(tmp_path, scenario)


def test_a_broker_may_be_told_not_to_speak_the_protocol(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await find_coordinator(broker)
        refused = await broker.ask(join_request(), ConsumerGroupHeartbeatResponse)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION

    run_with_broker(
        tmp_path, scenario, settings={"group.coordinator.rebalance.protocols": "classic"}
    )


def test_a_new_topic_reaches_its_readers(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await find_coordinator(broker)
        joined = await broker.ask(join_request(), ConsumerGroupHeartbeatResponse)
        assert joined.assignment is not None
        assert joined.assignment.topic_partitions == []
        beat = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=1, topic_partitions=[]
        )
        await broker.ask(beat, ConsumerGroupHeartbeatResponse)
        await broker.create_topic("orders", partitions=2)
        told = await broker.ask(beat, ConsumerGroupHeartbeatResponse)
        assert told.member_epoch == 2
        assert told.assignment is not None
        assert [entry.partitions for entry in told.assignment.topic_partitions] == [[0, 1]]

    run_with_broker(tmp_path, scenario)
