"""A transaction is committed or aborted: PREPARE is written, then the markers, then COMPLETE.

With PREPARE the outcome is decided, and the client is told so when it is safe. The markers follow,
and with COMPLETE the next transaction may begin.

With transaction version 2 (KIP-890) each transaction has an epoch of its own: PREPARE raises it,
the markers carry the raised one, and the client gets it with the answer. So an end that comes late
does not match the next transaction, and one that comes again is known by the epoch before. Before
that, all transactions of an instance have the same epoch, and an end that comes again is answered
by the state alone.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity, Reply
from headwater.coordinator.txn.marker_handout import MarkerHandout
from headwater.coordinator.txn.transaction_metadata import (
    EPOCH_PER_TRANSACTION,
    PreparedTransaction,
    TransactionMetadata,
    TransactionState,
)
from headwater.coordinator.txn.transaction_record import transaction_record
from headwater.coordinator.txn.transactions import (
    Transactions,
    check_client,
    check_not_completing,
)


class TransactionEnd:
    def __init__(self, transactions: Transactions, handout: MarkerHandout) -> None:
        self._transactions = transactions
        self._handout = handout

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None,
        now_ms: int,
        reply: Reply[ProducerIdentity],
    ) -> Outcome:
        """Replies with what the client is from now on; may raise `ProducerIdNeededError`."""
        metadata = self._transactions.get(transactional_id)
        if client_version < EPOCH_PER_TRANSACTION:
            is_done = _is_done_in_first_version(metadata, producer, is_commit)
        else:
            is_done = _is_done(metadata, producer, is_commit)
        if is_done:
            client = metadata.client
            return Outcome((), lambda: reply.send(client), reply.fail, follows_writes=True)
        decided = metadata.prepared(
            is_commit=is_commit,
            client_version=client_version,
            new_producer_id=new_producer_id,
            now_ms=now_ms,
        )
        return self._handout.decide(
            [decided], now_ms, lambda: reply.send(decided.client), reply.fail
        )

    def markers_written(self, prepared: PreparedTransaction, now_ms: int) -> Change[bool]:
        """All partitions have their marker; false if that is nothing new, or not of now."""
        metadata = self._transactions.find(prepared.transactional_id)
        if metadata is None or not self._handout.is_awaited(prepared):
            return Change(False)
        return Change(True, [transaction_record(metadata.completed(now_ms=now_ms))])


def _is_done_in_first_version(
    metadata: TransactionMetadata, producer: ProducerIdentity, is_commit: bool
) -> bool:
    """Whether the transaction has ended like this before; raises if it cannot end like this."""
    check_client(metadata, producer)
    check_not_completing(metadata)
    if metadata.state is TransactionState.ONGOING:
        return False
    if metadata.state is TransactionState.EMPTY or metadata.is_commit != is_commit:
        raise _invalid(metadata, is_commit)
    return True


def _is_done(metadata: TransactionMetadata, producer: ProducerIdentity, is_commit: bool) -> bool:
    """The same since transaction version 2."""
    is_repeated = producer == metadata.previous_client and metadata.state not in (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
    )
    if not is_repeated:
        check_client(metadata, producer)
    check_not_completing(metadata)
    if is_repeated:
        if metadata.is_commit != is_commit:
            raise _invalid(metadata, is_commit)
        # If the coordinator fenced it with the last epoch there is none that it could go on with.
        check_client(metadata, metadata.client)
        return True
    if metadata.state is not TransactionState.ONGOING and is_commit:
        raise _invalid(metadata, is_commit)
    return False


def _invalid(metadata: TransactionMetadata, is_commit: bool) -> KafkaError:
    wanted = "committed" if is_commit else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{metadata.transactional_id} is in state {metadata.state.label} and cannot be {wanted}.",
    )
