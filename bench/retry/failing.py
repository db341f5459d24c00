"""A tenth of all records fails at a steady rate: whether a worker keeps up, and what others feel.

Of those that fail, nine of ten are handled when they are shown again, and the tenth is a dead
letter in the end. Every record's outcome is checked. The same rate without failures is what the
latency of the good ones is compared with.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.broker.servers import Server
from bench.job_process import finish_job
from bench.retry.failing_load import DIE_EVERY, start_job
from bench.retry.run import Run
from bench.retry.sizes import PARTITION_COUNT
from bench.rounds import Comparison, percentile
from bench.table import Goal, Row
from headwater.java.processes import kill_process
from headwater.wire.delayed.retry_topics import dead_letter_topic

#: Behind by less than this share of the rate is keeping up.
_KEEPS_UP = 0.95


class _Round(NamedTuple):
    good_ms: list[float]
    late_ms: list[float]
    first_attempts_per_s: float
    retried_count: int
    transaction_count: int
    letter_count: int


def measure(run: Run) -> None:
    run.attempt(f"A tenth fails at {run.sizes.rate_per_s:,} a second", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    failing: list[_Round] = []
    well: list[_Round] = []
    with run.broker() as broker:
        for _ in range(run.sizes.failing_rounds):
            well.append(_one_round(run, broker, has_failures=False))
            failing.append(_one_round(run, broker, has_failures=True))
    good = run.results.curves["good records, a tenth fails"] = _joined(failing, "good_ms")
    usual = run.results.curves["good records, nothing fails"] = _joined(well, "good_ms")
    late = run.results.curves["retries"] = _joined(failing, "late_ms")
    run.say(f"{len(good):,} latencies beside {len(usual):,}, {len(late):,} retries")
    rows, rate = run.results.rows, run.sizes.rate_per_s
    name = f"{rate:,} records/s, a tenth fails"
    slowest = min(each.first_attempts_per_s for each in failing)
    goal = Goal(_KEEPS_UP * rate)
    rows.append(Row.single(f"{name}: handled", "records/s", slowest, goal, "the slowest round"))
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        values = Comparison(
            [percentile(each.good_ms, share) for each in failing],
            [percentile(each.good_ms, share) for each in well],
        )
        what = f"{name}: latency of the others, {label}"
        rows.append(Row.compared(what, "ms", values, "nothing fails"))
    retried_count = sum(each.retried_count for each in failing)
    letter_count = sum(each.letter_count for each in failing)
    transaction_count = sum(each.transaction_count for each in failing)
    note = (
        f"{retried_count:,} sent on in {transaction_count:,} transactions, {letter_count:,} dead "
        "letters, each outcome as it had to be"
    )
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        what = f"{name}: retries are late by, {label}"
        rows.append(Row.single(what, "ms", percentile(late, share), note=note))
        note = ""


def _joined(rounds: list[_Round], name: str) -> list[float]:
    return [value for each in rounds for value in getattr(each, name)]


def _one_round(run: Run, broker: Server, *, has_failures: bool) -> _Round:
    rate = run.sizes.rate_per_s
    # Whole hundreds, so that the expected numbers are simple.
    count = max(DIE_EVERY, int(rate * run.sizes.failing_s) // DIE_EVERY * DIE_EVERY)
    group = run.name("group")
    with broker.topic(run.name("topic"), PARTITION_COUNT) as topic:
        common = {"bootstrap": broker.bootstrap, "topic": topic, "record_count": count}
        worker = start_job("work", group=group, has_failures=has_failures, **common)
        try:
            begun_s = finish_job(start_job("send", rate_per_s=rate, **common))
            told = finish_job(worker)
        except BaseException:
            kill_process(worker)
            raise
        letter_count = count // DIE_EVERY if has_failures else 0
        if has_failures:
            expected = {"topic": dead_letter_topic(group), "letter_count": letter_count}
            found = finish_job(start_job("count_letters", bootstrap=broker.bootstrap, **expected))
            if found != letter_count:
                raise RuntimeError(f"there are {found:,} dead letters, not {letter_count:,}")
    return _Round(
        told["good_ms"],
        told["late_ms"],
        count / (told["ended_s"] - begun_s),
        told["retried_count"],
        told["transaction_count"],
        letter_count,
    )
