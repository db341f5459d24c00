"""CreatePartitions: topics grow and never shrink."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

Wanted = tuple[str, int, Sequence[Sequence[int]] | None]


async def grow(
    broker: HandlerBroker, *wanted: Wanted, version: int = 3, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments],
            )
            for name, count, assignments in wanted
        ],
        timeout_ms=60_000,
        validate_only=validate_only,
    )
    return (await broker.ask(request, CreatePartitionsResponse, version=version)).results


def count(broker: HandlerBroker, topic: str) -> int:
    return len(broker.context.image.topics[topic].partitions)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_by_the_controller_or_where_the_client_says(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        [result] = await grow(broker, ("t", 3, None), version=version)
        assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
        assert count(broker, "t") == 3
        [result] = await grow(broker, ("t", 4, [[0]]), version=version)
        assert result.error_code == ErrorCode.NONE
        assert broker.context.partitions.get("t", 3).is_leader
        broker.append("t", 1, partition=3)

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("wanted", "code", "reason"),
    [
        (("t", 3, None), ErrorCode.INVALID_PARTITIONS, "already has 3 partitions"),
        (("t", 2, None), ErrorCode.INVALID_PARTITIONS, "2 would not be an increase"),
        (("t", -1, None), ErrorCode.INVALID_PARTITIONS, "-1 would not be an increase"),
        (("t", 2**31 - 1, None), ErrorCode.INVALID_PARTITIONS, "10000 partitions"),
        (("missing", 2, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic 'missing'"),
        (("t", 5, [[0]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "2 partitions are to be added"),
        (("t", 4, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "0 are assigned"),
        (("t", 4, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
        (("t", 4, [[0, 0]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
    ],
)
def test_what_is_refused_and_why(
    tmp_path: Path, wanted: Wanted, code: ErrorCode, reason: str
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t", partitions=3)
        [result] = await grow(broker, wanted)
        assert result.error_code == code
        assert reason in (result.error_message or "")
        assert count(broker, "t") == 3

    run_with_broker(tmp_path, scenario)


def test_validating_adds_nothing_and_a_repeated_topic_is_refused_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        [result] = await grow(broker, ("t", 2, None), validate_only=True)
        assert result.error_code == ErrorCode.NONE
        [result] = await grow(broker, ("t", 2, None), ("t", 3, None))
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert count(broker, "t") == 1
        assert await grow(broker) == []

    run_with_broker(tmp_path, scenario)
