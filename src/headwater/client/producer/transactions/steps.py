"""What a producer has to ask a coordinator next, and what it makes of the answer.

The next step follows from the state alone, so there is no queue of requests that could disagree
with it: a request whose answer did not come is simply what comes next again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headwater.client.kafka_errors import UnsupportedVersionError
from headwater.client.producer.idempotence.identity import (
    NO_IDENTITY,
    NONE,
    PreparedTransactionState,
    ProducerIdentity,
)
from headwater.client.producer.transactions.contents import PendingOffsets
from headwater.client.producer.transactions.producer_state import ProducerState
from headwater.client.producer.transactions.requests import (
    Question,
    TransactionRequests,
    offers_two_phase,
    uses_version_2,
)
from headwater.client.producer.transactions.states import DOOMED, OPEN, State
from headwater.wire.messages.api_versions import ApiVersionsResponse
from headwater.wire.messages.end_txn import EndTxnResponse
from headwater.wire.messages.init_producer_id import InitProducerIdResponse


@dataclass(slots=True, frozen=True)
class Step:
    question: Question
    #: Called when it is sent.
    begin: Callable[[], None]
    #: Called with an answer that holds no error.
    finish: Callable[[Any], None]
    is_end: bool = False


class TransactionSteps:
    def __init__(
        self,
        producer: ProducerState,
        requests: TransactionRequests,
        api_versions: Callable[[], ApiVersionsResponse | None],
        *,
        is_two_phase: bool,
    ) -> None:
        self._producer = producer
        self._requests = requests
        self._api_versions = api_versions
        self._is_two_phase = is_two_phase

    def next_step(self, *, is_flushed: Callable[[], bool]) -> Step | None:
        """The end of a transaction waits until all that was sent is written."""
        producer = self._producer
        if producer.state is State.INITIALIZING:
            return self._initialize()
        if producer.state not in OPEN or producer.state is State.ABORTABLE_ERROR:
            return None
        if producer.epoch_doubt is not None and producer.state is not State.ABORTING:
            return self._ask_about_epoch()
        return self._add_partitions() or self._offsets() or self._end(is_flushed)

    def _initialize(self) -> Step:
        producer = self._producer
        identity = producer.book.identity if producer.needs_new_epoch else NO_IDENTITY
        question = self._requests.initialize(identity, keep_prepared=producer.keeps_prepared)
        return Step(question, _nothing, self._initialized)

    def _initialized(self, answer: InitProducerIdResponse) -> None:
        producer = self._producer
        identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        if self._requests.coordinator is None:
            producer.book.adopt(identity)
            producer.end_operation(State.READY)
            return
        self.learn_version()
        versions = self._api_versions()
        if self._is_two_phase and versions is not None and not offers_two_phase(versions):
            producer.fail(
                UnsupportedVersionError(
                    "The broker does not take part in a two-phase commit: it does not have "
                    "version 6 of InitProducerId."
                )
            )
            return
        producer.book.start_anew(identity)
        producer.needs_new_epoch = False
        ongoing = PreparedTransactionState(
            answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
        )
        if producer.keeps_prepared and ongoing.exists:
            producer.prepared = ongoing
            producer.contents.is_started = True
            producer.end_operation(State.PREPARED)
        else:
            producer.end_operation(State.READY)
        producer.keeps_prepared = False

    def learn_version(self) -> None:
        """Ask which version of the protocol the cluster has agreed on, between transactions."""
        versions = self._api_versions()
        if versions is not None:
            self._producer.is_version_2 = uses_version_2(versions)

    def _add_partitions(self) -> Step | None:
        producer = self._producer
        if producer.is_version_2:
            return None
        contents = producer.contents
        partitions = contents.partitions_to_add(only_asked=producer.state in DOOMED)
        if not partitions:
            return None
        question = self._requests.add_partitions(producer.book.identity, partitions)
        return Step(
            question,
            partial(contents.asked, partitions),
            lambda _: contents.added(partitions),
        )

    def _offsets(self) -> Step | None:
        producer, contents = self._producer, self._producer.contents
        pending = contents.next_offsets
        if pending is None:
            return None
        group_id = pending.group.group_id
        if producer.is_version_2 or contents.has_group(group_id):
            question = self._requests.commit_offsets(
                producer.book.identity,
                pending.offsets,
                pending.group,
                is_version_2=producer.is_version_2,
            )
            return Step(question, _nothing, lambda _: contents.offsets_done(pending))
        question = self._requests.add_offsets(producer.book.identity, group_id)
        return Step(
            question,
            partial(_ask_group, pending),
            lambda _: contents.group_added(pending),
        )

    def _end(self, is_flushed: Callable[[], bool]) -> Step | None:
        producer = self._producer
        if producer.state not in (State.COMMITTING, State.ABORTING) or not is_flushed():
            return None
        question = self._requests.end(
            producer.book.identity,
            is_commit=producer.state is State.COMMITTING,
            is_version_2=producer.is_version_2,
        )
        return Step(question, _nothing, self._ended, is_end=True)

    def _ask_about_epoch(self) -> Step:
        """Nothing but an abort can follow, and its answer tells a fenced producer from others."""
        producer = self._producer
        question = self._requests.end(
            producer.book.identity, is_commit=False, is_version_2=producer.is_version_2
        )
        return Step(question, _nothing, self._not_fenced, is_end=True)

    def _not_fenced(self, answer: EndTxnResponse) -> None:
        """The transaction took too long, and is over: the user has yet to hear of that."""
        producer = self._producer
        if answer.producer_id != NONE:
            producer.next_identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        if producer.epoch_doubt is not None:
            producer.doom(producer.epoch_doubt)
        producer.contents.clear()

    def _ended(self, answer: EndTxnResponse) -> None:
        if answer.producer_id != NONE:
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self._producer.book.start_anew(identity)
            self._producer.needs_new_epoch = False
        self.finish_transaction()

    def finish_transaction(self) -> None:
        """The transaction is over; perhaps a new epoch is needed before the next one."""
        producer = self._producer
        producer.contents.clear()
        producer.error = producer.epoch_doubt = None
        if producer.next_identity is not None:
            producer.book.start_anew(producer.next_identity)
            producer.next_identity = None
            producer.needs_new_epoch = False
        producer.prepared = PreparedTransactionState()
        was_version_2 = producer.is_version_2
        self.learn_version()
        if not was_version_2 and (producer.is_version_2 or producer.book.is_in_doubt):
            # Numbers whose fate is unknown cannot be continued; and the first transaction of the
            # second version must not share an epoch with the last one of the first, whose late
            # requests could otherwise not be told from it.
            producer.needs_new_epoch = True
        if producer.needs_new_epoch:
            producer.move(State.INITIALIZING)
        else:
            producer.end_operation(State.READY)


def _ask_group(pending: PendingOffsets) -> None:
    pending.is_group_asked = True


def _nothing() -> None:
    return None
