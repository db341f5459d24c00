"""How late messages are at a steady rate, and up to which rate they come at all in time.

Messages are written beforehand, in no order, and ordinary records go to another topic meanwhile.
A rate holds if the last message comes within a second of its time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bench.delay.load import now_ms, start_job
from bench.delay.run import Run
from bench.job_process import finish_job
from bench.rounds import Comparison, percentile
from bench.table import Goal, Row
from headwater.java.processes import kill_process
from headwater.testing.broker_process import BrokerProcess

ORDINARY_RATE_PER_S = 100
#: Writing goes at least so fast on a slow machine.
_WRITE_RATE_PER_S = 8_000
_START_S = 3.0
_GOAL = Goal(2.0, is_upper=True)
_LATE_MS_MAX = 1_000.0
_PARTITIONS_OF_MANY = 4


class Measured(NamedTuple):
    """Of one run at a rate, in ms."""

    late: list[float]
    acknowledged: list[float]


def measure(run: Run) -> None:
    for rate in run.sizes.rates_per_s:
        run.attempt(f"Lateness at {rate:,} due a second", partial(_add_rows, run, rate))
    run.attempt("The largest rate that holds", lambda: _add_largest(run))


def _add_rows(run: Run, rate_per_s: int) -> None:
    with run.broker() as broker:
        found = [
            _one_round(run, broker, rate_per_s, run.sizes.lateness_s, 1)
            for _ in range(run.sizes.rounds)
        ]
    name = f"{rate_per_s:,} due a second"
    run.results.curves[name] = [each for round in found for each in round.late]
    run.results.curves[f"ordinary records beside {name}"] = [
        each for round in found for each in round.acknowledged
    ]
    for label, share, goal in (("p50", 0.5, None), ("p99", 0.99, _GOAL)):
        values = Comparison(
            [percentile(each.late, share) for each in found],
            [percentile(each.acknowledged, share) for each in found],
        )
        what = f"Lateness {label}, {name}"
        run.results.rows.append(Row.compared(what, "ms", values, "acknowledged", goal))


def _add_largest(run: Run) -> None:
    largest, lateness_ms = 0, 0.0
    for rate in run.sizes.tried_rates_per_s:
        with run.broker() as broker:
            found = _one_round(run, broker, rate, run.sizes.tried_s, _PARTITIONS_OF_MANY)
        run.say(f"{rate:,} a second: the last is {found.late[-1]:.0f} ms late")
        if max(found.late) > _LATE_MS_MAX:
            break
        largest, lateness_ms = rate, percentile(found.late, 0.99)
    note = f"p99 {lateness_ms:.0f} ms, {_PARTITIONS_OF_MANY} partitions"
    run.results.rows.append(Row.single("Largest rate that holds", "due/s", largest, note=note))


def _one_round(
    run: Run, broker: BrokerProcess, rate_per_s: int, seconds: float, partitions: int
) -> Measured:
    count = int(rate_per_s * seconds)
    delayed = run.topic(broker, partitions, is_delayed=True)
    ordinary = run.topic(broker, is_delayed=False)
    wait_s = _START_S + count / _WRITE_RATE_PER_S
    common = {"port": broker.port, "topic": delayed, "partition_count": partitions}
    common["record_count"] = count
    receiver = start_job("receive_due", **common)
    try:
        from_ms = now_ms() + int(wait_s * 1000)
        finish_job(start_job("send_due", from_ms=from_ms, span_ms=int(seconds * 1000), **common))
        if now_ms() > from_ms:
            raise RuntimeError(f"writing {count:,} messages took longer than {wait_s:.0f} s")
        left_s = (from_ms - now_ms()) / 1000
        answered = finish_job(
            start_job(
                "send_ordinary",
                port=broker.port,
                topic=ordinary,
                seconds=left_s + seconds,
                rate_per_s=ORDINARY_RATE_PER_S,
            )
        )
        late: list[float] = finish_job(receiver)
    except BaseException:
        kill_process(receiver)
        raise
    # Only what was sent while messages were due.
    return Measured(late, [took_ms for sent_ms, took_ms in answered if sent_ms >= from_ms])
