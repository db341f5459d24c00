"""A marker sender and what it talks to: brokers that answer as the test says, and a coordinator.

Everything runs in virtual time, so that waiting for the next attempt costs nothing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, cast

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.topics.coordinator_topics import TRANSACTIONS_TOPIC
from headwater.broker.transactions.markers import MarkerSender
from headwater.cluster.image.image import ClusterImage, PartitionImage, TopicImage
from headwater.cluster.image.layered_map import LayeredMap
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.transaction_metadata import PreparedTransaction
from headwater.sim.virtual_loop import VirtualLoop
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NODE_ID = 1
COORDINATOR_EPOCH = 3

#: What a broker says to the marker of a producer for a partition.
Say = Callable[[int, int, TopicPartition], ErrorCode]


def topic_image(name: str, leaders: Sequence[int], leader_epoch: int = 0) -> TopicImage:
    return TopicImage(
        name,
        uuid.uuid5(uuid.NAMESPACE_URL, name),
        tuple(PartitionImage((1, 2), (1, 2), leader, leader_epoch, 0) for leader in leaders),
    )


def image_of(leaders: Mapping[str, Sequence[int]], coordinator_epoch: int) -> ClusterImage:
    topics = {name: topic_image(name, each) for name, each in leaders.items()}
    topics[TRANSACTIONS_TOPIC] = topic_image(TRANSACTIONS_TOPIC, [NODE_ID], coordinator_epoch)
    return ClusterImage(topics=LayeredMap(topics))


class _Settings:
    def integer(self, name: str) -> int:
        return {"request.timeout.ms": 30_000}[name]


class MarkerWorld:
    """Stands for the context of the broker, too."""

    def __init__(self, leaders: Mapping[str, Sequence[int]]) -> None:
        self.node_id = NODE_ID
        self.settings = _Settings()
        self.image = image_of(leaders, COORDINATOR_EPOCH)
        self.channels = self
        self.transactions = self
        self.background = BackgroundTasks()
        self.say: Say = lambda *_: ErrorCode.NONE
        self.say_complete: Callable[[], KafkaError | None] = lambda: None
        #: (broker, producer id, partition) in the order in which they were sent.
        self.sent: list[tuple[int, int, TopicPartition]] = []
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.completed: list[PreparedTransaction] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.sender = MarkerSender(cast(BrokerContext, self), lambda: self.image)

    async def send(self, broker_id: int, request: WriteTxnMarkersRequest, timeout_s: float) -> Any:
        assert timeout_s > 30
        self.requests.append((broker_id, request))
        await self.gate.wait()
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                self._take(
                                    broker_id,
                                    marker.producer_id,
                                    TopicPartition(topic.name, number),
                                )
                                for number in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def _take(
        self, broker_id: int, producer_id: int, partition: TopicPartition
    ) -> WritableTxnMarkerPartitionResult:
        self.sent.append((broker_id, producer_id, partition))
        code = self.say(broker_id, producer_id, partition)
        return WritableTxnMarkerPartitionResult(
            partition_index=partition.partition, error_code=code
        )

    def is_led(self, _: str, leader_epoch: int) -> bool:
        """The coordinator's, of whose topic there is one partition."""
        partition = self.image.topics[TRANSACTIONS_TOPIC].partitions[0]
        return (partition.leader, partition.leader_epoch) == (NODE_ID, leader_epoch)

    async def write(self, transactional_id: str, operation: Callable[[Any, int], Any]) -> Any:
        """The coordinator's: the operation is `markers_written` of a shard."""
        error = self.say_complete()
        if error is not None:
            raise error
        return operation(self, 0)

    def markers_written(self, prepared: PreparedTransaction, now_ms: int) -> bool:
        self.completed.append(prepared)
        return True


def prepared(
    transactional_id: str, producer_id: int, *partitions: TopicPartition, is_commit: bool = True
) -> PreparedTransaction:
    return PreparedTransaction(
        transactional_id,
        ProducerIdentity(producer_id, 5),
        is_commit,
        COORDINATOR_EPOCH,
        frozenset(partitions),
    )


def run_marker_world(
    leaders: Mapping[str, Sequence[int]],
    scenario: Callable[[MarkerWorld], Coroutine[Any, Any, None]],
) -> None:
    loop = VirtualLoop(Random(0))
    asyncio.set_event_loop(loop)

    async def run() -> None:
        world = MarkerWorld(leaders)
        try:
            await scenario(world)
        finally:
            await world.sender.close()

    try:
        loop.run_until_complete(run())
        assert loop.unhandled == []
    finally:
        asyncio.set_event_loop(None)
        loop.close()
