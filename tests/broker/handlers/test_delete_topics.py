"""DeleteTopics: by name and by id, each topic with an outcome of its own."""

import uuid
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

ZERO = uuid.UUID(int=0)
UNKNOWN_ID = uuid.UUID(int=77)


async def delete_names(
    broker: HandlerBroker, *names: str, version: int
) -> dict[str | None, ErrorCode]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=60_000)
    if version >= 6:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=60_000
        )
    answer = await broker.ask(request, DeleteTopicsResponse, version=version)
    for result in answer.responses:
        assert bool(result.error_message) == (version >= 5 and result.error_code != 0)
    return {result.name: ErrorCode.from_wire(result.error_code) for result in answer.responses}


async def delete(
    broker: HandlerBroker, *topics: tuple[str | None, uuid.UUID]
) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics],
        timeout_ms=60_000,
    )
    return (await broker.ask(request, DeleteTopicsResponse, version=6)).responses


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("gone", partitions=2)
        await broker.create_topic("kept")
        await broker.create_topic("twice")
        codes = await delete_names(
            broker, "gone", "missing", "twice", "twice", "no name", version=version
        )
        assert codes == {
            "gone": ErrorCode.NONE,
            "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "no name": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "twice": ErrorCode.INVALID_REQUEST,
        }
        assert set(broker.context.image.topics) == {"kept", "twice"}
        assert broker.context.partitions.find("gone", 0) is None
        # The name is free again.
        await broker.create_topic("gone")

    run_with_broker(tmp_path, scenario)


def test_topics_are_deleted_by_id(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        await broker.create_topic("b")
        ids = {name: topic.topic_id for name, topic in broker.context.image.topics.items()}
        by_id, by_name, unknown = await delete(
            broker, (None, ids["a"]), ("b", ZERO), (None, UNKNOWN_ID)
        )
        assert (by_id.name, by_id.topic_id, by_id.error_code) == ("a", ids["a"], ErrorCode.NONE)
        assert (by_name.name, by_name.topic_id, by_name.error_code) == ("b", ids["b"], 0)
        assert (unknown.name, unknown.topic_id, unknown.error_code) == (
            None,
            UNKNOWN_ID,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )
        assert not broker.context.image.topics

    run_with_broker(tmp_path, scenario)


def test_a_topic_that_is_not_named_in_one_clear_way_is_kept(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        topic_id = broker.context.image.topics["a"].topic_id
        for topics, count in (
            ([("a", topic_id)], 1),
            ([(None, ZERO)], 1),
            ([("a", ZERO), (None, topic_id)], 1),
            ([(None, topic_id), (None, topic_id)], 1),
            ([(None, UNKNOWN_ID), (None, UNKNOWN_ID)], 1),
        ):
            results = await delete(broker, *topics)
            assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * count
        assert set(broker.context.image.topics) == {"a"}

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_broker_that_does_not_delete(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert await delete_names(broker, "a", version=version) == {"a": code}
        assert set(broker.context.image.topics) == {"a"}

    run_with_broker(tmp_path, scenario, {"delete.topic.enable": "false"})


@pytest.mark.parametrize("version", [5, 6])
def test_more_topics_than_one_request_may_change_are_all_kept(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("0")
        codes = await delete_names(broker, *map(str, range(10_001)), version=version)
        assert len(codes) == 10_001
        assert set(codes.values()) == {ErrorCode.POLICY_VIOLATION}
        assert set(broker.context.image.topics) == {"0"}

    run_with_broker(tmp_path, scenario)
