"""Numbers an idempotent producer's batches, and takes a transactional one through transactions.

A sans-io machine that talks to coordinators, one request at a time, and that the sender asks before
it sends and tells what became of each batch. What it decides about a failed batch:

- A plain idempotent producer sends again what may be sent again. Where a batch leaves a hole in the
  numbers of its partition, because it was given up or refused, the user has heard of that batch's
  loss, and the rest goes on under a new epoch (see `partition_sequence`). Where the leader misses
  something that it had acknowledged, records are lost of which nobody has heard: that is fatal, and
  every later call fails until there is a new producer.
- In a transaction whatever cannot be sent again leaves nothing but to abort it. Nothing of it will
  be read by who reads committed records, so there is nothing to be lost either.

Owned by one event loop, except that `check_may_send` and `note_partition` are called by whichever
thread sends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingValues
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.retry import RetryPolicy
from headwater.client.kafka_errors import ProducerFencedError
from headwater.client.machines.ask import Ask
from headwater.client.producer.idempotence.identity import (
    NO_IDENTITY,
    PreparedTransactionState,
    ProducerIdentity,
)
from headwater.client.producer.idempotence.partition_sequence import SequencedBatch
from headwater.client.producer.sending.verdicts import Verdict, judge
from headwater.client.producer.transactions.coordinator_conversation import CoordinatorConversation
from headwater.client.producer.transactions.coordinator_errors import (
    Meaning,
    may_be_granted,
    meaning_for_coordination,
)
from headwater.client.producer.transactions.operations import TransactionOperations
from headwater.client.producer.transactions.producer_state import ProducerState
from headwater.client.producer.transactions.requests import (
    PRODUCE_VERSION_1_MAX,
    TransactionRequests,
)
from headwater.client.producer.transactions.states import COMPLETING, DOOMED, WRITING, State
from headwater.client.producer.transactions.steps import Step, TransactionSteps
from headwater.wire.messages.api_versions import ApiVersionsResponse

__all__ = ["TransactionManager", "Verdict"]


class TransactionManager:
    """A `Machine`; goes before the sender, which should see what it decided.

    `api_versions` gives what a broker says about itself, if there is a connection to any.
    """

    def __init__(
        self,
        values: SettingValues,
        *,
        coordinators: CoordinatorCache,
        policy: RetryPolicy,
        generator: random.Random,
        api_versions: Callable[[], ApiVersionsResponse | None],
    ) -> None:
        self.transactional_id = values.optional_text("transactional.id")
        self.is_transactional = self.transactional_id is not None
        is_two_phase = values.boolean("transaction.two.phase.commit.enable")
        self._producer = ProducerState(self.transactional_id)
        #: What the user can do.
        self.operations = TransactionOperations(
            self._producer, is_transactional=self.is_transactional, is_two_phase=is_two_phase
        )
        requests = TransactionRequests(
            self.transactional_id,
            timeout_ms=values.integer("transaction.timeout.ms"),
            is_two_phase=is_two_phase,
        )
        self._steps = TransactionSteps(
            self._producer, requests, api_versions, is_two_phase=is_two_phase
        )
        self._conversation = CoordinatorConversation(
            coordinators=coordinators,
            policy=policy,
            generator=generator,
            timeout_s=values.integer("request.timeout.ms") / 1000,
            next_step=lambda: self._steps.next_step(is_flushed=self.is_flushed),
            on_refusal=self._refused,
        )
        #: Whether a plain producer has something to send, or is new.
        self._wants_identity = True
        #: The sender says whether no record waits or is under way.
        self.is_flushed: Callable[[], bool] = lambda: True
        #: The sender fails what it has never sent; after a fatal error, all that is not under way.
        self.on_abort: Callable[[KafkaError], None] = lambda error: None

    # -- what anybody may ask --------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._producer.state

    @property
    def identity(self) -> ProducerIdentity:
        """NO_IDENTITY until the cluster has given one."""
        return self._producer.book.identity

    @property
    def fatal_error(self) -> KafkaError | None:
        producer = self._producer
        return producer.error if producer.state is State.FATAL_ERROR else None

    @property
    def trouble(self) -> KafkaError | None:
        """What a coordinator, or the way to it, said last if it is being asked again."""
        return self._conversation.trouble

    @property
    def is_completing(self) -> bool:
        """Whether the end of a transaction waits for all its records to be written."""
        return self._producer.state in COMPLETING

    @property
    def produce_version_max(self) -> int | None:
        """The version of a produce request tells the leader whether to add the partition."""
        is_first = self.is_transactional and not self._producer.is_version_2
        return PRODUCE_VERSION_1_MAX if is_first else None

    # -- for the thread that sends ---------------------------------------------------------------

    def check_may_send(self, topic_partition: TopicPartition) -> None:
        """Raise if a record cannot be sent now."""
        state = self._producer.state
        if state is State.IN_TRANSACTION:
            return
        if self.is_transactional or state is State.FATAL_ERROR:
            self._producer.check_state(State.IN_TRANSACTION, what=f"send to {topic_partition}")

    def note_partition(self, topic_partition: TopicPartition) -> None:
        """A record for this partition comes, as a part of the transaction."""
        if self.is_transactional:
            self._producer.contents.note(topic_partition)

    # -- for the sender --------------------------------------------------------------------------

    def may_drain(self, topic_partition: TopicPartition) -> bool:
        """Whether a batch that has no numbers yet may be sent."""
        producer = self._producer
        if self.is_transactional:
            if producer.state not in WRITING or producer.epoch_doubt is not None:
                return False
            if not producer.is_version_2 and not producer.contents.has_added(topic_partition):
                return False
        elif producer.book.identity is NO_IDENTITY:
            self._wants_identity = True
        return producer.state is not State.FATAL_ERROR and producer.book.may_number(topic_partition)

    def may_resend(self, batch: SequencedBatch) -> bool:
        """Whether a batch that has its numbers may be sent again."""
        producer = self._producer
        may_write = producer.state is not State.FATAL_ERROR and producer.epoch_doubt is None
        return may_write and producer.book.may_resend(batch)

    def sequence(self, batch: SequencedBatch) -> None:
        """Give a batch its numbers, unless it has some; to be called before it is sent."""
        if batch.identity == NO_IDENTITY:
            self._producer.book.number(batch)

    def acknowledged(self, batch: SequencedBatch, base_offset: int) -> None:
        self._producer.book.acknowledged(batch)
        self._close_gaps()

    def failed(self, batch: SequencedBatch, error: KafkaError, now_s: float) -> Verdict:
        """An attempt to send it has failed: in an answer, or without one."""
        producer = self._producer
        if producer.state is State.FATAL_ERROR:
            return Verdict.FAIL
        if self._is_doubt(error):
            # It waits for the coordinator's word: then it fails, and so do all others.
            producer.epoch_doubt = producer.epoch_doubt or error
            return Verdict.RETRY
        judgement = judge(
            producer.book,
            batch,
            error,
            is_transactional=self.is_transactional,
            is_doomed=producer.state in DOOMED,
        )
        if judgement.meaning is Meaning.FATAL:
            self._fail(error)
        elif self.is_transactional and judgement.verdict is Verdict.FAIL:
            producer.doom(error)
        self._close_gaps()
        return judgement.verdict

    def _is_doubt(self, error: KafkaError) -> bool:
        """Whether the leader's error leaves open if the producer is fenced."""
        return (
            self.is_transactional
            and error.code is ErrorCode.INVALID_PRODUCER_EPOCH
            and self._producer.state in WRITING
        )

    def told(self, error: KafkaError) -> KafkaError:
        """What the user hears of a batch's error: one word for all that is fenced."""
        fatal = self.fatal_error
        return fatal if isinstance(fatal, ProducerFencedError) else error

    def given_up(self, batch: SequencedBatch, error: KafkaError, now_s: float) -> None:
        """Its time is over; whether it was written is not known, if it was sent at all."""
        if self.is_transactional:
            self._producer.doom(error)
        self._producer.book.given_up(batch)
        self._close_gaps()

    def split(self, batch: SequencedBatch, parts: Sequence[SequencedBatch]) -> None:
        """A batch was too large, and is replaced by several."""
        self._producer.book.split(batch, parts)

    def _close_gaps(self) -> None:
        """Number anew what stands behind a hole, which takes a new epoch."""
        producer = self._producer
        book = producer.book
        if self.is_transactional or producer.state is not State.READY or not book.has_gap:
            return
        identity = book.identity.with_next_epoch()
        if identity is not None:
            book.adopt(identity)
            return
        book.forget_identity()
        producer.move(State.UNINITIALIZED)

    # -- as a machine ----------------------------------------------------------------------------

    def asks(self, now_s: float) -> Sequence[Ask]:
        self._move_on()
        return self._conversation.asks(now_s)

    def wake_at_s(self, now_s: float) -> float | None:
        return self._conversation.wake_at_s(now_s)

    def close(self, error: KafkaError) -> None:
        """Whoever waits hears this error, and nothing more is sent."""
        self._fail(error)

    def _move_on(self) -> None:
        """Do what takes no request."""
        producer = self._producer
        if producer.abort_due is not None:
            error, producer.abort_due = producer.abort_due, None
            self.on_abort(error)
        if self.is_transactional:
            self._end_quietly()
        elif producer.state is State.UNINITIALIZED and self._wants_identity:
            producer.move(State.INITIALIZING)

    def _end_quietly(self) -> None:
        """What is being prepared, or has nothing in it, ends without a request."""
        producer = self._producer
        contents = producer.contents
        if producer.state not in COMPLETING or self._conversation.is_under_way:
            return
        if contents.is_pending or not self.is_flushed():
            return
        if producer.state is State.PREPARING:
            producer.prepared = PreparedTransactionState(*producer.book.identity)
            producer.end_operation(State.PREPARED, producer.prepared)
        elif not contents.is_started:
            self._steps.finish_transaction()

    def _refused(self, step: Step, error: KafkaError) -> None:
        """A coordinator, or the way to it, has an error that does not pass."""
        producer = self._producer
        if producer.state is State.INITIALIZING:
            if may_be_granted(error) and not producer.needs_new_epoch:
                self._not_granted(error)
            else:
                self._fail(error)
        elif meaning_for_coordination(error) is Meaning.ABORT and not (
            step.is_end and producer.state is State.ABORTING
        ):
            producer.doom(error)
            producer.contents.was_refused()
        else:
            self._fail(error)

    def _not_granted(self, error: KafkaError) -> None:
        """There is no identity yet, but nothing is lost: it may be asked for again."""
        producer = self._producer
        producer.move(State.UNINITIALIZED)
        producer.fail_operation(error)
        if not self.is_transactional:
            self._wants_identity = False
            producer.abort_due = error

    def _fail(self, error: KafkaError) -> None:
        self._conversation.close()
        self._producer.fail(error)
