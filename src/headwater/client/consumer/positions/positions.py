"""Finds out where each partition is to be read from, and whether that is still true.

Sans-io; see `PartitionState` for the steps. First comes what the group has committed; without that,
or where it does not exist any more, `auto.offset.reset` says what to ask the leader for. When a
partition gets another leader epoch, the leader is asked where its log of the reader's epoch ends.
If that is before the position, the log was truncated, and what was read is not what the cluster
has: reading goes on at the first offset that differs, or, with `auto.offset.reset=none`, the user
hears of it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin.offsets import NO_OFFSET
from headwater.client.connection.cluster_metadata import NO_LEADER, ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import NoOffsetForPartitionError
from headwater.client.consumer.fetching.partition_state import (
    NO_EPOCH,
    PartitionState,
    PositionStep,
)
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.consumer.polling.failures import Failures
from headwater.client.consumer.polling.fetch_buffer import FetchBuffer
from headwater.client.consumer.positions.questions import (
    FoundOffset,
    PositionQuestion,
    epoch_end_request,
    epoch_ends,
    list_offsets_request,
    listed_offsets,
)
from headwater.client.consumer.positions.reset import LATEST, OffsetReset
from headwater.client.consumer.positions.truncation import has_same_log, truncation_error
from headwater.client.errors import UnknownTopicError, refusal
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.machines.ask import Ask
from headwater.client.machines.completion import Completion
from headwater.wire.schema import Message

_logger = logging.getLogger("headwater.client")

#: In place of the version in which a partition was missed, once the user knows.
_TOLD: Final = -1


class CommittedOffsets(Protocol):
    """Where committed offsets are asked for."""

    def fetch(
        self, partitions: Collection[TopicPartition], now_s: float
    ) -> Completion[dict[TopicPartition, OffsetAndMetadata | None]]: ...


class Positions:
    def __init__(
        self,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        *,
        metadata: ClusterMetadata,
        upkeep: MetadataUpkeep,
        committed: CommittedOffsets | None,
        default_reset: OffsetReset,
        isolation_level: IsolationLevel,
        request_timeout_s: float,
        policy: RetryPolicy,
        generator: random.Random,
        wall_ms: Callable[[], int],
        failures: Failures,
    ) -> None:
        self._subscription = subscription
        self._buffer = buffer
        self._metadata = metadata
        self._upkeep = upkeep
        self._committed = committed
        self._default_reset = default_reset
        self._isolation_level = isolation_level
        self._timeout_s = request_timeout_s
        self._policy = policy
        self._generator = generator
        self._wall_ms = wall_ms
        self._seen_s = 0.0
        #: Assigned partitions that the metadata lacked, with the version in which that was seen.
        self._missing: dict[TopicPartition, int] = {}
        self._failures = failures
        self._waiters: list[Completion[None]] = []

    def next_change(self) -> Completion[None]:
        """Done when any position, or what stands in the way of one, has changed."""
        waiter: Completion[None] = Completion()
        self._waiters.append(waiter)
        return waiter

    def metadata_changed(self) -> None:
        """Look at who leads now."""
        for state in self._subscription.partitions.values():
            self._follow_leader(state)

    # -- asking ----------------------------------------------------------------------------------

    def asks(self, now_s: float) -> Sequence[Ask]:
        self._seen_s = now_s
        uncommitted: list[PartitionState] = []
        resetting: dict[int, list[PartitionState]] = {}
        validating: dict[int, list[PartitionState]] = {}
        for state in self._subscription.partitions.values():
            if state.leader_id == NO_LEADER:
                self._follow_leader(state)
            if state.step is PositionStep.FETCHING:
                continue
            if state.is_under_way or now_s < state.not_before_s:
                continue
            if state.step is PositionStep.INITIALIZING:
                if self._committed is not None:
                    uncommitted.append(state)
                    continue
                state.request_reset()
            if state.leader_id == NO_LEADER:
                self._upkeep.is_stale()
            elif state.step is PositionStep.VALIDATING:
                self._prepare_validation(state, validating)
            elif self._reset_of(state).is_none:
                self._no_offset(state, now_s)
            else:
                resetting.setdefault(state.leader_id, []).append(state)
        if uncommitted and self._committed is not None:
            self._fetch_committed(self._committed, uncommitted, now_s)
        return [
            *(self._ask_reset(leader_id, states) for leader_id, states in resetting.items()),
            *(self._ask_epoch_end(leader_id, states) for leader_id, states in validating.items()),
        ]

    def wake_at_s(self, now_s: float) -> float | None:
        times_s = [
            state.not_before_s
            for state in self._subscription.partitions.values()
            if state.not_before_s > now_s and state.step is not PositionStep.FETCHING
        ]
        return min(times_s, default=None)

    def _reset_of(self, state: PartitionState) -> OffsetReset:
        return self._default_reset if state.reset is None else state.reset

    def _follow_leader(self, state: PartitionState) -> None:
        """Take over who leads; a position that was read in another epoch is to be validated."""
        topic = self._metadata.topic(state.topic_partition.topic)
        if topic is None:
            state.leader_id = NO_LEADER
            return
        try:
            partition = topic.partition(state.topic_partition.partition)
        except UnknownTopicError as error:
            state.leader_id = NO_LEADER
            if self._subscription.is_manual:
                self._miss(state.topic_partition, error)
            return
        self._missing.pop(state.topic_partition, None)
        state.follow_leader(partition.leader_id, partition.leader_epoch)

    def _miss(self, topic_partition: TopicPartition, error: UnknownTopicError) -> None:
        """Tell the user, once, that it does not exist; a partition just added is no error."""
        noticed = self._missing.setdefault(topic_partition, self._upkeep.version)
        if noticed == _TOLD:
            return
        # One answer may be to a question from before; the one after that is not.
        if self._upkeep.version < noticed + 2:
            self._upkeep.is_stale()
        else:
            self._missing[topic_partition] = _TOLD
            self._tell(error)

    # -- committed offsets -----------------------------------------------------------------------

    def _fetch_committed(
        self, committed: CommittedOffsets, states: list[PartitionState], now_s: float
    ) -> None:
        for state in states:
            state.is_under_way = True
        committed.fetch([state.topic_partition for state in states], now_s).when_done(
            lambda completion: self._committed_came(states, completion)
        )

    def _committed_came(
        self,
        states: list[PartitionState],
        completion: Completion[dict[TopicPartition, OffsetAndMetadata | None]],
    ) -> None:
        for state in states:
            state.is_under_way = False
        error = completion.error
        if error is not None:
            for state in states:
                self._pause(state, self._seen_s)
            self._tell(error if isinstance(error, KafkaError) else KafkaError(str(error)))
            return
        found: Mapping[TopicPartition, OffsetAndMetadata | None] = completion.result()
        for state in states:
            # Who has sought meanwhile does not want it any more.
            if state.step is not PositionStep.INITIALIZING:
                continue
            offset = found.get(state.topic_partition)
            if offset is None:
                state.request_reset()
            else:
                state.set_position(offset.offset, offset.leader_epoch)
        self._changed()

    def _no_offset(self, state: PartitionState, now_s: float) -> None:
        state.not_before_s = now_s + self._policy.backoff_max_ms / 1000
        self._tell(NoOffsetForPartitionError.of(state.topic_partition))

    # -- resets ----------------------------------------------------------------------------------

    def _ask_reset(self, leader_id: int, states: list[PartitionState]) -> Ask:
        timestamps: dict[TopicPartition, int] = {}
        for state in states:
            timestamps[state.topic_partition] = self._reset_of(state).timestamp(self._wall_ms())
        request = list_offsets_request(
            states, timestamps, self._isolation_level, int(self._timeout_s * 1000)
        )
        return self._ask(leader_id, request, states, listed_offsets, self._reset_found)

    def _reset_found(self, state: PartitionState, found: FoundOffset) -> None:
        if found.offset == NO_OFFSET:
            # No record is as new as that: the next one will be.
            state.request_reset(LATEST)
            return
        _logger.info("%s is read from offset %d on.", state.topic_partition, found.offset)
        state.set_position(found.offset)
        state.offset_epoch = found.leader_epoch

    # -- validation ------------------------------------------------------------------------------

    def _prepare_validation(
        self, state: PartitionState, validating: dict[int, list[PartitionState]]
    ) -> None:
        if self._buffer.has(state.topic_partition):
            return
        if state.offset_epoch == NO_EPOCH:
            state.step = PositionStep.FETCHING
            self._changed()
            return
        validating.setdefault(state.leader_id, []).append(state)

    def _ask_epoch_end(self, leader_id: int, states: list[PartitionState]) -> Ask:
        return self._ask(
            leader_id,
            epoch_end_request(states),
            states,
            epoch_ends,
            self._epoch_end_found,
        )

    def _epoch_end_found(self, state: PartitionState, found: FoundOffset) -> None:
        if has_same_log(state, found):
            state.step = PositionStep.FETCHING
            state.settled()
            return
        error = truncation_error(state, found)
        if self._default_reset.is_none:
            # It counts as validated from now on: the user decides where to go on.
            state.step = PositionStep.FETCHING
            state.settled()
            self._tell(error)
            return
        _logger.warning("%s", error)
        if error.divergent_offset is None:
            state.request_reset()
        else:
            state.set_position(error.divergent_offset)
            state.offset_epoch = found.leader_epoch

    # -- what all questions have in common -------------------------------------------------------

    def _ask(
        self,
        leader_id: int,
        request: Message,
        states: list[PartitionState],
        read: Callable[[Any], Iterable[FoundOffset]],
        take: Callable[[PartitionState, FoundOffset], None],
    ) -> Ask:
        question = PositionQuestion(states)

        def answered(response: Any, now_s: float) -> None:
            for state, outcome in question.outcomes(read(response)):
                if outcome is not None and not outcome.error_code:
                    take(state, outcome)
                    continue
                self._pause(state, now_s)
                self._upkeep.is_stale()
                if outcome is not None:
                    self._refused(state, outcome.error_code)
            self._changed()

        def failed(error: KafkaError, now_s: float) -> None:
            self._upkeep.is_stale()
            for state in question.abandoned():
                self._pause(state, now_s)
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                self._tell(error)

        return Ask(request, leader_id, answered, failed, timeout_s=self._timeout_s)

    def _refused(self, state: PartitionState, error_code: int) -> None:
        error = refusal(error_code, None, str(state.topic_partition))
        if not error.retriable and error.code is not ErrorCode.FENCED_LEADER_EPOCH:
            self._tell(error)

    def _pause(self, state: PartitionState, now_s: float) -> None:
        state.attempt_count += 1
        state.not_before_s = now_s + self._policy.pause_s(state.attempt_count, self._generator)

    def _tell(self, error: KafkaError) -> None:
        self._failures.add(error)
        self._changed()

    def _changed(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.succeed(None)
