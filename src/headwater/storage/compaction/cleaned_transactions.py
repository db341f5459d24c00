"""Which transactions a pass of compaction meets, and what it may do to their records and markers.

The log is walked in order. A transaction's records come first and its marker last, and whether it
was aborted is known beforehand from the transaction indexes. The records of aborted transactions
go. A marker may go only when no record of its transaction is left: until then a reader needs it, or
its entry in the transaction index, to tell committed records from others. As the records that go
in this pass are still met in it, the marker becomes superfluous in the next one; it then waits for
its delete horizon like a tombstone, so that a reader who saw the records sees the marker too.

An entry of the index stays as long as records of its transaction are met, and is handed on to the
index of the segment that the marker goes to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.wire.records import BatchHeader, Buffer, ControlType, decode_batch, read_control_type


@dataclass(slots=True)
class _Aborted:
    transaction: AbortedTransaction
    has_records: bool = False


class CleanedTransactions:
    """Fed with every batch of a pass in the order of the log."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        #: By producer id: the aborted transaction that is under way at this place of the log.
        self._aborted: dict[int, _Aborted] = {}
        #: Producers of whose transaction under way, not an aborted one, records were met.
        self._committed: set[int] = set()
        #: The entry that the index still needs for the marker just observed.
        self._needed: AbortedTransaction | None = None

    def observe_data(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction, so that its records can go."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        aborted = self._aborted.get(header.producer_id)
        # The marker may not have been met: the walk can begin behind it.
        if aborted is None or aborted.transaction.last_offset < header.base_offset:
            self._committed.add(header.producer_id)
            return False
        aborted.has_records = True
        return True

    def observe_control(self, header: BatchHeader, data: Buffer) -> bool:
        """Whether nobody needs the batch any more, so that it can go when its time has come."""
        if header.record_count == 0:
            return True
        self._begin_up_to(header.last_offset)
        match read_control_type(decode_batch(data, check_crc=False)[0]):
            case ControlType.ABORT:
                aborted = self._aborted.pop(header.producer_id, None)
                if aborted is None or not aborted.has_records:
                    return True
                self._needed = aborted.transaction
                return False
            case ControlType.COMMIT:
                if header.producer_id not in self._committed:
                    return True
                self._committed.discard(header.producer_id)
        return False

    def take_needed_entry(self) -> AbortedTransaction | None:
        """What to add to the index of the segment that the batch just observed goes to."""
        needed, self._needed = self._needed, None
        return needed

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            transaction = self._to_come.pop()
            current = self._aborted.get(transaction.producer_id)
            if current is None or current.transaction.last_offset < transaction.first_offset:
                self._aborted[transaction.producer_id] = _Aborted(transaction)
