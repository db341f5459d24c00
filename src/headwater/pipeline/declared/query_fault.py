"""What is wrong with the text of a query, and where in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias


class QueryFault(NamedTuple):
    """A sentence, and the line, from 1, and the position in it, from 0, that it is about."""

    sentence: str
    line: int
    position: int

    def offset_in(self, text: str) -> int:
        """How many characters of the query come before it."""
        before = text.split("\n")[: self.line - 1]
        return min(sum(len(line) + 1 for line in before) + self.position, max(0, len(text) - 1))


#: What is wrong with each of some queries, None where nothing is.
FindFaults: TypeAlias = Callable[[Sequence[str]], Sequence[QueryFault | None]]
