"""What a producer is at the moment: its state, its numbers, and what its user waits for.

Shared by the parts of the transaction manager, on one event loop. It knows how a state is left for
another, and what an error of each kind does to whoever waits.
"""

from __future__ import annotations

from typing import Any

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.client.errors import ClientClosedError
from headwater.client.kafka_errors import (
    InvalidTxnStateError,
    ProducerFencedError,
    error_for,
)
from headwater.client.machines.completion import Completion
from headwater.client.producer.idempotence.identity import (
    PreparedTransactionState,
    ProducerIdentity,
)
from headwater.client.producer.idempotence.sequence_book import SequenceBook
from headwater.client.producer.transactions.contents import TransactionContents
from headwater.client.producer.transactions.coordinator_errors import as_final
from headwater.client.producer.transactions.states import DOOMED, OPEN, State, may_follow


class ProducerState:
    def __init__(self, transactional_id: str | None = None) -> None:
        self._transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        #: Why the transaction has to be aborted, or the producer cannot go on.
        self.error: KafkaError | None = None
        self.book = SequenceBook()
        self.contents = TransactionContents()
        #: Whether the cluster speaks the second version of the transaction protocol, as far as the
        #: transaction at hand is concerned.
        self.is_version_2 = False
        #: A leader's word that the epoch is old, while the coordinator is asked what that means: a
        #: newer producer, or just a transaction that took too long.
        self.epoch_doubt: KafkaError | None = None
        #: What the next transaction begins with, where the coordinator has ended this one already.
        self.next_identity: ProducerIdentity | None = None
        #: Whether the producer has to ask for a new epoch after this transaction, because numbers
        #: of this one are in doubt or the protocol changes.
        self.needs_new_epoch = False
        #: The transaction of an earlier instance is to be kept when this one is initialized.
        self.keeps_prepared = False
        self.prepared = PreparedTransactionState()
        #: What the user waits for: one thing at a time.
        self.operation: Completion[Any] | None = None
        #: With which error the sender has to fail what it has not sent.
        self.abort_due: KafkaError | None = None

    def move(self, after: State) -> None:
        check(may_follow(self.state, after), "a producer %s is now %s", self.state, after)
        self.state = after

    # -- what the user waits for -----------------------------------------------------------------

    def begin_operation(self, after: State) -> Completion[Any]:
        self.move(after)
        self.operation = Completion()
        return self.operation

    def end_operation(self, after: State, value: object = None) -> None:
        self.move(after)
        operation, self.operation = self.operation, None
        if operation is not None:
            operation.succeed(value)

    def fail_operation(self, error: KafkaError) -> None:
        operation, self.operation = self.operation, None
        if operation is not None:
            operation.fail(error)

    # -- errors ----------------------------------------------------------------------------------

    def doom(self, error: KafkaError) -> None:
        """The transaction has to be aborted, unless there is none or that is happening."""
        if self.state not in OPEN:
            return
        self.epoch_doubt = None
        if not self.is_version_2:
            self.needs_new_epoch = True
        if self.state in DOOMED:
            return
        # There is no use in sending what belongs to it, and no reason to wait to say so.
        self.error = self.abort_due = error
        self.move(State.ABORTABLE_ERROR)
        self.contents.give_up(error, keep_asked=True)
        self.fail_operation(error)

    def fail(self, error: KafkaError) -> None:
        """The producer cannot go on."""
        if self.state is State.FATAL_ERROR:
            return
        self.epoch_doubt = None
        self.error = self.abort_due = as_final(error, self._transactional_id)
        self.move(State.FATAL_ERROR)
        self.contents.give_up(self.error, keep_asked=False)
        self.fail_operation(self.error)

    def check_state(self, *allowed: State, what: str) -> None:
        """Raise unless the producer is in one of these states; `what` the user wants to do."""
        if self.state in allowed:
            return
        error = self.error
        if isinstance(error, ClientClosedError):
            raise ClientClosedError("The producer is closed.")
        if isinstance(error, ProducerFencedError):
            raise ProducerFencedError(error.detail)
        if self.state is State.FATAL_ERROR and error is not None:
            raise error_for(error.code, f"This producer is not usable any more: {error}")
        if self.state is State.ABORTABLE_ERROR and error is not None:
            raise error_for(error.code, f"The transaction has to be aborted: {error}")
        raise InvalidTxnStateError(f"The producer cannot {what} while it is {self.state.value}.")
