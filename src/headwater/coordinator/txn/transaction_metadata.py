"""What a coordinator knows of a transactional id: its state, its producer, and its partitions.

A value of `TransactionMetadata` never changes; a step makes a new one, which is written down, and
takes its place when it is replayed. The states and the ways between them are a table. Nothing else
is pending: an operation sees all that was written before it, safe or not, and its own answer waits
until both are.

A transactional id has up to three producers, each an id with an epoch:

- `producer` is that of the present transaction, whose markers carry it;
- `client` is what the one instance that is not fenced has been told, or is about to be. It is the
  same, unless the epochs of an id run out at the end of a transaction, or a prepared transaction is
  kept for a new instance: then it is `next_producer` until the transaction is complete;
- `previous_client` is what the instance was before its last step. It may not have heard of the new
  one, so if it comes with the old one it repeats a request. It is the epoch before, so that only
  the previous producer id is written down, and none where a new instance has fenced the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity

NO_PRODUCER_ID: Final = -1
NO_TIME: Final = -1
FIRST_EPOCH: Final = 0

#: The highest epoch that a client may get. One more is left, so that it can always be fenced.
CLIENT_EPOCH_MAX: Final = 2**15 - 2

#: The timeout of producers that take part in a two-phase commit: none.
NO_TIMEOUT_MS: Final = 2**31 - 1

#: The transaction version that raises the epoch with each transaction (KIP-890).
EPOCH_PER_TRANSACTION: Final = 2


class TransactionState(IntEnum):
    """The numbers are those of the stored records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    #: The id is being forgotten: a tombstone takes the record's place.
    DEAD = 6
    #: The coordinator itself is about to abort; never written, since PREPARE_ABORT follows at once.
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """How Kafka's tools write it, such as PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and the partitions do not know it yet."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether there is no transaction."""
        return self in _IDLE


_S = TransactionState
_IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

STATES_BY_LABEL: Final[Mapping[str, TransactionState]] = {state.label: state for state in _S}

#: For each state those that may follow it. An abort may also end what never began: a client that
#: lost track of its transaction asks for it to be sure (KIP-890).
TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset(
        {_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}
    ),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.DEAD: frozenset(),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
}


class PreparedTransaction(NamedTuple):
    """A decided transaction, for whoever writes the markers to its partitions."""

    transactional_id: str
    #: What the markers carry.
    producer: ProducerIdentity
    is_commit: bool
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    #: Tells it from an earlier one of the same producer and partitions.
    number: int = 0


class ProducerIdNeededError(Exception):
    """An operation cannot do without a new producer id: it is to be tried again with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    transactional_id: str
    producer: ProducerIdentity
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer: ProducerIdentity | None = None
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    #: When the transaction began; it stays when it is complete.
    start_ms: int = NO_TIME
    last_update_ms: int
    #: The transaction version of the client's last request.
    client_version: int = 0

    @property
    def client(self) -> ProducerIdentity:
        return self.producer if self.next_producer is None else self.next_producer

    @property
    def previous_client(self) -> ProducerIdentity | None:
        if self.previous_producer_id == NO_PRODUCER_ID:
            return None
        if self.client.producer_epoch == FIRST_EPOCH:
            return ProducerIdentity(self.previous_producer_id, CLIENT_EPOCH_MAX)
        return self.client._replace(producer_epoch=self.client.producer_epoch - 1)

    @property
    def is_kept(self) -> bool:
        """Whether what a fenced instance has prepared waits for the new one to end it."""
        return self.state is TransactionState.ONGOING and self.next_producer is not None

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == NO_TIMEOUT_MS

    @property
    def is_commit(self) -> bool:
        """Of a transaction that is decided: how."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    # -- steps -----------------------------------------------------------------------------------

    def initialised(
        self, client: ProducerIdentity, *, previous_producer_id: int, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata:
        """An instance begins; `previous_producer_id` is set if it is the same as before."""
        return self._moved(
            TransactionState.EMPTY,
            now_ms,
            producer=client,
            next_producer=None,
            previous_producer_id=previous_producer_id,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
        )

    def kept(
        self, client: ProducerIdentity, *, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata:
        """A new instance begins, and takes the transaction over as it stands."""
        return self._moved(
            TransactionState.ONGOING,
            now_ms,
            next_producer=client,
            previous_producer_id=NO_PRODUCER_ID,
            # What was prepared may wait for as long as it could before.
            timeout_ms=max(timeout_ms, self.timeout_ms),
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], *, client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Partitions become part of the transaction, which begins with the first ones."""
        return self._moved(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions | partitions,
            # It knows its epoch by now, so whoever comes with the one before is late.
            previous_producer_id=NO_PRODUCER_ID,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
            client_version=client_version,
        )

    def fenced(self, *, now_ms: int) -> TransactionMetadata:
        """The coordinator is about to abort, whatever the client wants."""
        return self._moved(TransactionState.PREPARE_EPOCH_FENCE, now_ms)

    def prepared(
        self,
        *,
        is_commit: bool,
        client_version: int,
        new_producer_id: int | None = None,
        now_ms: int,
    ) -> TransactionMetadata:
        """The outcome is decided; raises `ProducerIdNeededError` where it takes a new id."""
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        start_ms = now_ms if self.state.is_idle else self.start_ms
        if client_version < EPOCH_PER_TRANSACTION:
            return self._moved(state, now_ms, start_ms=start_ms, client_version=client_version)
        producer = _raised(self.producer)
        if self.state is TransactionState.PREPARE_EPOCH_FENCE:
            # The last epoch, which no client can have, is good enough to fence one.
            client = _raised(self.client)
        else:
            client = next_client(self.client, new_producer_id)
        return self._moved(
            state,
            now_ms,
            producer=producer,
            next_producer=None if client == producer else client,
            previous_producer_id=self.client.producer_id,
            start_ms=start_ms,
            client_version=client_version,
        )

    def completed(self, *, now_ms: int) -> TransactionMetadata:
        """All partitions know the outcome."""
        state = (
            TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT
        )
        return self._moved(
            state,
            now_ms,
            producer=self.client,
            next_producer=None,
            partitions=frozenset(),
        )

    def _moved(self, state: TransactionState, now_ms: int, **changes: Any) -> TransactionMetadata:
        check(
            state in TRANSITIONS[self.state],
            "transaction %s cannot go from %s to %s",
            self.transactional_id,
            self.state.label,
            state.label,
        )
        return replace(self, state=state, last_update_ms=now_ms, **changes)


def next_client(client: ProducerIdentity, new_producer_id: int | None) -> ProducerIdentity:
    """The next epoch, or the first one of a new id; raises `ProducerIdNeededError` without one."""
    if client.producer_epoch < CLIENT_EPOCH_MAX:
        return _raised(client)
    if new_producer_id is None:
        raise ProducerIdNeededError
    return ProducerIdentity(new_producer_id, FIRST_EPOCH)


def _raised(producer: ProducerIdentity) -> ProducerIdentity:
    check(producer.producer_epoch <= CLIENT_EPOCH_MAX, "the epochs of a producer have run out")
    return producer._replace(producer_epoch=producer.producer_epoch + 1)
