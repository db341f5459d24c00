"""OffsetDelete and DeleteGroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.offset_requests import (
    COORDINATOR_SETTINGS,
    commit_codes,
    committed_offsets,
)


def delete_request(group_id: str, *names: str) -> OffsetDeleteRequest:
    """Of the partitions 0 and 1 of each topic."""
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=number) for number in (0, 1)
                ],
            )
            for name in names
        ],
    )


def test_offsets_are_deleted(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await broker.create_topic("payments", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        await commit_codes(broker, "g", {("orders", 0): 1, ("payments", 1): 2}, version=9)
        response = await broker.ask(delete_request("g", "orders", "nothing"), OffsetDeleteResponse)
        assert response.error_code == 0
        assert {
            (topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        } == {
            ("orders", 0): 0,
            ("orders", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nothing", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await committed_offsets(broker, "g") == {("payments", 1): 2}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


@pytest.mark.parametrize(
    ("group_id", "code"),
    [("", ErrorCode.INVALID_GROUP_ID), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_group_that_cannot_be(tmp_path: Path, group_id: str, code: ErrorCode) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        response = await broker.ask(delete_request(group_id, "orders"), OffsetDeleteResponse)
        assert (response.error_code, response.topics) == (code, [])

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)


def test_groups_are_deleted(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        request = DeleteGroupsRequest(groups_names=["g"])
        response = await broker.ask(request, DeleteGroupsResponse)
        assert response.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
        for group_id in ("g", "h", "i"):
            await commit_codes(broker, group_id, {("orders", 0): 1}, version=9)
        request = DeleteGroupsRequest(groups_names=["g", "nobody", "h", "g"])
        response = await broker.ask(request, DeleteGroupsResponse)
        assert [(result.group_id, result.error_code) for result in response.results] == [
            ("g", 0),
            ("nobody", ErrorCode.GROUP_ID_NOT_FOUND),
            ("h", 0),
        ]
        assert [result.error_message for result in response.results] == [
            None,
            "There is no group nobody.",
            None,
        ]
        assert await committed_offsets(broker, "g") == {}
        assert await committed_offsets(broker, "i") == {("orders", 0): 1}

    run_with_broker(tmp_path, scenario, COORDINATOR_SETTINGS)
