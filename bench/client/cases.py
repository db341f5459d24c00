"""What is measured: each case is one kind of load for all clients; and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from bench.broker.sizes import MEGABYTE, size_text
from bench.client.contenders import (
    CONSUME_MATCHES,
    CONSUMERS,
    PRODUCE_MATCHES,
    PRODUCERS,
    Contender,
    Match,
)

PRODUCE, CONSUME = "produce", "consume"


@dataclass(frozen=True, slots=True)
class Case:
    direction: str
    record_size_bytes: int
    is_keyed: bool = False
    acks: str = "all"
    is_tuned: bool = False

    @property
    def title(self) -> str:
        keys = "keys" if self.is_keyed else "no keys"
        what = f"{self.direction.title()} {size_text(self.record_size_bytes)}, {keys}"
        if self.direction == CONSUME:
            return what
        batches = "equal batches" if self.is_tuned else "default batches"
        return f"{what}, acks={self.acks}, {batches}"

    @property
    def memory_bytes_per_s(self) -> int:
        """What a run needs of memory, at most: a broker keeps what is written, and has what is
        read."""
        return (1_500 if self.direction == PRODUCE else 300) * MEGABYTE

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return PRODUCERS if self.direction == PRODUCE else CONSUMERS

    @property
    def matches(self) -> tuple[Match, ...]:
        """With their goals where there are no keys."""
        matches = PRODUCE_MATCHES if self.direction == PRODUCE else CONSUME_MATCHES
        if self.is_keyed:
            return tuple(match._replace(goal=None) for match in matches)
        return matches


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    run_s: float
    warm_up_s: float
    #: How much lies in a topic that is consumed.
    consumed_bytes: int
    cases: tuple[Case, ...]


def _produced(size_bytes: int) -> tuple[Case, ...]:
    return (
        Case(PRODUCE, size_bytes),
        Case(PRODUCE, size_bytes, is_tuned=True),
        Case(PRODUCE, size_bytes, is_tuned=True, acks="1"),
        Case(PRODUCE, size_bytes, is_tuned=True, is_keyed=True),
    )


ALL_CASES = (
    *(case for size_bytes in (100, 1_000) for case in _produced(size_bytes)),
    *(
        Case(CONSUME, size_bytes, is_keyed=is_keyed)
        for size_bytes in (100, 1_000)
        for is_keyed in (False, True)
    ),
)
_QUICK_CASES = (
    Case(PRODUCE, 100),
    Case(PRODUCE, 100, is_tuned=True),
    Case(PRODUCE, 1_000, is_tuned=True),
    Case(PRODUCE, 100, is_tuned=True, is_keyed=True),
    Case(PRODUCE, 1_000, is_tuned=True, is_keyed=True),
    Case(CONSUME, 100),
    Case(CONSUME, 1_000),
    Case(CONSUME, 100, is_keyed=True),
    Case(CONSUME, 1_000, is_keyed=True),
)
FULL = Sizes(rounds=3, run_s=3.0, warm_up_s=10.0, consumed_bytes=1_000 * MEGABYTE, cases=ALL_CASES)
QUICK = Sizes(rounds=2, run_s=1.0, warm_up_s=3.0, consumed_bytes=300 * MEGABYTE, cases=_QUICK_CASES)
TINY = Sizes(
    rounds=1,
    run_s=0.1,
    warm_up_s=0.2,
    consumed_bytes=2 * MEGABYTE,
    cases=(Case(PRODUCE, 100, is_keyed=True, is_tuned=True), Case(CONSUME, 1_000)),
)
