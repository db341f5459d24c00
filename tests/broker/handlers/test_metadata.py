"""Metadata: brokers and topics, by version, and topics that come when they are asked for."""

import uuid
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.support.brokers.handler_broker import ADVERTISED, HandlerBroker, run_with_broker

VERSIONS = range(
    SCHEMA_VERSIONS[ApiKey.METADATA].lowest, SCHEMA_VERSIONS[ApiKey.METADATA].highest + 1
)
NOT_ASKED = -(2**31)
NO_AUTO = {"auto.create.topics.enable": "false"}


async def ask(broker: HandlerBroker, request: MetadataRequest, version: int) -> MetadataResponse:
    return await broker.ask(request, MetadataResponse, version=version)


def named(*names: str, allow_auto_topic_creation: bool = True) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=allow_auto_topic_creation,
    )


def by_id(*topic_ids: uuid.UUID) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topic_ids]
    )


def errors(answer: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {topic.name: ErrorCode.from_wire(topic.error_code) for topic in answer.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_topics_and_partitions_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        await broker.create_topic("__consumer_offsets")
        answer = await ask(broker, named("orders", "__consumer_offsets"), version)
        [node] = answer.brokers
        assert (node.node_id, node.host, node.port) == (0, *ADVERTISED)
        assert node.rack == ("r1" if version >= 1 else None)
        assert answer.controller_id == (0 if version >= 1 else -1)
        assert answer.cluster_id == (broker.context.cluster_id if version >= 2 else None)
        assert answer.error_code == ErrorCode.NONE
        orders, offsets = answer.topics
        assert (orders.error_code, orders.name) == (ErrorCode.NONE, "orders")
        topic_id = broker.context.image.topics["orders"].topic_id
        assert orders.topic_id == (topic_id if version >= 10 else uuid.UUID(int=0))
        assert (orders.is_internal, offsets.is_internal) == (False, version >= 1)
        assert [partition.partition_index for partition in orders.partitions] == [0, 1]
        for partition in orders.partitions:
            assert partition.error_code == ErrorCode.NONE
            assert partition.leader_id == 0
            assert partition.leader_epoch == (0 if version >= 7 else -1)
            assert (partition.replica_nodes, partition.isr_nodes) == ([0], [0])
            assert partition.offline_replicas == []

    run_with_broker(tmp_path, scenario, {"broker.rack": "r1"})


def test_which_request_means_all_topics_depends_on_the_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        await broker.create_topic("b")
        for version in VERSIONS:
            empty = await ask(broker, MetadataRequest(topics=[]), version)
            assert len(empty.topics) == (2 if version == 0 else 0)
            if version >= 1:
                everything = await ask(broker, MetadataRequest(topics=None), version)
                assert errors(everything) == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [0, 3, 4, 9, 13])
def test_a_missing_topic_is_created_and_answered_at_once(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await ask(broker, named("new", "new"), version)
        [topic] = answer.topics
        assert (topic.name, topic.error_code) == ("new", ErrorCode.NONE)
        assert len(topic.partitions) == 3
        assert broker.context.partitions.get("new", 2).is_leader

    run_with_broker(tmp_path, scenario, {"num.partitions": "3"})


@pytest.mark.parametrize(("settings", "allowed"), [(NO_AUTO, True), ({}, False)])
def test_a_missing_topic_is_not_created_against_the_will_of_either_side(
    tmp_path: Path, settings: dict[str, str], allowed: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        request = named("new", "no name", allow_auto_topic_creation=allowed)
        answer = await ask(broker, request, 4)
        assert errors(answer) == {
            "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "no name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert not broker.context.image.topics

    run_with_broker(tmp_path, scenario, settings)


def test_what_cannot_be_created_is_told_apart(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a.b")
        answer = await ask(broker, named("a_b", "no name", "__transaction_state", "fine"), 12)
        assert errors(answer) == {
            "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "no name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "__transaction_state": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "fine": ErrorCode.NONE,
        }
        by_name: dict[str | None, MetadataResponseTopic] = {t.name: t for t in answer.topics}
        assert by_name["__transaction_state"].is_internal

    run_with_broker(tmp_path, scenario)


def test_too_few_brokers_for_the_default_replication_factor(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await ask(broker, named("new"), 12)
        assert errors(answer) == {"new": ErrorCode.INVALID_REPLICATION_FACTOR}

    run_with_broker(tmp_path, scenario, {"default.replication.factor": "2"})


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        topic_id = broker.context.image.topics["a"].topic_id
        unknown = uuid.UUID(int=77)
        answer = await ask(broker, by_id(topic_id, unknown), version)
        assert [(topic.name, topic.topic_id, topic.error_code) for topic in answer.topics] == [
            ("a", topic_id, ErrorCode.NONE),
            (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        # A name beside an id is not looked at, and creates nothing.
        mixed = by_id(topic_id)
        mixed.topics = [*(mixed.topics or []), MetadataRequestTopic(name="b")]
        answer = await ask(broker, mixed, version)
        assert [topic.name for topic in answer.topics] == ["a"]
        assert "b" not in broker.context.image.topics

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [10, 11])
def test_topics_by_id_before_their_time_are_refused(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        topic_id = broker.context.image.topics["a"].topic_id
        for request in (by_id(topic_id), by_id(uuid.UUID(int=0))):
            answer = await ask(broker, request, version)
            assert errors(answer) == {"": ErrorCode.INVALID_REQUEST}
            assert answer.brokers == []

    run_with_broker(tmp_path, scenario)


def test_a_topic_with_neither_name_nor_id_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await ask(broker, by_id(uuid.UUID(int=0)), 12)
        assert errors(answer) == {"": ErrorCode.INVALID_REQUEST}

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [7, 8, 10, 11, 13])
def test_authorized_operations_for_those_who_ask(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("a")
        request = named("a", "missing", allow_auto_topic_creation=False)
        answer = await ask(broker, request, version)
        assert [topic.topic_authorized_operations for topic in answer.topics] == [NOT_ASKED] * 2
        assert answer.cluster_authorized_operations == NOT_ASKED
        request.include_topic_authorized_operations = version >= 8
        request.include_cluster_authorized_operations = 8 <= version <= 10
        answer = await ask(broker, request, version)
        topic_bits = 3576 if version >= 8 else NOT_ASKED
        cluster_bits = 8096 if 8 <= version <= 10 else NOT_ASKED
        assert [topic.topic_authorized_operations for topic in answer.topics] == [topic_bits] * 2
        assert answer.cluster_authorized_operations == cluster_bits

    run_with_broker(tmp_path, scenario)


def test_a_client_is_told_the_address_of_its_own_listener(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        async def told(listener_name: str) -> tuple[str, int]:
            broker.connection.listener_name = listener_name
            answer = await ask(broker, MetadataRequest(topics=[]), 12)
            [node] = answer.brokers
            return node.host, node.port

        broker.connection.local = ("2001:db8::5", 1234)
        [inside, everywhere, _] = broker.context.image.brokers[0].endpoints
        assert await told("INSIDE") == ("127.0.0.1", inside.port)
        assert await told("EVERYWHERE") == ("2001:db8::5", everywhere.port)
        assert await told("OUTSIDE") == ("broker.example", 19092)

    run_with_broker(
        tmp_path,
        scenario,
        {
            "listeners": "INSIDE://127.0.0.1:0,EVERYWHERE://:0,OUTSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,EVERYWHERE:PLAINTEXT,"
            "OUTSIDE:PLAINTEXT",
            "advertised.listeners": "OUTSIDE://broker.example:19092",
        },
    )
