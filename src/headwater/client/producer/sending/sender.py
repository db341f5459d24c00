"""Sender: takes batches from the accumulator, sends them to their leaders, sees to what comes back.

A machine. A request goes to one broker and has at most one batch for each partition; a broker may
owe as many answers as `max.in.flight.requests.per.connection` says. A batch that failed and may be
sent again waits for its turn in its partition's queue, in its old place, so that nothing overtakes
it: with idempotence the brokers refuse what came too early, without it only one request in flight
keeps the order. What has waited for `delivery.timeout.ms` fails, wherever it is.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_metadata import NO_LEADER, ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import BrokerUnreachableError, NoBrokerError, UnknownBrokerError
from headwater.client.machines.ask import Ask
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.idempotence.identity import NO_IDENTITY
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.producer.sending.answers import (
    VERSION_WITHOUT_IDS_MAX,
    Outcome,
    outcomes_of,
    topic_data,
)
from headwater.client.producer.sending.settlement import BatchSettlement
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.wire.messages.produce import ProduceRequest, ProduceResponse
from headwater.wire.records import Compression


class SenderSettings(NamedTuple):
    acks: int
    request_timeout_ms: int
    delivery_timeout_s: float
    request_bytes_max: int
    in_flight_max: int
    retries: int
    compression: Compression
    compression_level: int | None


class Sender:
    """Owned by one loop. `manager` is None without idempotence."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        metadata: ClusterMetadata,
        upkeep: MetadataUpkeep,
        manager: TransactionManager | None,
        *,
        policy: RetryPolicy,
        generator: random.Random,
        metrics: ProducerMetrics,
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._metadata = metadata
        self._upkeep = upkeep
        self._manager = manager
        self._metrics = metrics
        self._settlement = BatchSettlement(
            accumulator,
            upkeep,
            manager,
            retries=settings.retries,
            delivery_timeout_s=settings.delivery_timeout_s,
            policy=policy,
            generator=generator,
            metrics=metrics,
            on_fatal=on_fatal,
        )
        self._in_flight: Counter[int] = Counter()
        #: Until when a broker asked to be left alone, because a quota is used up.
        self._throttled_until_s: dict[int, float] = {}
        self._wake_s: float | None = None

    @property
    def in_flight_count(self) -> int:
        """Requests whose answers have not come."""
        return self._in_flight.total()

    def asks(self, now_s: float) -> Sequence[Ask]:
        self._settlement.notice_fatal()
        self._settlement.expire(now_s)
        self._wake_s = self._accumulator.next_expiry_s()
        ready = self._ready(now_s)
        asks: list[Ask] = []
        for broker_id, queues in ready.items():
            while self._in_flight[broker_id] < self._settings.in_flight_max:
                batches = self._take(queues, now_s)
                if not batches:
                    break
                asks.append(self._request(broker_id, batches, now_s))
        return asks

    def wake_at_s(self, now_s: float) -> float | None:
        return self._wake_s

    # -- choosing --------------------------------------------------------------------------------

    def _ready(self, now_s: float) -> dict[int, list[PartitionQueue]]:
        """The queues of which something may go now, by leader; and when the next ones will."""
        everything = self._is_urgent
        ready: dict[int, list[PartitionQueue]] = defaultdict(list)
        for queue in self._accumulator.filled():
            due_s = self._accumulator.due_s(queue, everything=everything)
            if due_s is None:
                continue
            if due_s > now_s:
                self._wake_by(due_s)
                continue
            leader_id = self._leader_of(queue)
            if leader_id == NO_LEADER:
                self._upkeep.is_stale()
                continue
            throttled_until_s = self._throttled_until_s.get(leader_id, 0.0)
            if throttled_until_s > now_s:
                self._wake_by(throttled_until_s)
                continue
            ready[leader_id].append(queue)
        return ready

    @property
    def _is_urgent(self) -> bool:
        is_completing = self._manager is not None and self._manager.is_completing
        return is_completing or self._accumulator.is_urgent

    def _leader_of(self, queue: PartitionQueue) -> int:
        try:
            return self._metadata.leader_of(*queue.topic_partition)
        except KafkaError:
            return NO_LEADER

    def _wake_by(self, at_s: float) -> None:
        self._wake_s = at_s if self._wake_s is None else min(self._wake_s, at_s)

    def _take(self, queues: list[PartitionQueue], now_s: float) -> list[ProduceBatch]:
        """The next batch of each queue, as many as a request holds."""
        everything = self._is_urgent
        batches: list[ProduceBatch] = []
        size_bytes = 0
        for queue in queues:
            due_s = self._accumulator.due_s(queue, everything=everything)
            if due_s is None:
                continue
            if due_s > now_s:
                self._wake_by(due_s)
                continue
            first = queue.waiting[0]
            size_bytes += first.size_bytes
            if batches and size_bytes > self._settings.request_bytes_max:
                break
            if self._may_go(queue, first):
                batch = self._accumulator.take(queue)
                if self._encode(batch, now_s):
                    batches.append(batch)
        return batches

    def _may_go(self, queue: PartitionQueue, batch: ProduceBatch) -> bool:
        if self._manager is not None:
            if batch.identity == NO_IDENTITY:
                return self._manager.may_drain(queue.topic_partition)
            return self._manager.may_resend(batch)
        # Two connections may be involved after a change of leader, so their limit is not enough.
        return self._settings.in_flight_max > 1 or not queue.on_the_wire

    # -- sending ---------------------------------------------------------------------------------

    def _encode(self, batch: ProduceBatch, now_s: float) -> bool:
        """Make its bytes; one for which that cannot be done fails, without using up a number."""
        settings, manager = self._settings, self._manager
        is_transactional = manager is not None and manager.is_transactional
        try:
            batch.encode(
                settings.compression, settings.compression_level, is_transactional=is_transactional
            )
        except Exception as error:
            self._settlement.cannot_be_encoded(batch, error, now_s)
            return False
        if manager is not None:
            manager.sequence(batch)
        batch.stamp()
        return True

    def _request(self, broker_id: int, batches: list[ProduceBatch], now_s: float) -> Ask:
        settings, manager = self._settings, self._manager
        topics, have_ids = topic_data(batches, self._metadata)
        request = ProduceRequest(
            transactional_id=None if manager is None else manager.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=topics,
        )
        version_max = None if manager is None else manager.produce_version_max
        if not have_ids:
            version_max = min(version_max or VERSION_WITHOUT_IDS_MAX, VERSION_WITHOUT_IDS_MAX)
        self._in_flight[broker_id] += 1
        self._metrics.requested(batches, now_s)
        return Ask(
            request,
            broker_id,
            partial(self._answered, broker_id, batches, request, now_s),
            partial(self._failed, broker_id, batches),
            timeout_s=settings.request_timeout_ms / 1000,
            version_max=version_max,
            is_answered=settings.acks != 0,
        )

    # -- outcomes --------------------------------------------------------------------------------

    def _answered(
        self,
        broker_id: int,
        batches: list[ProduceBatch],
        request: ProduceRequest,
        sent_s: float,
        response: ProduceResponse | None,
        now_s: float,
    ) -> None:
        self._in_flight[broker_id] -= 1
        if response is None:
            for batch in batches:
                self._settlement.settle(batch, Outcome(None), now_s)
            return
        self._metrics.answered(now_s - sent_s, response.throttle_time_ms, now_s)
        if response.throttle_time_ms:
            self._throttled_until_s[broker_id] = now_s + response.throttle_time_ms / 1000
        for batch, outcome in outcomes_of(batches, request, response):
            self._settlement.settle(batch, outcome, now_s)

    def _failed(
        self, broker_id: int, batches: list[ProduceBatch], error: KafkaError, now_s: float
    ) -> None:
        self._in_flight[broker_id] -= 1
        if isinstance(error, NoBrokerError | UnknownBrokerError):
            # What the cluster had a moment ago may be back after a restart.
            error = BrokerUnreachableError(str(error))
        for batch in batches:
            self._settlement.settle(batch, Outcome(error), now_s)

    # -- giving up -------------------------------------------------------------------------------

    def fail_waiting(self, error: KafkaError) -> None:
        """Fail all that is not on its way, for it can come to nothing any more."""
        self._settlement.fail_waiting(error)

    def fail_all(self, error: KafkaError) -> None:
        """The producer is closed: nobody will know what became of its records."""
        self._settlement.fail_all(error)
