"""CreateTopics: what is asked for reaches the controller, and its outcome the client."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.cluster.image.change import ImageChange
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.fakes.peers.broker import until

VERSIONS = range(2, 8)
ZERO = uuid.UUID(int=0)


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
    )


async def create(
    broker: HandlerBroker,
    *topics: CreatableTopic,
    version: int = 7,
    validate_only: bool = False,
    timeout_ms: int = 60_000,
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    answer = await broker.ask(request, CreateTopicsResponse, version=version)
    results = {result.name: result for result in answer.topics}
    assert len(results) == len(answer.topics)
    return results


async def code_of(broker: HandlerBroker, asked: CreatableTopic) -> ErrorCode:
    [result] = (await create(broker, asked)).values()
    assert (result.error_message is None) == (result.error_code == 0)
    assert (result.topic_id, result.num_partitions, result.configs) == (ZERO, -1, [])
    return ErrorCode.from_wire(result.error_code)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_created_and_described(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        asked = topic("orders", 3, 1, configs={"retention.ms": "1000"})
        result = (await create(broker, asked, version=version))["orders"]
        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        image = broker.context.image.topics["orders"]
        assert len(image.partitions) == 3
        assert broker.context.partitions.get("orders", 2).log.config.retention_ms == 1000
        assert result.topic_id == (image.topic_id if version >= 7 else ZERO)
        numbers = (result.num_partitions, result.replication_factor)
        assert numbers == ((3, 1) if version >= 5 else (-1, -1))
        assert result.configs is not None
        told = {each.name: (each.value, each.config_source) for each in result.configs}
        if version < 5:
            assert told == {}
        else:
            assert told["retention.ms"] == ("1000", 1)
            assert told["segment.bytes"] == ("2000000", 4)
            assert told["cleanup.policy"] == ("delete", 5)

    run_with_broker(tmp_path, scenario, {"log.segment.bytes": "2000000"})


@pytest.mark.parametrize("version", [4, 7])
def test_minus_one_means_the_default_of_the_broker(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await create(broker, topic("t", -1, -1), version=version)
        assert len(broker.context.image.topics["t"].partitions) == 4

    run_with_broker(tmp_path, scenario, {"num.partitions": "4"})


@pytest.mark.parametrize("version", VERSIONS)
def test_validating_creates_nothing(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        asked = (topic("t", 3), topic("u", 0))
        results = await create(broker, *asked, version=version, validate_only=True)
        assert results["t"].error_code == ErrorCode.NONE
        assert results["t"].num_partitions == (3 if version >= 5 else -1)
        assert results["u"].error_code == ErrorCode.INVALID_PARTITIONS
        assert not broker.context.image.topics

    run_with_broker(tmp_path, scenario)


def test_a_manual_assignment(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        result = (await create(broker, topic("t", -1, -1, assignments={1: [0], 0: [0]})))["t"]
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)
        refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        impossible: list[dict[int, list[int]]] = [
            {0: [7]},
            {0: [0], 2: [0]},
            {0: []},
            {0: [0, 0]},
        ]
        for assignments in impossible:
            assert await code_of(broker, topic("u", -1, -1, assignments=assignments)) is refused
        for numbers in ((1, -1), (-1, 1)):
            asked = topic("u", *numbers, assignments={0: [0]})
            assert await code_of(broker, asked) is ErrorCode.INVALID_REQUEST

    run_with_broker(tmp_path, scenario)


def test_what_cannot_be_created(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a.b")
        for asked, code in (
            (topic("a.b"), ErrorCode.TOPIC_ALREADY_EXISTS),
            (topic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (topic("no name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
            (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
            (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
            (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
            (topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
            (topic("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
            (topic("t", configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
            (topic("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
            (topic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        ):
            assert await code_of(broker, asked) is code
        assert set(broker.context.image.topics) == {"a.b"}

    run_with_broker(tmp_path, scenario)


def test_each_topic_has_its_own_outcome_and_repeated_names_have_one(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        results = await create(broker, topic("twice"), topic("fine"), topic("twice"), topic("?"))
        assert {name: result.error_code for name, result in results.items()} == {
            "twice": ErrorCode.INVALID_REQUEST,
            "fine": ErrorCode.NONE,
            "?": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert set(broker.context.image.topics) == {"fine"}
        assert await create(broker) == {}

    run_with_broker(tmp_path, scenario)


def test_more_topics_than_one_request_may_create_are_all_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        results = await create(broker, *(topic(f"t{number}") for number in range(10_001)))
        codes = {result.error_code for result in results.values()}
        assert codes == {ErrorCode.POLICY_VIOLATION}
        assert not broker.context.image.topics

    run_with_broker(tmp_path, scenario)


def test_a_client_whose_time_is_over_finds_the_topic_later(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        may_go_on = asyncio.Event()

        async def wait(change: ImageChange) -> None:
            await may_go_on.wait()

        broker.context.member.subscribe(wait)
        result = (await create(broker, topic("slow"), timeout_ms=10))["slow"]
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        may_go_on.set()
        await until(lambda: "slow" in broker.context.image.topics)

    run_with_broker(tmp_path, scenario)


POLICY = """
from headwater.broker.topics.policy import PolicyViolation

class FewPartitions:
    def validate(self, name, partitions, replication_factor, assignments, configs):
        count = len(assignments) if partitions is None else partitions
        if count > 2:
            raise PolicyViolation(f"{name} would have {count} partitions, and 2 are enough.")
"""


def test_a_policy_may_refuse_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules_for_topics.py").write_text(POLICY)
    monkeypatch.syspath_prepend(tmp_path)

    async def scenario(broker: HandlerBroker) -> None:
        results = await create(broker, topic("small", 2), topic("large", 3))
        assert results["small"].error_code == ErrorCode.NONE
        assert results["large"].error_code == ErrorCode.POLICY_VIOLATION
        assert results["large"].error_message == (
            "large would have 3 partitions, and 2 are enough."
        )
        manual = topic("manual", -1, -1, assignments={0: [0], 1: [0], 2: [0]})
        assert await code_of(broker, manual) is ErrorCode.POLICY_VIOLATION

    name = "rules_for_topics:FewPartitions"
    run_with_broker(tmp_path / "data", scenario, {"create.topic.policy.class.name": name})
