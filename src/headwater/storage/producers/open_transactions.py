"""A partition's transactions that readers of committed data must not pass.

A transaction holds the last stable offset back while it is *open*, and also after its marker was
written, as long as it is *unreplicated*: until the high watermark has passed the marker. A leader
that is about to be replaced could otherwise show records whose fate the next leader has not seen.

Both questions that are asked on every append, where the first transaction of each kind begins, are
answered without a search.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from headwater.base.checks import check


class CompletedTransaction(NamedTuple):
    """A transaction that its marker, at `last_offset`, has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class OpenTransactions:
    """First offsets of the open transactions, and of the ended ones that await replication."""

    def __init__(self) -> None:
        #: First offset -> producer id. Transactions begin in offset order, which a dict keeps.
        self._open: dict[int, int] = {}
        #: (first offset, marker's offset) of unreplicated transactions: in the order of their
        #: markers, and the same pairs sorted by first offset.
        self._unreplicated: deque[tuple[int, int]] = deque()
        self._unreplicated_sorted: list[tuple[int, int]] = []

    @property
    def has_unreplicated(self) -> bool:
        return bool(self._unreplicated)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open or unreplicated."""
        undecided = self.first_undecided_offset
        if not self._unreplicated_sorted:
            return undecided
        unreplicated = self._unreplicated_sorted[0][0]
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def start(self, first_offset: int, producer_id: int) -> None:
        self._open[first_offset] = producer_id

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """What the last stable offset could be at the marker of `completed`.

        A follower gets several batches at once, and may know of a transaction that began behind
        the marker. That one does not count: an index says what its log does, whichever way the
        batches came, and `log verify` holds it to that.
        """
        behind_marker = completed.last_offset + 1
        for first_offset, producer_id in self._open.items():
            if producer_id != completed.producer_id:
                return min(first_offset, behind_marker)
        return behind_marker

    def complete(self, completed: CompletedTransaction) -> None:
        """Take a transaction from the open ones to those whose marker awaits replication."""
        check(
            self._open.pop(completed.first_offset, None) == completed.producer_id,
            "%s was not open at its first offset",
            completed,
        )
        ended = (completed.first_offset, completed.last_offset)
        self._unreplicated.append(ended)
        insort(self._unreplicated_sorted, ended)

    def forget_unreplicated_below(self, offset: int) -> None:
        """Markers below `offset` are replicated, or gone with the start of the log."""
        while self._unreplicated and self._unreplicated[0][1] < offset:
            ended = self._unreplicated.popleft()
            del self._unreplicated_sorted[bisect_left(self._unreplicated_sorted, ended)]

    def reset(self, open_transactions: Iterable[tuple[int, int]]) -> None:
        """Start anew with these (first offset, producer id) open."""
        self._open = dict(sorted(open_transactions))
        self._unreplicated.clear()
        self._unreplicated_sorted.clear()
