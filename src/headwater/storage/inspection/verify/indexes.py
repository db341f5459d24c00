"""Checking a segment's indexes while its log is walked once.

Each class is told of the batches in order and goes through its index alongside, so an index costs
no reading of the log and no memory. A stretch of damage in the log makes it impossible to say
whether the entries that lead there are right; they are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headwater.storage.indexes.offset_index import OffsetPosition
from headwater.storage.indexes.time_index import TimestampOffset
from headwater.storage.indexes.transaction_index import VERSION, AbortedTransaction
from headwater.storage.inspection.index_entries import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY
from headwater.wire.records import NO_TIMESTAMP, BatchHeader

#: Takes the position in the index file and what is wrong there.
Complain = Callable[[int | None, str], None]


class OffsetIndexCheck:
    """Every entry leads to the start of a batch and has the last offset of that batch.

    Brokers before Kafka 4 made one entry for several batches that were written at once: it led to
    the first of them and had the last offset of the last. That serves as well, and is only counted.
    """

    def __init__(self, entries: Iterator[OffsetPosition], complain: Complain) -> None:
        self._entries = enumerate(entries)
        self._complain = complain
        self._number = 0
        self._entry: OffsetPosition | None = None
        self._previous = OffsetPosition(-1, -1)
        self._spanning: tuple[int, OffsetPosition] | None = None
        self.spanning_count = 0
        self._indexed_position = 0
        self.unindexed_bytes_max = 0
        self._advance()

    def _advance(self) -> None:
        """Go to the next entry, past those that are out of order."""
        for number, entry in self._entries:
            previous, self._previous = self._previous, entry
            if entry.offset > previous.offset and entry.position > previous.position:
                self._number, self._entry = number, entry
                return
            self._complain(
                number * OFFSET_ENTRY.size,
                f"offset {entry.offset} at position {entry.position} does not follow "
                f"offset {previous.offset} at position {previous.position}",
            )
        self._entry = None

    def see(self, position: int, header: BatchHeader) -> None:
        last_offset = header.last_offset
        if self._spanning is not None and last_offset >= self._spanning[1].offset:
            self._end_span(last_offset)
        while self._entry is not None and self._entry.position <= position:
            entry = self._entry
            if entry.position < position:
                self._complain(
                    self._number * OFFSET_ENTRY.size,
                    f"offset {entry.offset} leads to position {entry.position} of the log, "
                    "where no batch starts",
                )
            elif entry.offset > last_offset:
                self._end_span(-1)
                self._spanning = (self._number, entry)
            elif entry.offset < last_offset:
                self._mismatch(self._number, entry, last_offset)
            self._note_stretch(position)
            self._advance()

    def _end_span(self, last_offset: int) -> None:
        if self._spanning is not None:
            number, entry = self._spanning
            self._spanning = None
            if entry.offset == last_offset:
                self.spanning_count += 1
            else:
                self._mismatch(number, entry, None)

    def _mismatch(self, number: int, entry: OffsetPosition, last_offset: int | None) -> None:
        ends = "otherwise" if last_offset is None else f"with offset {last_offset}"
        self._complain(
            number * OFFSET_ENTRY.size,
            f"offset {entry.offset} leads to the batch at position {entry.position} of the log, "
            f"which ends {ends}",
        )

    def _note_stretch(self, position: int) -> None:
        stretch = position - self._indexed_position
        self.unindexed_bytes_max = max(self.unindexed_bytes_max, stretch)
        self._indexed_position = position

    def skip(self, end: int) -> None:
        """The log is damaged up to `end`."""
        self._spanning = None
        while self._entry is not None and self._entry.position < end:
            self._advance()

    def finish(self, last_position: int) -> None:
        """The log ends; `last_position` is where its last batch starts."""
        self._end_span(-1)
        while self._entry is not None:
            self._complain(
                self._number * OFFSET_ENTRY.size,
                f"offset {self._entry.offset} leads to position {self._entry.position} of the "
                "log, which ends before",
            )
            self._advance()
        self._note_stretch(last_position)


class TimeIndexCheck:
    """Every entry has the largest timestamp up to its offset, which is that of the batch there.

    The offset is the batch's last. Some brokers before Kafka 4 wrote that of the record itself,
    which serves as well, and is only counted.
    """

    def __init__(self, entries: Iterator[TimestampOffset], complain: Complain) -> None:
        self._entries = enumerate(entries)
        self._complain = complain
        self._number = 0
        self._entry: TimestampOffset | None = None
        self._previous = TimestampOffset(NO_TIMESTAMP, -1)
        self._largest = NO_TIMESTAMP
        self._is_blind = False
        self.inexact_count = 0
        self._advance()

    def _advance(self) -> None:
        for number, entry in self._entries:
            previous, self._previous = self._previous, entry
            if entry.timestamp > previous.timestamp and entry.offset > previous.offset:
                self._number, self._entry = number, entry
                return
            self._complain(
                number * TIME_ENTRY.size,
                f"timestamp {entry.timestamp} at offset {entry.offset} does not follow "
                f"timestamp {previous.timestamp} at offset {previous.offset}",
            )
        self._entry = None

    def see(self, header: BatchHeader) -> None:
        self._largest = max(self._largest, header.max_timestamp)
        while self._entry is not None and self._entry.offset <= header.last_offset:
            self._check(self._entry, header)
            self._advance()

    def see_hidden(self, header: BatchHeader) -> None:
        """A batch that is never found by its time."""
        while self._entry is not None and self._entry.offset <= header.last_offset:
            if not self._is_blind:
                self._complain(
                    self._number * TIME_ENTRY.size,
                    f"it gives timestamp {self._entry.timestamp} for offset {self._entry.offset}, "
                    "which is hidden",
                )
            self._advance()

    def _check(self, entry: TimestampOffset, header: BatchHeader) -> None:
        if self._is_blind:
            return
        if entry.offset < header.base_offset:
            fault = "which is in no batch"
        elif entry.timestamp != header.max_timestamp:
            fault = f"whose batch has {header.max_timestamp}"
        elif entry.timestamp != self._largest:
            fault = f"although a batch in front of it has {self._largest}"
        else:
            self.inexact_count += entry.offset != header.last_offset
            return
        self._complain(
            self._number * TIME_ENTRY.size,
            f"it gives timestamp {entry.timestamp} for offset {entry.offset}, {fault}",
        )

    def skip(self) -> None:
        """The log is damaged: from here on the largest timestamp is not certain."""
        self._is_blind = True

    def finish(self, *, is_complete: bool) -> None:
        """The log ends; a complete index ends with its largest timestamp."""
        while self._entry is not None:
            if not self._is_blind:
                self._complain(
                    self._number * TIME_ENTRY.size,
                    f"it gives timestamp {self._entry.timestamp} for offset {self._entry.offset}, "
                    "before which the log ends",
                )
            self._advance()
        if is_complete and not self._is_blind and self._largest > self._previous.timestamp:
            self._complain(
                None,
                f"its last timestamp is {self._previous.timestamp}, "
                f"but the segment's largest is {self._largest}",
            )


class EndedTransaction(NamedTuple):
    """What the log tells of a transaction when its marker is met; None for what it does not tell.

    A transaction without records in the log need not be in the index.
    """

    has_records: bool
    first_offset: int | None = None
    last_stable_offset: int | None = None


class TransactionIndexCheck:
    """Every entry has its abort marker in the segment, and every abort its entry."""

    def __init__(
        self, entries: Iterator[tuple[int, AbortedTransaction]], complain: Complain
    ) -> None:
        self._entries = enumerate(entries)
        self._complain = complain
        self._number = 0
        self._entry: AbortedTransaction | None = None
        self._previous_offset = -1
        self._is_blind = False
        self._advance()

    def _advance(self) -> None:
        for number, (version, entry) in self._entries:
            previous_offset, self._previous_offset = self._previous_offset, entry.last_offset
            position = number * TRANSACTION_ENTRY.size
            if version != VERSION:
                self._complain(position, f"an entry has version {version}, and only 0 is known")
            elif entry.last_offset <= previous_offset:
                self._complain(
                    position,
                    f"the abort at offset {entry.last_offset} does not follow {previous_offset}",
                )
            elif not 0 <= entry.first_offset <= entry.last_offset or not (
                0 <= entry.last_stable_offset <= entry.last_offset + 1
            ):
                self._complain(position, f"{tuple(entry)} contradicts itself")
            else:
                self._number, self._entry = number, entry
                return
        self._entry = None

    def see(self, header: BatchHeader) -> None:
        """A batch that is not an abort marker."""
        self._pass_damage(header)
        while self._entry is not None and self._entry.last_offset <= header.last_offset:
            self._no_marker(self._entry)

    def see_abort(self, header: BatchHeader, ended: EndedTransaction) -> None:
        """An abort marker, and what the log tells of the transaction that it ended."""
        self._pass_damage(header)
        offset = header.base_offset
        while self._entry is not None and self._entry.last_offset < offset:
            self._no_marker(self._entry)
        entry = self._entry
        if entry is None or entry.last_offset != offset:
            if ended.has_records:
                self._complain(None, f"there is no entry for the abort at offset {offset}")
            return
        if entry.producer_id != header.producer_id:
            self._misfit(entry, f"producer {header.producer_id}")
        elif ended.first_offset not in (None, entry.first_offset):
            self._misfit(entry, f"a transaction from offset {ended.first_offset} on")
        elif ended.last_stable_offset not in (None, entry.last_stable_offset):
            self._misfit(entry, f"the last stable offset {ended.last_stable_offset}")
        self._advance()

    def _misfit(self, entry: AbortedTransaction, logged: str) -> None:
        self._complain(
            self._number * TRANSACTION_ENTRY.size,
            f"it gives the abort at offset {entry.last_offset} to producer {entry.producer_id} "
            f"from offset {entry.first_offset} on with the last stable offset "
            f"{entry.last_stable_offset}, but the log says {logged}",
        )

    def _no_marker(self, entry: AbortedTransaction) -> None:
        self._complain(
            self._number * TRANSACTION_ENTRY.size,
            f"it gives an abort of producer {entry.producer_id} at offset {entry.last_offset}, "
            "where no marker says so",
        )
        self._advance()

    def skip(self) -> None:
        """The log is damaged, up to the next batch that is seen."""
        self._is_blind = True

    def _pass_damage(self, header: BatchHeader) -> None:
        while (
            self._is_blind
            and self._entry is not None
            and self._entry.last_offset < header.base_offset
        ):
            self._advance()
        self._is_blind = False

    def finish(self) -> None:
        while self._entry is not None and not self._is_blind:
            self._no_marker(self._entry)
