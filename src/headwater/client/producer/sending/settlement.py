"""What becomes of a batch after an attempt to send it: it is done, sent again, split, or given up.

Part of the sender, and as sans-io as that. With idempotence the transaction manager judges failed
attempts, since only it knows what a missing number means for the batches behind it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.batch import ProduceBatch
from headwater.client.producer.errors import BatchExpiredError
from headwater.client.producer.intake.serializers import SerializationError
from headwater.client.producer.metrics import ProducerMetrics
from headwater.client.producer.sending.answers import Outcome
from headwater.client.producer.sending.verdicts import Verdict
from headwater.client.producer.transactions.manager import TransactionManager

#: Errors that leave open whether a batch was written: there was no answer, or replicas are behind.
_UNDECIDED: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)


class BatchSettlement:
    """Owned by the sender. `manager` is None without idempotence."""

    def __init__(
        self,
        accumulator: RecordAccumulator,
        upkeep: MetadataUpkeep,
        manager: TransactionManager | None,
        *,
        retries: int,
        delivery_timeout_s: float,
        policy: RetryPolicy,
        generator: random.Random,
        metrics: ProducerMetrics,
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        self._accumulator = accumulator
        self._upkeep = upkeep
        self._manager = manager
        self._retries = retries
        self._delivery_timeout_s = delivery_timeout_s
        self._policy = policy
        self._generator = generator
        self._metrics = metrics
        self._on_fatal: Callable[[KafkaError], None] | None = on_fatal

    def notice_fatal(self) -> None:
        """Tell once that this producer cannot go on."""
        error = None if self._manager is None else self._manager.fatal_error
        if error is not None and self._on_fatal is not None:
            on_fatal, self._on_fatal = self._on_fatal, None
            on_fatal(error)

    def settle(self, batch: ProduceBatch, outcome: Outcome, now_s: float) -> None:
        """One attempt of a batch is over."""
        if batch.is_done:
            # Its time was over before the answer came.
            return
        self._accumulator.off_the_wire(batch)
        error = outcome.error
        if error is None:
            if self._manager is not None:
                self._manager.acknowledged(batch, outcome.base_offset)
            batch.succeed(outcome.base_offset, outcome.log_append_time_ms)
            return
        if error.retriable:
            self._upkeep.is_stale()
        if error.code in _UNDECIDED:
            batch.may_be_written = True
        if error.code is ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            if self._manager is None or not batch.may_be_written:
                self._split(batch, now_s)
                return
            # Its parts would be other batches to the leader, and be written a second time.
            self._give_up(batch, error, now_s)
            return
        verdict = self._verdict(batch, outcome, now_s)
        # Before anybody hears of this batch and sends another record.
        self.notice_fatal()
        match verdict:
            case Verdict.RETRY | Verdict.RETRY_WITH_NEW_SEQUENCE:
                batch.last_failure = error
                pause_s = self._policy.pause_s(batch.attempt_count, self._generator)
                batch.not_before_s = now_s + pause_s
                self._accumulator.put_back([batch])
                self._metrics.retried(batch, now_s)
            case Verdict.ACKNOWLEDGED:
                batch.succeed(outcome.base_offset, outcome.log_append_time_ms)
            case Verdict.FAIL:
                self._metrics.failed(batch, now_s)
                told = error if self._manager is None else self._manager.told(error)
                batch.fail(told, outcome.record_errors)

    def _verdict(self, batch: ProduceBatch, outcome: Outcome, now_s: float) -> Verdict:
        error = outcome.error
        if error is None:
            return Verdict.ACKNOWLEDGED
        may_repeat = batch.attempt_count <= self._retries
        if self._manager is None:
            return Verdict.RETRY if may_repeat and error.retriable else Verdict.FAIL
        if not may_repeat:
            self._manager.given_up(batch, error, now_s)
            return Verdict.FAIL
        return self._manager.failed(batch, error, now_s)

    def _split(self, batch: ProduceBatch, now_s: float) -> None:
        """A batch is too large for its topic: two take its place."""
        parts = batch.split()
        if self._manager is not None:
            self._manager.split(batch, parts)
        self._accumulator.put_back(parts)
        self._metrics.was_split(now_s)

    # -- giving up -------------------------------------------------------------------------------

    def expire(self, now_s: float) -> None:
        expiry_s = self._accumulator.next_expiry_s()
        if expiry_s is None or expiry_s > now_s:
            return
        for batch in self._accumulator.take_expired(now_s):
            self._give_up(batch, self._expired(batch), now_s)

    def _expired(self, batch: ProduceBatch) -> BatchExpiredError:
        count, place = batch.record_count, batch.topic_partition
        what = f"A record for {place} was" if count == 1 else f"{count} records for {place} were"
        text = (
            f"{what} not written within delivery.timeout.ms, which is "
            f"{self._delivery_timeout_s * 1000:g}."
        )
        if batch.last_failure is not None:
            text += f" What stood in the way: {batch.last_failure}"
        error = BatchExpiredError(text)
        error.__cause__ = batch.last_failure
        return error

    def _give_up(self, batch: ProduceBatch, error: KafkaError, now_s: float) -> None:
        """It fails, though it may have been written."""
        if self._manager is not None:
            self._manager.given_up(batch, error, now_s)
        self._metrics.failed(batch, now_s)
        batch.fail(error)

    def cannot_be_encoded(self, batch: ProduceBatch, reason: Exception, now_s: float) -> None:
        """It fails before it was sent, and without using up a number."""
        self._accumulator.off_the_wire(batch)
        error = SerializationError(f"The records cannot be encoded: {reason}")
        self._give_up(batch, error, now_s)

    def fail_waiting(self, error: KafkaError) -> None:
        """Fail all that is not on its way, for it can come to nothing any more."""
        for batch in self._accumulator.take_waiting():
            batch.fail(error)

    def fail_all(self, error: KafkaError) -> None:
        """The producer is closed: nobody will know what became of these."""
        for batch in self._accumulator.take_all():
            batch.fail(error)
