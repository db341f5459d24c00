"""A producer's machines without loop, thread or network, for tests that play the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.machines.ask import Machine
from headwater.client.machines.completion import Completion
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.intake.serialized_record import SerializedRecord
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.producer.sending.sender import Sender, SenderSettings
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS
from headwater.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from headwater.wire.records import Compression
from tests.support.fakes.cluster_with_faults import TOPIC, FakeClusterWithFaults

T = TypeVar("T")

_RECORD_SIZE = 40
_DELIVERY_TIMEOUT_S = 60.0


def api_versions(*, is_version_2: bool, init_producer_id_max: int = 6) -> ApiVersionsResponse:
    level = 2 if is_version_2 else 1
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=22, min_version=0, max_version=init_producer_id_max)],
        finalized_features=[
            FinalizedFeatureKey(name="transaction.version", max_version_level=level)
        ],
    )


class LoneProducer:
    """`send` and `run`; the rest is as in the real one."""

    def __init__(
        self, cluster: FakeClusterWithFaults, generator: random.Random, **settings: object
    ) -> None:
        values = parse_settings(
            PRODUCER_SETTINGS, {"bootstrap.servers": "127.0.0.1:9092"}, settings
        )
        self.cluster = cluster
        #: Whether brokers say so, though the coordinator has an older transaction to end first.
        self.moves_to_version_2 = False
        policy = RetryPolicy()
        metadata = ClusterMetadata()
        upkeep = MetadataUpkeep(
            metadata, max_age_s=300.0, policy=policy, generator=generator, allow_auto_creation=False
        )
        upkeep.add_topics([TOPIC])
        # Two records fit into a batch.
        self.accumulator = RecordAccumulator(
            batch_size_bytes=61 + 2 * _RECORD_SIZE,
            linger_s=0.0,
            buffer_bytes=1 << 20,
            delivery_timeout_s=_DELIVERY_TIMEOUT_S,
        )
        self.manager = TransactionManager(
            values,
            coordinators=CoordinatorCache(),
            policy=policy,
            generator=generator,
            api_versions=lambda: api_versions(
                is_version_2=self.moves_to_version_2 or cluster.coordinator.is_version_2
            ),
        )
        self.sender = Sender(
            SenderSettings(
                acks=-1,
                request_timeout_ms=30_000,
                delivery_timeout_s=_DELIVERY_TIMEOUT_S,
                request_bytes_max=1 << 20,
                in_flight_max=5,
                retries=2**31 - 1,
                compression=Compression.NONE,
                compression_level=None,
            ),
            self.accumulator,
            metadata,
            upkeep,
            self.manager,
            policy=policy,
            generator=generator,
            metrics=ProducerMetrics(0.0),
            on_fatal=lambda error: None,
        )
        self.manager.is_flushed = lambda: self.accumulator.is_empty
        self.manager.on_abort = self.sender.fail_waiting
        self.machines: list[Machine] = [upkeep, self.manager, self.sender]

    def send(self, partition: int, value: bytes) -> DeliveryFuture:
        topic_partition = TopicPartition(TOPIC, partition)
        self.manager.check_may_send(topic_partition)
        self.manager.note_partition(topic_partition)
        queue = self.accumulator.queue(topic_partition)
        record = SerializedRecord(0, None, value, (), _RECORD_SIZE)
        future = self.accumulator.append(queue, record)
        if future is None:
            future = self.accumulator.append_to_new(queue, record, self.cluster.now_s)
        assert future is not None
        return future

    def run(self, until: Callable[[], bool]) -> None:
        self.cluster.run(self.machines, until=until)

    def run_steps(self, count: int) -> None:
        """Let things happen for a while, whatever comes of it."""
        left = iter(range(count))
        self.run(lambda: self.accumulator.is_empty or next(left, None) is None)

    def finish(self, completion: Completion[T]) -> T:
        self.run(lambda: completion.is_done)
        return completion.result()

    def flush(self) -> None:
        self.run(lambda: self.accumulator.is_empty)
