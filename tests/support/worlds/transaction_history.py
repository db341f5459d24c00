"""What must hold of a transaction coordinator, whatever happens: told of each step, it objects.

Each transaction of a client writes to partitions that no other one writes to, so that a record of
the coordinator tells whose transaction it is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.stored_record import StoredRecord
from headwater.coordinator.txn.transaction_metadata import (
    PreparedTransaction,
    TransactionMetadata,
    TransactionState,
)
from tests.support.worlds.transaction_world import decoded


@dataclass(eq=False)
class Instance:
    """One run of a client program."""

    transactional_id: str
    version: int
    producer: ProducerIdentity | None = None
    transaction: ClientTransaction | None = None


@dataclass(eq=False)
class ClientTransaction:
    """What a client takes for a transaction."""

    owner: Instance
    producer: ProducerIdentity
    partitions: list[TopicPartition] = field(default_factory=list)
    #: Those that it was told are part of it.
    acknowledged: set[TopicPartition] = field(default_factory=set)
    #: How it, or an instance that kept it, wanted it to end.
    wanted: set[bool] = field(default_factory=set)


@dataclass(eq=False)
class Execution:
    """A request that the coordinator has worked on, at its place in the order of all."""

    number: int
    instance: Instance
    is_initialisation: bool


class History:
    def __init__(self, *, is_strict: bool) -> None:
        #: Whether all clients have an epoch for each transaction: only then late requests do no
        #: harm, and more can be said.
        self.is_strict = is_strict
        self.transactions: dict[TopicPartition, ClientTransaction] = {}
        self._producers: dict[ProducerIdentity, ClientTransaction] = {}
        self._successes: list[Execution] = []
        self._outcomes: defaultdict[tuple[str, int], set[bool]] = defaultdict(set)

    # -- clients ---------------------------------------------------------------------------------

    def begun(self, transaction: ClientTransaction) -> None:
        if self.is_strict:
            other = self._producers.get(transaction.producer)
            assert other is None, f"two transactions of {transaction.producer}"
        self._producers[transaction.producer] = transaction

    def transaction_of(self, producer: ProducerIdentity) -> ClientTransaction | None:
        return self._producers.get(producer)

    def succeeded(self, execution: Execution) -> None:
        """A fenced instance never hears of success."""
        self._successes.append(execution)
        self._successes.sort(key=lambda each: each.number)
        owners: dict[str, Instance] = {}
        for each in self._successes:
            transactional_id = each.instance.transactional_id
            if each.is_initialisation:
                owners[transactional_id] = each.instance
            assert owners.get(transactional_id) is each.instance, "a fenced producer succeeded"

    def ended(
        self, transaction: ClientTransaction, *, commit: bool, safe: Iterable[StoredRecord]
    ) -> None:
        """A client heard that its transaction has ended as it wanted."""
        if not self.is_strict or not transaction.acknowledged:
            return
        wanted = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        for record in safe:
            metadata = decoded(record)
            if metadata is None or metadata.state is not wanted:
                continue
            if transaction.acknowledged <= metadata.partitions:
                return
        raise AssertionError("an end was acknowledged that did not happen")

    # -- the coordinator -------------------------------------------------------------------------

    def handed_out(self, prepared: PreparedTransaction, safe: list[StoredRecord]) -> None:
        """Markers are asked for: the last that is safe of this id must be that very decision."""
        begin = 0
        last: TransactionMetadata | None = None
        for number, record in enumerate(safe):
            metadata = decoded(record)
            if metadata is None or metadata.transactional_id != prepared.transactional_id:
                continue
            if last is None or last.state is not TransactionState.ONGOING:
                begin = number
            if metadata.state.is_prepared and last is not None and last.state.is_idle:
                begin = number
            last = metadata
        assert last is not None, "markers of nothing"
        assert last.state.is_prepared, f"markers of a transaction that is {last.state.label}"
        assert (last.producer, last.partitions) == (prepared.producer, prepared.partitions)
        assert last.is_commit is prepared.is_commit
        outcomes = self._outcomes[prepared.transactional_id, begin]
        outcomes.add(prepared.is_commit)
        assert len(outcomes) == 1, "a transaction was both committed and aborted"

    def check_topic(self, records: Iterable[StoredRecord]) -> None:
        last: dict[str, ProducerIdentity] = {}
        decisions: dict[ClientTransaction, set[bool]] = defaultdict(set)
        for record in records:
            metadata = decoded(record)
            if metadata is None:
                continue
            client = metadata.client
            before = last.get(metadata.transactional_id, client)
            if client.producer_id == before.producer_id:
                assert client.producer_epoch >= before.producer_epoch, "an epoch went back"
            else:
                assert client.producer_id > before.producer_id, "a producer id came back"
            last[metadata.transactional_id] = client
            if self.is_strict:
                self._check_decision(metadata, decisions)

    def _check_decision(
        self, metadata: TransactionMetadata, decisions: dict[ClientTransaction, set[bool]]
    ) -> None:
        owners = {self.transactions[partition] for partition in metadata.partitions}
        assert len(owners) <= 1, "two transactions became one"
        if not metadata.state.is_prepared:
            return
        for transaction in owners:
            if metadata.is_commit:
                assert True in transaction.wanted, "nobody wanted this to be committed"
                assert transaction.acknowledged <= metadata.partitions, "a partition was lost"
            decisions[transaction].add(metadata.is_commit)
            assert len(decisions[transaction]) == 1, "committed and aborted"
