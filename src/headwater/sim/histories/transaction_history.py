"""Transactions of a simulation and what became of them, and the checks of it: one property each.

Every record of a transaction carries the transaction's name as its key and what it copies as its
value. So whatever a reader gets tells which transaction it came with: of a committed one all must
be there, of an aborted one nothing, and of one whose end nobody was told, all or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from headwater.base.ids import TopicPartition
from headwater.sim.clients.committed_reader import Visible
from headwater.sim.histories.history import Contents, PropertyViolated


class Ending(Enum):
    """How a transaction ended, as far as its client was told."""

    UNKNOWN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass
class Transaction:
    name: bytes
    ending: Ending = Ending.UNKNOWN
    #: What it writes, by partition, in order.
    values: dict[TopicPartition, list[bytes]] = field(default_factory=dict)

    @property
    def record_count(self) -> int:
        return sum(map(len, self.values.values()))


class TransactionHistory:
    def __init__(self) -> None:
        self._transactions: dict[bytes, Transaction] = {}
        #: What was seen while the world was not healed: by partition and offset.
        self._seen: dict[tuple[TopicPartition, int], Visible] = {}

    def begin(self, client: str) -> Transaction:
        """A transaction of its own name, which is about to start."""
        transaction = Transaction(f"{client}/{len(self._transactions)}".encode())
        self._transactions[transaction.name] = transaction
        return transaction

    def count(self, ending: Ending) -> int:
        return sum(each.ending is ending for each in self._transactions.values())

    def see(self, records: Iterable[Visible]) -> None:
        """Somebody who reads what is committed got these."""
        for record in records:
            transaction = self._transactions.get(record.key)
            if transaction is None:
                raise PropertyViolated(f"only what was sent is stored: {record} was not")
            if transaction.ending is Ending.ABORTED:
                raise PropertyViolated(
                    f"nothing of an aborted transaction is seen: {record} is from one"
                )
            other = self._seen.setdefault((record.partition, record.offset), record)
            if other != record:
                raise PropertyViolated(f"what was seen stays: {other} became {record}")

    # -- in the end ------------------------------------------------------------------------------

    def check_all(self, visible: Sequence[Visible]) -> None:
        """`visible` is what can be read when no transaction is open any more."""
        self.see(visible)
        self._check_seen_stays(visible)
        self._check_whole(visible)

    def _check_seen_stays(self, visible: Sequence[Visible]) -> None:
        final = {(record.partition, record.offset) for record in visible}
        for place, record in self._seen.items():
            if place not in final:
                raise PropertyViolated(f"what was committed stays: {record} is gone")

    def _check_whole(self, visible: Sequence[Visible]) -> None:
        found = Counter(record.key for record in visible)
        for name, transaction in self._transactions.items():
            count = found[name]
            allowed = {
                Ending.COMMITTED: {transaction.record_count},
                Ending.ABORTED: {0},
                Ending.UNKNOWN: {0, transaction.record_count},
            }[transaction.ending]
            if count not in allowed:
                raise PropertyViolated(
                    f"a transaction is seen as a whole or not at all: {name!r}, "
                    f"{transaction.ending.name}, shows {count} of {transaction.record_count} "
                    "records"
                )


def check_copied_once(
    source: Contents,
    visible: Sequence[Visible],
    target_of: Mapping[TopicPartition, TopicPartition],
) -> None:
    """Every record of the source is in its target once, and in the order of the source."""
    for partition, records in source.items():
        target = target_of[partition]
        copied = [record.value for record in visible if record.partition == target]
        wanted = [record.value for record in records]
        for number, (one, other) in enumerate(zip(wanted, copied, strict=False)):
            if one != other:
                raise PropertyViolated(
                    f"every record is copied once and in order: {target} holds {other!r} where "
                    f"record {number} of {partition} is {one!r}"
                )
        if len(copied) != len(wanted):
            raise PropertyViolated(
                f"every record is copied once and in order: {target} holds {len(copied)} of the "
                f"{len(wanted)} records of {partition}"
            )
