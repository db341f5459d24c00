"""Compares what the pipelines came to with what they must: one verdict a question, no maybe.

Everything is compared as a bag, so that a row that is missing, one too many and one that is there
twice are all found, and a few of them are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from headwater.pipeline.demo.calculation import Expected, PaidOrder, Revenue
from headwater.pipeline.demo.sending import SentRecord

T = TypeVar("T", bound=Hashable)

_NAMED_MAX: Final = 2
_NAME_LENGTH_MAX: Final = 120


class Verdict(NamedTuple):
    """A question, its answer, and in a sentence what was found."""

    question: str
    is_right: bool
    found: str


class RevenueRow(NamedTuple):
    window_start_ms: int
    category: str
    revenue: Revenue


class Rejected(NamedTuple):
    """A record in a dead-letter topic: the topic that it came from, its value, and why."""

    topic: str
    value: bytes
    reason: str


def compare_archive(sent: Iterable[SentRecord], archived: Iterable[SentRecord]) -> Verdict:
    """Every record once, byte for byte, at its offset."""
    return _compared("Every record is archived, once and unchanged", "records", sent, archived)


def judge_findings(problems: Iterable[str], coverage: str) -> Verdict:
    """What `headwater lake verify` says."""
    found = list(problems)
    question = "The archive's manifest proves that no offset is missing or there twice"
    return Verdict(question, not found, found[0] if found else coverage)


def compare_revenue(expected: Expected, rows: Iterable[RevenueRow]) -> Verdict:
    """Every window and category once, with its sum and count."""
    wanted = _rows(expected.revenue)
    return _compared("Revenue by window and category, in the lake", "rows", wanted, rows)


def compare_closed_revenue(expected: Expected, rows: Iterable[RevenueRow]) -> Verdict:
    """Every window that is final, once."""
    wanted = _rows(expected.closed_revenue)
    return _compared("Windows that are final, each once in the topic", "records", wanted, rows)


def compare_paid_orders(expected: Expected, rows: Iterable[PaidOrder]) -> Verdict:
    """Every order that was paid in time, once."""
    return _compared("Orders with their payments", "rows", expected.paid_orders, rows)


def compare_rejected(expected: Expected, found: Iterable[Rejected]) -> Verdict:
    """Exactly the malformed records, each with a reason."""
    rejected = list(found)
    question = "The malformed records, and only they, are in the dead-letter topics"
    unexplained = sum(1 for record in rejected if not record.reason)
    if unexplained:
        return Verdict(question, False, f"{unexplained:,} have no reason")
    wanted = [(topic, value) for topic, values in expected.rejected.items() for value in values]
    return _compared(question, "records", wanted, [record[:2] for record in rejected])


def judge_lag(lag_by_group: Mapping[str, int]) -> Verdict:
    """Nothing is left to read."""
    behind = [f"{group} lags by {lag:,}" for group, lag in lag_by_group.items() if lag]
    names = ", ".join(lag_by_group)
    return Verdict(
        "No pipeline lags behind",
        bool(lag_by_group) and not behind,
        "; ".join(behind) or f"lag 0: {names}",
    )


def _rows(revenue: Mapping[tuple[int, str], Revenue]) -> list[RevenueRow]:
    return [RevenueRow(start, category, total) for (start, category), total in revenue.items()]


def _compared(question: str, noun: str, wanted: Iterable[T], found: Iterable[T]) -> Verdict:
    wanted_counts, found_counts = Counter(wanted), Counter(found)
    if wanted_counts == found_counts:
        return Verdict(question, True, f"{found_counts.total():,} {noun}")
    missing, extra = wanted_counts - found_counts, found_counts - wanted_counts
    parts = [
        f"{differing.total():,} {noun} {word}, such as {_named(differing)}"
        for differing, word in ((missing, "missing"), (extra, "too many"))
        if differing
    ]
    return Verdict(question, False, "; ".join(parts))


def _named(rows: Counter[T]) -> str:
    texts = [str(row) for row in list(rows)[:_NAMED_MAX]]
    return " and ".join(
        text if len(text) <= _NAME_LENGTH_MAX else text[:_NAME_LENGTH_MAX] + "..." for text in texts
    )
