"""The first step of a transactional producer: it gets its id and epoch, and fences older instances.

An instance that starts gets the next epoch, and from then on those before it get PRODUCER_FENCED.
One that recovers from an error names its own id and epoch, and gets the next one only if no other
has started in between (KIP-360). A transaction that is still open is aborted first; the client
hears CONCURRENT_TRANSACTIONS and comes again. Or it asks to keep it (KIP-939): then the transaction
goes on under the producer that wrote it, and the new instance can do nothing but end it.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.outcome import Outcome, ProducerIdentity, Reply
from headwater.coordinator.txn.marker_handout import MarkerHandout
from headwater.coordinator.txn.transaction_environment import TransactionEnvironment
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    FIRST_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    ProducerIdNeededError,
    TransactionMetadata,
    TransactionState,
    next_client,
)
from headwater.coordinator.txn.transaction_record import transaction_record
from headwater.coordinator.txn.transactions import (
    Transactions,
    check_not_completing,
    fenced,
)


class InitialisationRequest(NamedTuple):
    transactional_id: str
    timeout_ms: int
    #: What the producer is, if it recovers from an error.
    expected: ProducerIdentity | None = None
    #: The producer takes part in a two-phase commit: its transactions have no timeout.
    is_two_phase: bool = False
    #: An open transaction is not aborted.
    keeps_prepared: bool = False


class InitialisedProducer(NamedTuple):
    producer: ProducerIdentity
    #: Of the transaction that was kept.
    ongoing: ProducerIdentity | None = None


class ProducerInitialization:
    def __init__(
        self,
        environment: TransactionEnvironment,
        transactions: Transactions,
        handout: MarkerHandout,
    ) -> None:
        self._settings = environment.settings
        self._transactions = transactions
        self._handout = handout

    def initialise(
        self,
        request: InitialisationRequest,
        new_producer_id: int | None,
        now_ms: int,
        reply: Reply[InitialisedProducer],
    ) -> Outcome:
        """Raises `ProducerIdNeededError` where it takes a new producer id and got none."""
        self._check(request)
        timeout_ms = NO_TIMEOUT_MS if request.is_two_phase else request.timeout_ms
        metadata = self._transactions.find(request.transactional_id)
        if metadata is None:
            if new_producer_id is None:
                raise ProducerIdNeededError
            first = TransactionMetadata(
                transactional_id=request.transactional_id,
                producer=ProducerIdentity(new_producer_id, FIRST_EPOCH),
                timeout_ms=timeout_ms,
                last_update_ms=now_ms,
            )
            return _written(first, InitialisedProducer(first.client), reply)
        self._check_expected(metadata, request.expected)
        check_not_completing(metadata)
        if metadata.state is TransactionState.ONGOING:
            if request.keeps_prepared:
                client = next_client(metadata.client, new_producer_id)
                kept = metadata.kept(client, timeout_ms=timeout_ms, now_ms=now_ms)
                return _written(kept, InitialisedProducer(client, metadata.producer), reply)
            return self._abort_first(metadata, now_ms, reply)
        client, previous = _successor(metadata, request.expected, new_producer_id)
        begun = metadata.initialised(
            client, previous_producer_id=previous, timeout_ms=timeout_ms, now_ms=now_ms
        )
        return _written(begun, InitialisedProducer(client), reply)

    def _check(self, request: InitialisationRequest) -> None:
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id cannot be empty.")
        if request.keeps_prepared and request.expected is not None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "A producer that recovers from an error does not keep another's transaction.",
            )
        if request.is_two_phase:
            if not self._settings.boolean("transaction.two.phase.commit.enable"):
                raise KafkaError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "Two-phase commit is not enabled here.",
                )
        elif not 0 < request.timeout_ms <= self._settings.integer("transaction.max.timeout.ms"):
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"A transaction may not have a timeout of {request.timeout_ms} ms.",
            )

    def _check_expected(
        self, metadata: TransactionMetadata, expected: ProducerIdentity | None
    ) -> None:
        # There is no previous one in an open transaction: a request that comes twice may be late,
        # and must not abort what began since.
        if expected not in (None, metadata.client, metadata.previous_client):
            raise fenced(metadata, expected)

    def _abort_first(
        self, metadata: TransactionMetadata, now_ms: int, reply: Reply[InitialisedProducer]
    ) -> Outcome:
        decided = metadata.fenced(now_ms=now_ms).prepared(
            is_commit=False, client_version=EPOCH_PER_TRANSACTION, now_ms=now_ms
        )
        retry = KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"The open transaction of {metadata.transactional_id} is being aborted.",
        )
        return self._handout.decide([decided], now_ms, lambda: reply.fail(retry), reply.fail)


def _successor(
    metadata: TransactionMetadata,
    expected: ProducerIdentity | None,
    new_producer_id: int | None,
) -> tuple[ProducerIdentity, int]:
    """What an instance becomes where no transaction is open, and its previous producer id."""
    client = metadata.client
    if expected is None:
        return next_client(client, new_producer_id), NO_PRODUCER_ID
    if expected == client or client.producer_epoch > CLIENT_EPOCH_MAX:
        return next_client(client, new_producer_id), client.producer_id
    return client, metadata.previous_producer_id  # The answer was lost: here it is again.


def _written(
    metadata: TransactionMetadata, answer: InitialisedProducer, reply: Reply[InitialisedProducer]
) -> Outcome:
    return Outcome([transaction_record(metadata)], lambda: reply.send(answer), reply.fail)
