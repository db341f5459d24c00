"""Fetches records from the leaders of the partitions that a consumer reads.

Sans-io. One fetch per broker is under way at most, over a lane of its own, and asks for all
partitions of that broker that may be fetched. The next one leaves when the polling thread has begun
with the last fetch that came from there: so there is one answer ahead of the user and not more, and
no partition waits at the broker behind an idle one while it was left out of a request.

A partition's answer counts only if it is for the offset where the partition goes on: who has sought
elsewhere meanwhile does not get it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.columns.decoding.fetched_together import FetchedTogether
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import NO_LEADER, ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.errors import InvalidOffsetError
from headwater.client.consumer.fetching.partition_state import (
    NO_REPLICA,
    PartitionState,
    PositionStep,
)
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.metrics import ConsumerMetrics
from headwater.client.consumer.polling.failures import Failures
from headwater.client.consumer.polling.fetch_buffer import FetchBuffer
from headwater.client.consumer.positions.reset import OffsetReset
from headwater.client.errors import refusal
from headwater.client.fetch.conversation import FetchAnswer, FetchConversation, FetchLimits
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.fetch.session import SESSION_ERRORS, FetchPosition
from headwater.client.machines.ask import Ask
from headwater.wire.messages.fetch import FetchResponse

_logger = logging.getLogger("headwater.client")

#: Errors that no retry mends, for the user to hear.
_TOLD: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class _Broker:
    """The fetches from one broker."""

    __slots__ = ("attempt_count", "conversation", "is_under_way", "not_before_s", "sent_s")

    def __init__(self, conversation: FetchConversation) -> None:
        self.conversation = conversation
        self.is_under_way = False
        self.not_before_s = 0.0
        self.attempt_count = 0
        self.sent_s = 0.0


class Fetcher:
    def __init__(
        self,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        *,
        metadata: ClusterMetadata,
        upkeep: MetadataUpkeep,
        limits: FetchLimits,
        isolation_level: IsolationLevel,
        default_reset: OffsetReset,
        check_crc: bool,
        rack: str,
        preferred_lease_s: float,
        request_timeout_s: float,
        policy: RetryPolicy,
        generator: random.Random,
        metrics: ConsumerMetrics,
        failures: Failures,
        notify: Callable[[], None],
    ) -> None:
        self._subscription = subscription
        self._buffer = buffer
        self._metadata = metadata
        self._upkeep = upkeep
        self._limits = limits
        self._isolation_level = isolation_level
        self._default_reset = default_reset
        self._check_crc = check_crc
        self._rack = rack
        self._preferred_lease_s = preferred_lease_s
        self._timeout_s = request_timeout_s + limits.max_wait_ms / 1000
        self._policy = policy
        self._generator = generator
        self._metrics = metrics
        self._notify = notify
        self._brokers: dict[int, _Broker] = {}
        self._failures = failures

    # -- asking ----------------------------------------------------------------------------------

    def asks(self, now_s: float) -> Sequence[Ask]:
        by_broker: dict[int, list[PartitionState]] = {}
        held: set[int] = set()
        for state in self._subscription.partitions.values():
            if not state.is_fetchable or now_s < state.not_before_s:
                continue
            broker_id = self._broker_for(state, now_s)
            if broker_id in held:
                continue
            if broker_id == NO_LEADER:
                self._upkeep.is_stale()
            elif self._is_busy(broker_id, now_s) or self._buffer.has_enough(state.topic_partition):
                held.add(broker_id)
            else:
                by_broker.setdefault(broker_id, []).append(state)
        return [
            self._ask(broker_id, states, now_s)
            for broker_id, states in by_broker.items()
            if broker_id not in held
        ]

    def wake_at_s(self, now_s: float) -> float | None:
        times_s = [
            state.not_before_s
            for state in self._subscription.partitions.values()
            if state.not_before_s > now_s and state.is_fetchable
        ]
        times_s += [
            broker.not_before_s
            for broker in self._brokers.values()
            if broker.not_before_s > now_s and not broker.is_under_way
        ]
        return min(times_s, default=None)

    def _is_busy(self, broker_id: int, now_s: float) -> bool:
        broker = self._brokers.get(broker_id)
        return broker is not None and (broker.is_under_way or now_s < broker.not_before_s)

    def _broker_for(self, state: PartitionState, now_s: float) -> int:
        """The broker to fetch a partition from: its leader, or a replica that it named."""
        preferred_id = state.preferred_replica_id
        if preferred_id != NO_REPLICA:
            if now_s < state.preferred_until_s and preferred_id in self._metadata.brokers:
                return preferred_id
            state.preferred_replica_id = NO_REPLICA
        return state.leader_id if state.leader_id in self._metadata.brokers else NO_LEADER

    def _ask(self, broker_id: int, states: list[PartitionState], now_s: float) -> Ask:
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = _Broker(self._new_conversation())
        wanted: dict[TopicPartition, FetchPosition] = {}
        for state in states:
            topic = self._metadata.existing_topic(state.topic_partition.topic)
            wanted[state.topic_partition] = FetchPosition(
                topic.topic_id, state.fetch_offset, state.current_leader_epoch
            )
        broker.is_under_way = True
        broker.sent_s = now_s
        request = broker.conversation.request(wanted)
        return Ask(
            request,
            broker_id,
            lambda response, at_s: self._answered(broker_id, broker, response, at_s),
            lambda error, at_s: self._failed(broker_id, broker, error, at_s),
            timeout_s=self._timeout_s,
            version_max=broker.conversation.version_max,
            lane=Lane.FETCH,
        )

    def _new_conversation(self) -> FetchConversation:
        return FetchConversation(
            limits=self._limits,
            isolation_level=self._isolation_level,
            check_crc=self._check_crc,
            rack=self._rack,
        )

    # -- answers ---------------------------------------------------------------------------------

    def _failed(self, broker_id: int, broker: _Broker, error: KafkaError, now_s: float) -> None:
        """No answer came: the leaders may be elsewhere now, and replicas that they named away."""
        broker.is_under_way = False
        for state in self._subscription.partitions.values():
            if state.preferred_replica_id == broker_id:
                state.preferred_replica_id = NO_REPLICA
        broker.conversation.failed()
        self._upkeep.is_stale()
        self._pause(broker, now_s)
        if error.code in _TOLD:
            self._failures.add(error)

    def _pause(self, broker: _Broker, now_s: float) -> None:
        broker.attempt_count += 1
        pause_s = self._policy.pause_s(broker.attempt_count, self._generator)
        broker.not_before_s = now_s + pause_s

    def _answered(
        self, broker_id: int, broker: _Broker, response: FetchResponse, now_s: float
    ) -> None:
        broker.is_under_way = False
        answer = broker.conversation.answered(response)
        self._metrics.fetched(now_s - broker.sent_s, response.throttle_time_ms, now_s)
        if response.error_code:
            if response.error_code not in SESSION_ERRORS:
                self._upkeep.is_stale()
                _logger.warning(
                    "%s",
                    refusal(response.error_code, None, f"Fetching from broker {broker_id}"),
                )
            self._pause(broker, now_s)
            return
        broker.attempt_count = 0
        broker.not_before_s = now_s + response.throttle_time_ms / 1000
        if self._take(broker_id, answer, now_s):
            self._notify()

    def _take(self, broker_id: int, answer: FetchAnswer, now_s: float) -> bool:
        """Put what came where it belongs; whether the polling thread has something to look at."""
        has_news = False
        together = FetchedTogether(answer.fetched, check_crc=self._check_crc)
        for fetched in answer.fetched:
            state = self._current(fetched.topic_partition, fetched.fetch_offset)
            if state is None:
                continue
            state.attempt_count = 0
            state.high_watermark = fetched.high_watermark
            state.last_stable_offset = fetched.last_stable_offset
            state.log_start_offset = fetched.log_start_offset
            if fetched.has_batches:
                state.fetch_offset = fetched.next_offset
                self._buffer.add(state, fetched, together)
                self._metrics.partition_fetched(fetched.size_bytes, now_s)
                has_news = True
        for topic_partition, replica_id in answer.preferred.items():
            state = self._current(topic_partition, answer.asked[topic_partition])
            if state is not None:
                state.preferred_replica_id = replica_id
                state.preferred_until_s = now_s + self._preferred_lease_s
        for topic_partition, error in answer.errors.items():
            state = self._current(topic_partition, answer.asked[topic_partition])
            if state is not None:
                self._partition_failed(broker_id, state, error, now_s)
        return has_news

    def _current(self, topic_partition: TopicPartition, offset: int) -> PartitionState | None:
        """The partition's state if it is still there that it wants to go on."""
        state = self._subscription.partitions.get(topic_partition)
        wants = state is not None and state.step is PositionStep.FETCHING
        return state if wants and state is not None and state.fetch_offset == offset else None

    def _partition_failed(
        self, broker_id: int, state: PartitionState, error: KafkaError, now_s: float
    ) -> None:
        state.attempt_count += 1
        state.not_before_s = now_s + self._policy.pause_s(state.attempt_count, self._generator)
        was_preferred = state.preferred_replica_id == broker_id
        state.preferred_replica_id = NO_REPLICA
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # What is buffered is handed out first, and then the question asked again.
            if not was_preferred and not self._buffer.has(state.topic_partition):
                self._out_of_range(state)
        elif error.code in _TOLD:
            self._failures.add(error)
        else:
            self._upkeep.is_stale()
            if not error.retriable:
                _logger.warning("Fetching %s: %s", state.topic_partition, error)

    def _out_of_range(self, state: PartitionState) -> None:
        topic_partition, offset = state.topic_partition, state.fetch_offset
        if self._default_reset.is_none:
            self._failures.add(
                InvalidOffsetError(
                    topic_partition,
                    f"{topic_partition} does not have offset {offset}, and auto.offset.reset is "
                    "none: seek to an offset that it has.",
                )
            )
            return
        _logger.info(
            "%s does not have offset %d: going on from the %s one.",
            topic_partition,
            offset,
            self._default_reset.name,
        )
        state.request_reset()
