"""The coordinators' topics, and FindCoordinator, which has them made."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.topics.coordinator_topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    CoordinatorKind,
)
from headwater.coordinator.key_hash import partition_for
from headwater.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headwater.wire.records import Compression, read_batch_header
from tests.support.brokers.handler_broker import ADVERTISED, HandlerBroker, run_with_broker


async def find(broker: HandlerBroker, *keys: str, kind: int = 0) -> FindCoordinatorResponse:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
    return await broker.ask(request, FindCoordinatorResponse)


def test_nothing_is_made_before_somebody_asks(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        assert list(broker.context.image.topics) == []

    run_with_broker(tmp_path, scenario)


def test_all_keys_are_found_at_once(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        response = await find(broker, "a", "b")
        assert [each.key for each in response.coordinators] == ["a", "b"]
        for each in response.coordinators:
            assert (each.error_code, each.node_id) == (0, 0)
            assert (each.host, each.port) == ADVERTISED

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_one_key_in_older_versions(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        response = await broker.ask(
            FindCoordinatorRequest(key="a"), FindCoordinatorResponse, version=version
        )
        assert (response.error_code, response.node_id) == (0, 0)
        assert (response.host, response.port) == ADVERTISED
        # Kafka says so in the place of an error, and in newer versions nothing.
        assert response.error_message == ("NONE" if version else "")
        [found] = (await find(broker, "a")).coordinators
        assert (found.error_code, found.error_message) == (0, "")

    run_with_broker(tmp_path, scenario)


@pytest.mark.parametrize("kind", [-1, 2, 9])
def test_there_are_two_kinds_of_coordinators(tmp_path: Path, kind: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        (coordinator,) = (await find(broker, "a", kind=kind)).coordinators
        assert (coordinator.error_code, coordinator.node_id) == (ErrorCode.INVALID_REQUEST, -1)

    run_with_broker(tmp_path, scenario)


def test_the_topics_are_made_as_the_settings_say(tmp_path: Path) -> None:
    settings = {
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.segment.bytes": "1048577",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.segment.bytes": "1048578",
        "transaction.state.log.min.isr": "1",
    }

    async def scenario(broker: HandlerBroker) -> None:
        for kind in CoordinatorKind:
            await find(broker, "a", kind=kind)
        image = broker.context.image
        counts = {name: len(topic.partitions) for name, topic in image.topics.items()}
        assert counts == {OFFSETS_TOPIC: 3, TRANSACTIONS_TOPIC: 2}
        offsets = image.topic_configs(OFFSETS_TOPIC)
        assert (offsets["cleanup.policy"], offsets["segment.bytes"]) == ("compact", "1048577")
        transactions = image.topic_configs(TRANSACTIONS_TOPIC)
        assert transactions["segment.bytes"] == "1048578"
        assert transactions["min.insync.replicas"] == "1"

    run_with_broker(tmp_path, scenario, settings)


def test_by_default_there_are_fifty_partitions_with_as_many_replicas_as_brokers(
    tmp_path: Path,
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await find(broker, "a")
        topic = broker.context.image.topics[OFFSETS_TOPIC]
        assert (len(topic.partitions), topic.replication_factor) == (50, 1)

    run_with_broker(tmp_path, scenario)


def test_commits_are_compressed_as_the_setting_says(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        await find(broker, "billing")
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = OffsetCommitRequest(
            group_id="billing",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )
        response = await broker.ask(request, OffsetCommitResponse, version=9)
        assert response.topics[0].partitions[0].error_code == 0
        number = partition_for("billing", 50)
        region = broker.context.partitions.get(OFFSETS_TOPIC, number).log.read(0, 1_000).region
        assert region is not None
        assert read_batch_header(region.read()).compression is Compression.ZSTD

    run_with_broker(tmp_path, scenario, {"offsets.topic.compression.codec": "4"})
