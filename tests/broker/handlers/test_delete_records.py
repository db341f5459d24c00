"""DeleteRecords: records in front of an offset go, where that is allowed."""

import asyncio
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

OK = ErrorCode.NONE


async def ask(
    broker: HandlerBroker,
    *asked: tuple[str, int, int],
    version: int = 2,
    timeout_ms: int = 1000,
) -> dict[tuple[str, int], tuple[int, int]]:
    """For (topic, partition, offset): error code and low watermark."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)],
            )
            for topic, partition, offset in asked
        ],
        timeout_ms=timeout_ms,
    )
    answer = await broker.ask(request, DeleteRecordsResponse, version=version)
    return {
        (topic.name, partition.partition_index): (partition.error_code, partition.low_watermark)
        for topic in answer.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_go_up_to_an_offset_or_to_the_high_watermark(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t", partitions=2)
        broker.append("t", 1, 2, 3, 4, 5)
        partition = broker.context.partitions.get("t", 0)
        for offset, start in ((0, 0), (2, 2), (1, 2), (-1, 5)):
            found = await ask(broker, ("t", 0, offset), version=version, timeout_ms=0)
            assert found == {("t", 0): (OK, start)}
            assert partition.log_start_offset == start
        assert broker.context.partitions.get("t", 1).log_start_offset == 0

    run_with_broker(tmp_path, scenario)


def test_what_cannot_be_deleted(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        await broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        await broker.create_topic("both", configs={"cleanup.policy": "compact,delete"})
        await broker.create_topic("__consumer_offsets")
        for topic in ("t", "compacted", "both"):
            broker.append(topic, 1)
        found = await ask(
            broker,
            ("t", 0, 2),
            ("t", 7, 0),
            ("missing", 0, 0),
            ("compacted", 0, 1),
            ("both", 0, 1),
            ("__consumer_offsets", 0, 0),
            ("__consumer_offsets", 50, 0),
        )
        assert found == {
            ("t", 0): (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
            ("t", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("missing", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("compacted", 0): (ErrorCode.POLICY_VIOLATION, -1),
            ("both", 0): (OK, 1),
            ("__consumer_offsets", 0): (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
            ("__consumer_offsets", 50): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        }
        found = await ask(broker, ("t", 0, -2))
        assert found == {("t", 0): (ErrorCode.OFFSET_OUT_OF_RANGE, -1)}
        assert broker.context.partitions.get("t", 0).log_start_offset == 0

    run_with_broker(tmp_path, scenario)


def test_of_a_partition_that_is_named_twice_the_last_offset_counts(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        broker.append("t", 1, 2, 3, 4)
        assert await ask(broker, ("t", 0, 4), ("t", 0, 2)) == {("t", 0): (OK, 2)}

    run_with_broker(tmp_path, scenario)


def test_consumers_start_behind_deleted_records_also_after_a_restart(tmp_path: Path) -> None:
    async def delete(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        broker.append("t", 1, 2, 3)
        await ask(broker, ("t", 0, 2))

    async def look(broker: HandlerBroker) -> None:
        partition = broker.context.partitions.get("t", 0)
        assert (partition.log_start_offset, partition.log_end_offset) == (2, 3)

    run_with_broker(tmp_path, delete)
    run_with_broker(tmp_path, look)


def test_the_answer_waits_for_the_replicas_or_for_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        broker.append("t", 1, 2, 3)
        partition = broker.context.partitions.get("t", 0)
        parked = broker.context.parked.delete_records
        lowest = 0
        monkeypatch.setattr(type(partition), "low_watermark", property(lambda _: lowest))
        late = await ask(broker, ("t", 0, 1), timeout_ms=20)
        assert late == {("t", 0): (ErrorCode.REQUEST_TIMED_OUT, -1)}
        assert len(parked) == 0
        waiting = asyncio.ensure_future(ask(broker, ("t", 0, 2), timeout_ms=60_000))
        while not len(parked):
            await asyncio.sleep(0)
        lowest = 1
        broker.context.parked.on_log_start(partition)
        assert len(parked) == 1
        lowest = 2
        broker.context.parked.on_log_start(partition)
        assert await waiting == {("t", 0): (OK, 2)}
        assert len(parked) == 0

    run_with_broker(tmp_path, scenario)
