"""What handlers of a group did in a simulation: every run of every record, and in whose time.

A *tenure* is the time in which one program has a partition, from when it is told so to when it is
told otherwise. A run belongs to the tenure in which it began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from headwater.base.ids import TopicPartition

#: The number of a tenure that there was not.
STRAY: Final = -1


class Verdict(Enum):
    """What a handler said of its record."""

    DONE = "done"
    #: It failed, and may be tried again.
    FAILED = "failed"
    #: It is hopeless.
    DEAD = "dead"
    #: The handler never came to its end.
    NONE = "none"


@dataclass(frozen=True)
class Tenure:
    number: int
    program: str
    partition: TopicPartition
    began_s: float


@dataclass
class HandlerRun:
    tenure: Tenure
    offset: int
    key: bytes | None
    #: Where the record was read first.
    origin: str
    #: How often it had failed, as its broker counts.
    attempt: int
    began_s: float
    ended_s: float | None = None
    verdict: Verdict = Verdict.NONE
    #: After which time the handler wants it back; None for what the policy says.
    after_s: float | None = None

    @property
    def place(self) -> str:
        return f"{self.tenure.partition}@{self.offset}"


@dataclass
class HandlingLedger:
    """Of one group."""

    group_id: str
    runs: list[HandlerRun] = field(default_factory=list)
    #: By origin and attempt: how often a failure was written of which nobody knows whether the
    #: offset behind it was committed. Only of programs that do not use transactions.
    interruptions: Counter[tuple[str, int]] = field(default_factory=Counter)
    tenure_count: int = 0
    _tenures: dict[tuple[str, TopicPartition], Tenure] = field(default_factory=dict)
    #: When which offsets were seen to be committed, in the order of time.
    _committed: list[tuple[float, dict[TopicPartition, int]]] = field(default_factory=list)

    def assign(self, program: str, partitions: Iterable[TopicPartition], now_s: float) -> None:
        for partition in sorted(partitions):
            self.tenure_count += 1
            tenure = Tenure(self.tenure_count, program, partition, now_s)
            self._tenures[program, partition] = tenure

    def release(self, program: str, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._tenures.pop((program, partition), None)

    def ended(self, program: str) -> None:
        """It runs no more, or anew."""
        self._tenures = {key: each for key, each in self._tenures.items() if key[0] != program}

    def tenure(self, program: str, partition: TopicPartition) -> Tenure:
        """What it has now; a stray one, for the checker, if it does not have the partition."""
        return self._tenures.get((program, partition), Tenure(STRAY, program, partition, 0.0))

    def saw_committed(self, offsets: Mapping[TopicPartition, int], now_s: float) -> None:
        self._committed.append((now_s, dict(offsets)))

    def committed_before(self, time_s: float, partition: TopicPartition) -> int:
        """Up to where somebody had seen it to be committed at that time."""
        return max(
            (offsets.get(partition, 0) for seen_s, offsets in self._committed if seen_s < time_s),
            default=0,
        )

    def of_attempt(self, origin: str, attempt: int) -> list[HandlerRun]:
        return [run for run in self.runs if run.origin == origin and run.attempt == attempt]
