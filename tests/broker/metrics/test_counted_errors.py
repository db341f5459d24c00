"""Errors that a broker answers are counted, whichever way the answer went."""

import asyncio
import struct
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.wire.api_keys import ApiKey
from headwater.wire.frames import encode_request
from headwater.wire.messages.alter_partition import AlterPartitionRequest
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headwater.wire.messages.list_config_resources import ListConfigResourcesRequest
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.schema import Message
from tests.support.brokers.running_broker import (
    RunningBroker,
    fetch_request,
    run_broker_scenario,
)

MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def metadata(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def described(*names: str) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names])


def nameless_software() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="?", client_software_version="?")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (metadata("orders"), {}),
        (
            metadata("orders", "nope", "neither", "bad name"),
            {MISSING: 2, ErrorCode.INVALID_TOPIC_EXCEPTION: 1},
        ),
        (described("orders", "nope", "neither"), {MISSING: 2}),
        (nameless_software(), {ErrorCode.INVALID_REQUEST: 1}),
        # The answer of a controller that is this broker, and what a handler raises.
        (
            DeleteTopicsRequest(topics=[DeleteTopicState(name="nope")], timeout_ms=1000),
            {MISSING: 1},
        ),
        (ListConfigResourcesRequest(resource_types=[77]), {ErrorCode.UNSUPPORTED_VERSION: 1}),
        # What is for brokers is refused before a handler sees it.
        (AlterPartitionRequest(), {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_are_counted_from_the_answer(
    tmp_path: Path, request_: Message, expected: dict[ErrorCode, int]
) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        await broker.send(request_)
        errors = broker.server.context.metrics.errors
        assert errors == {(request_.API_KEY, code): count for code, count in expected.items()}

    run_broker_scenario(tmp_path, scenario)


def test_a_version_that_is_too_new(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        endpoint = broker.server.listeners.endpoints[0]
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        [frame] = encode_request(ApiKey.API_VERSIONS, 4, 1, "test", ApiVersionsRequest())
        assert isinstance(frame, bytes)
        writer.write(frame[:6] + struct.pack(">h", 99) + frame[8:])
        await reader.readexactly(4)
        writer.close()
        await writer.wait_closed()
        metrics = broker.server.context.metrics
        assert metrics.errors == {(ApiKey.API_VERSIONS, ErrorCode.UNSUPPORTED_VERSION): 1}
        # The connection of the scenario asked, too.
        counts = {api_key: latency.count for api_key, latency in metrics.latencies()}
        assert counts[ApiKey.API_VERSIONS] == 2

    run_broker_scenario(tmp_path, scenario)


def test_produce_and_fetch(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("orders")
        errors = broker.server.context.metrics.errors
        await broker.produce("orders", [b"a"])
        await broker.fetch(fetch_request({("orders", 0): 0}))
        assert errors == {}
        assert (await broker.produce("nope", [b"a"])).error_code == MISSING
        assert (await broker.produce_batch("orders", b"no batch")).error_code != 0
        await broker.fetch(fetch_request({("orders", 0): 9, ("orders", 7): 0}))
        await broker.fetch(fetch_request({}, session_id=77, session_epoch=3))
        assert sum(count for (key, _), count in errors.items() if key == ApiKey.PRODUCE) == 2
        assert {code: count for (key, code), count in errors.items() if key == ApiKey.FETCH} == {
            ErrorCode.OFFSET_OUT_OF_RANGE: 1,
            MISSING: 1,
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND: 1,
        }

    run_broker_scenario(tmp_path, scenario)


def test_what_a_broker_asks_itself(tmp_path: Path) -> None:
    async def scenario(broker: RunningBroker) -> None:
        context = broker.server.context
        await context.channels.send(context.node_id, metadata("nope"), 10)
        assert context.metrics.errors == {(ApiKey.METADATA, MISSING): 1}
        with pytest.raises(KafkaError):
            request = ListConfigResourcesRequest(resource_types=[77])
            await context.channels.send(context.node_id, request, 10)
        refused = (ApiKey.LIST_CONFIG_RESOURCES, ErrorCode.UNSUPPORTED_VERSION)
        assert context.metrics.errors[refused] == 1

    run_broker_scenario(tmp_path, scenario)
