"""OffsetForLeaderEpoch: where the records of a leader's term end."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.cluster.image.image import PartitionImage
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


async def ask(
    broker: HandlerBroker, topic: str, *asked: tuple[int, int, int], version: int = 4
) -> list[tuple[int, int, int, int]]:
    """For (partition, current epoch, wanted epoch): partition, error code, epoch, end offset."""
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=partition, current_leader_epoch=current, leader_epoch=wanted
                    )
                    for partition, current, wanted in asked
                ],
            )
        ]
    )
    answer = await broker.ask(request, OffsetForLeaderEpochResponse, version=version)
    [told] = answer.topics
    assert told.topic == topic
    return [(p.partition, p.error_code, p.leader_epoch, p.end_offset) for p in told.partitions]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_epochs_and_their_ends(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t", partitions=2)
        partition = broker.context.partitions.get("t", 0)
        broker.append("t", 1, 2)
        # Two elections later this broker leads again.
        partition.apply(PartitionImage((0,), (0,), 0, 2, 2))
        broker.append("t", 3, 4, 5)
        none = ErrorCode.NONE
        answer = await ask(
            broker,
            "t",
            *((0, -1, epoch) for epoch in (0, 1, 2, 3, -1)),
            (1, -1, 0),
            version=version,
        )
        assert answer == [
            (0, none, 0, 2),
            (0, none, 0, 2),
            (0, none, 2, 5),
            (0, none, -1, -1),
            (0, none, -1, -1),
            (1, none, 0, 0),
        ]

    run_with_broker(tmp_path, scenario)


def test_what_cannot_be_answered(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("t")
        broker.context.partitions.get("t", 0).apply(PartitionImage((0,), (0,), 0, 2, 2))
        answer = await ask(broker, "t", (0, 1, 0), (0, 2, 2), (0, 3, 0), (9, -1, 0))
        assert [code for _, code, _, _ in answer] == [
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await ask(broker, "missing", (0, -1, 0)) == [
            (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        ]

    run_with_broker(tmp_path, scenario)
