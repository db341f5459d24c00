"""Numbers as sorted runs, 16 bytes each: a stream of which nothing is missing is one run."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Run(NamedTuple):
    """Numbers from `first` to `last`, both among them."""

    first: int
    last: int


class IdRuns:
    """A set of numbers that come nearly in order."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts = array("q")
        self._lasts = array("q")

    @classmethod
    def of(cls, runs: Iterable[Run]) -> IdRuns:
        """Of runs in their order, which do not touch each other."""
        made = cls()
        for first, last in runs:
            made._firsts.append(first)
            made._lasts.append(last)
        return made

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._firsts)

    def __iter__(self) -> Iterator[Run]:
        return map(Run, self._firsts, self._lasts)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    @property
    def number_count(self) -> int:
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def follows_last(self, number: int) -> bool:
        """Whether it is the next number, as it nearly always is; then it is added."""
        lasts = self._lasts
        if lasts and lasts[-1] == number - 1:
            lasts[-1] = number
            return True
        return False

    def add(self, number: int) -> None:
        """A number that is not among them."""
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, number)
        extends_one = at > 0 and lasts[at - 1] == number - 1
        extends_next = at < len(firsts) and firsts[at] == number + 1
        if extends_one and extends_next:
            lasts[at - 1] = lasts[at]
            del firsts[at], lasts[at]
        elif extends_one:
            lasts[at - 1] = number
        elif extends_next:
            firsts[at] = number
        else:
            firsts.insert(at, number)
            lasts.insert(at, number)

    def needs_run(self, number: int) -> bool:
        """Whether a number that is not among them would begin a run."""
        return number - 1 not in self and number + 1 not in self

    def gaps(self) -> Iterator[Run]:
        """The runs of what is missing between the first number and the last."""
        for last, first in zip(self._lasts, self._firsts[1:], strict=False):
            yield Run(last + 1, first - 1)

    def without(self, other: IdRuns) -> Iterator[Run]:
        """The runs of these numbers that are not in `other`."""
        firsts, lasts = other._firsts, other._lasts
        for first, last in self:
            at = max(bisect_right(firsts, first) - 1, 0)
            while at < len(firsts) and firsts[at] <= last:
                if firsts[at] > first:
                    yield Run(first, firsts[at] - 1)
                first = max(first, lasts[at] + 1)
                at += 1
            if first <= last:
                yield Run(first, last)
