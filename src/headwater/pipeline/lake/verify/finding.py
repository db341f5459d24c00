"""What verifying a lake found: sentences, each a problem or something worth knowing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Finding(NamedTuple):
    #: False for what is only worth knowing.
    is_problem: bool
    sentence: str

    def __str__(self) -> str:
        return f"{'BAD ' if self.is_problem else 'note'} {self.sentence}"


def problem(sentence: str) -> Finding:
    return Finding(True, sentence)


def note(sentence: str) -> Finding:
    return Finding(False, sentence)


def problem_count(findings: Iterable[Finding]) -> int:
    return sum(finding.is_problem for finding in findings)
