"""What the user of a transactional producer can do: begin, end and prepare transactions.

Each is refused at once in a state that does not allow it, and otherwise changes the state; what has
to be asked and waited for follows from that, and completes what is returned here.
"""

from __future__ import annotations

from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.kafka_errors import InvalidConfigError, InvalidTxnStateError
from headwater.client.machines.completion import Completion
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.transactions.contents import PendingOffsets
from headwater.client.producer.transactions.coordinator_errors import TransactionAbortedError
from headwater.client.producer.transactions.producer_state import ProducerState
from headwater.client.producer.transactions.requests import Offsets
from headwater.client.producer.transactions.states import OPEN, State


class TransactionOperations:
    def __init__(
        self, producer: ProducerState, *, is_transactional: bool, is_two_phase: bool
    ) -> None:
        self._producer = producer
        self._is_transactional = is_transactional
        self._is_two_phase = is_two_phase

    @property
    def state(self) -> State:
        return self._producer.state

    @property
    def has_open_transaction(self) -> bool:
        return self._producer.state in OPEN

    @property
    def prepared(self) -> PreparedTransactionState:
        """What is prepared at the moment."""
        return self._producer.prepared

    def initialize(self, *, keep_prepared: bool = False) -> Completion[None]:
        """Get an identity, which fences any older instance and aborts what it has left open.

        What it has prepared is left as it is if it is to be kept.
        """
        self._check(State.UNINITIALIZED, what="initialize transactions")
        if keep_prepared:
            self._check_two_phase()
        self._producer.keeps_prepared = keep_prepared
        return self._producer.begin_operation(State.INITIALIZING)

    def begin(self) -> None:
        self._check(State.READY, what="begin a transaction")
        self._producer.move(State.IN_TRANSACTION)

    def commit(self) -> Completion[None]:
        self._check(State.IN_TRANSACTION, State.PREPARED, what="commit a transaction")
        self._note_start()
        return self._producer.begin_operation(State.COMMITTING)

    def abort(self) -> Completion[None]:
        self._check(
            State.IN_TRANSACTION,
            State.PREPARED,
            State.ABORTABLE_ERROR,
            what="abort a transaction",
        )
        producer = self._producer
        aborted = TransactionAbortedError("The transaction was aborted before this was sent.")
        producer.abort_due = producer.error or aborted
        producer.contents.give_up(producer.abort_due, keep_asked=True)
        self._note_start()
        return producer.begin_operation(State.ABORTING)

    def send_offsets(self, offsets: Offsets, group: GroupIdentity) -> Completion[None]:
        """Commit these offsets of a consumer group if, and only if, the transaction is."""
        self._check(State.IN_TRANSACTION, what="send offsets")
        pending = PendingOffsets(dict(offsets), group)
        if not offsets:
            pending.completion.succeed(None)
            return pending.completion
        if self._producer.is_version_2:
            self._producer.contents.is_started = True
        self._producer.contents.add_offsets(pending)
        return pending.completion

    def prepare(self) -> Completion[PreparedTransactionState]:
        """Write what was sent, and let nothing be added: it is decided elsewhere."""
        self._check(State.IN_TRANSACTION, what="prepare a transaction")
        self._check_two_phase()
        self._note_start()
        return self._producer.begin_operation(State.PREPARING)

    def complete(self, decided: PreparedTransactionState) -> Completion[None]:
        """Commit the prepared transaction if it is the one that was decided on, else abort it."""
        self._check(State.PREPARED, what="complete a transaction")
        return self.commit() if decided == self._producer.prepared else self.abort()

    def _check(self, *allowed: State, what: str) -> None:
        if not self._is_transactional:
            raise InvalidTxnStateError(f"A producer without a transactional.id cannot {what}.")
        self._producer.check_state(*allowed, what=what)

    def _check_two_phase(self) -> None:
        if not self._is_two_phase:
            raise InvalidConfigError(
                "Prepared transactions need transaction.two.phase.commit.enable=true."
            )

    def _note_start(self) -> None:
        """With the second version of the protocol, the first record that a leader got began it."""
        producer = self._producer
        if producer.is_version_2 and producer.contents.has_noted:
            producer.contents.is_started = True
