"""What is wrong with a pipeline's file: all of it at once, each with line and column."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.base.errors import InvalidConfigError


class Place(NamedTuple):
    """Line and column, both from 1. Line 0 stands for the whole file or the command line."""

    line: int
    column: int


NOWHERE = Place(0, 0)


class Problem(NamedTuple):
    place: Place
    sentence: str


class PipelineFileError(InvalidConfigError):
    """A pipeline's file cannot be used; it holds every problem that was found, in their order."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines()))

    def __str__(self) -> str:
        # All of them, where other errors are cut short.
        return self.detail

    def __reduce__(self) -> tuple[type[PipelineFileError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.file, self.problems)

    def lines(self) -> list[str]:
        """`file:line:column: sentence` for each, without the place where there is none."""
        return [
            f"{self.file}:{place.line}:{place.column}: {sentence}"
            if place.line
            else f"{self.file}: {sentence}"
            for place, sentence in self.problems
        ]


class Problems:
    """Collects what is found, so that a file is read to its end whatever is wrong with it."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def add(self, place: Place, sentence: str) -> None:
        self._found[Problem(place, sentence)] = None

    def __len__(self) -> int:
        return len(self._found)

    def in_order(self) -> list[Problem]:
        """By place; what was said twice is there once."""
        return sorted(self._found, key=lambda problem: problem.place)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest that exists, or all of a few."""
    candidates = list(dict.fromkeys(known))
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    if near:
        return f": did you mean {lowered[near[0]]!r}?"
    if 0 < len(candidates) <= 12:
        return f"; there {'is' if len(candidates) == 1 else 'are'} {listed(candidates)}."
    return "."


def listed(names: Iterable[str], last: str = "and") -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [repr(name) for name in names]
    return f" {last} ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1]))) if quoted else ""
