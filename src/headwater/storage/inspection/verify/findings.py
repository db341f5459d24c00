"""What `log verify` finds, and what it has counted.

A `Finding` is a problem or a note. A problem means that something on disk is not as a broker would
have left it, and says what a start would make of it. A note is worth knowing, yet nothing is wrong:
the leftovers of a change that was interrupted, or a tail that the next start cuts off anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, NamedTuple

#: A file that is damaged throughout would otherwise fill the memory.
FINDINGS_PER_FILE_MAX: Final = 100


class Severity(StrEnum):
    PROBLEM = "problem"
    NOTE = "note"


class Condition(Enum):
    """How a log directory was left, which decides what is to be expected in it."""

    #: The marker of a clean shutdown is there: everything must be in place.
    CLEAN = "clean"
    #: There is none: the next start recovers what lies behind the recovery point.
    UNCLEAN = "unclean"
    #: A broker holds the lock and may be writing at this moment.
    IN_USE = "in use"
    #: A partition's directory on its own: nothing tells, so everything must be in place.
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    severity: Severity
    path: str
    #: Where in the file, in bytes; None if it is about the file as a whole.
    position: int | None
    #: What was found: a clause, without the full stop.
    what: str
    #: What a start of the broker, or its operator, does about it: a sentence.
    remedy: str = ""

    @property
    def is_problem(self) -> bool:
        return self.severity is Severity.PROBLEM

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.severity}: {self.path}:{place} {self.what}.{remedy}"


def _ignore(_: object) -> None:
    """For a caller that looks at the report in the end."""


@dataclass(slots=True)
class Report:
    """The findings of one run, in the order of their discovery, and the counts of its summary."""

    deep: bool = False
    #: Told how many more bytes of log have been read.
    on_bytes: Callable[[int], None] = _ignore
    #: Told of each finding as it is made.
    on_finding: Callable[[Finding], None] = _ignore
    findings: list[Finding] = field(default_factory=list)
    partition_count: int = 0
    segment_count: int = 0
    batch_count: int = 0
    record_count: int = 0
    size_bytes: int = 0
    _counts_by_path: dict[str, int] = field(default_factory=dict)

    def problem(self, path: str, position: int | None, what: str, remedy: str = "") -> None:
        self.add(Severity.PROBLEM, path, position, what, remedy)

    def note(self, path: str, position: int | None, what: str, remedy: str = "") -> None:
        self.add(Severity.NOTE, path, position, what, remedy)

    def add(
        self, severity: Severity, path: str, position: int | None, what: str, remedy: str = ""
    ) -> None:
        count = self._counts_by_path.get(path, 0) + 1
        self._counts_by_path[path] = count
        if count > FINDINGS_PER_FILE_MAX:
            return
        finding = Finding(severity, path, position, what, remedy)
        if count == FINDINGS_PER_FILE_MAX:
            what = "there is more, which is not listed"
            finding = Finding(severity, path, position, what)
        self.findings.append(finding)
        self.on_finding(finding)

    @property
    def problem_count(self) -> int:
        return sum(finding.is_problem for finding in self.findings)

    @property
    def note_count(self) -> int:
        return len(self.findings) - self.problem_count
