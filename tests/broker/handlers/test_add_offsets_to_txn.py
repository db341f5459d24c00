"""AddOffsetsToTxn: the partition of a group's offsets becomes part of the transaction."""

from __future__ import annotations

from pathlib import Path

from headwater.base.errors import ErrorCode
from headwater.coordinator.key_hash import partition_for
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.values.transaction_requests import SETTINGS, add_offsets, describe, init


def test_every_version_adds_the_home_of_the_group(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version in range(5):
            producer = await init(broker, f"producer-{version}")
            assert await add_offsets(broker, producer, "readers", version=version) == 0
            (described,) = await describe(broker, producer.transactional_id)
            (topic,) = described.topics
            assert topic.topic == "__consumer_offsets"
            assert topic.partitions == [partition_for("readers", 4)]

    run_with_broker(tmp_path, scenario, SETTINGS)


def test_the_error_for_a_fenced_producer_depends_on_the_version(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        producer = await init(broker)
        await init(broker)
        for version in range(5):
            fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
            assert await add_offsets(broker, producer, "readers", version=version) == fenced

    run_with_broker(tmp_path, scenario, SETTINGS)
