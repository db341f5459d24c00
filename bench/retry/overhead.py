"""A worker beside a plain consumer where nothing fails: the same topic, in turns.

With several threads or tasks a worker keeps the order of keys and a window for each partition. Its
handlers then are such as wait, so it is measured with those too; a handler that does nothing shows
what a record costs.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bench.broker.filled_topic import filled_topic
from bench.broker.servers import Server
from bench.broker.sizes import size_text
from bench.retry.readers import run_reader
from bench.retry.run import Run
from bench.retry.sizes import PARTITION_COUNT
from bench.rounds import alternate
from bench.table import Goal, Row

_GOAL = Goal(0.9)
_KEY_SIZE_BYTES = 10
_WAIT_S = 0.001
_THREAD_COUNT = 4
_TASK_COUNT = 20


class _Match(NamedTuple):
    title: str
    worker: str
    concurrency: int
    peer: str
    goal: Goal | None


_DIRECT = (
    _Match("Worker", "worker", 1, "consumer", _GOAL),
    _Match("AsyncWorker", "async-worker", 1, "async-consumer", _GOAL),
)
_IN_LANES = (
    _Match(f"Worker, {_THREAD_COUNT} threads", "worker", _THREAD_COUNT, "consumer", None),
    _Match(
        f"AsyncWorker, {_TASK_COUNT} tasks", "async-worker", _TASK_COUNT, "async-consumer", None
    ),
)


def measure(run: Run) -> None:
    with run.broker() as broker:
        for size_bytes, filled_count in run.sizes.read_counts.items():
            total_bytes = size_bytes * filled_count
            what = f"{size_text(size_bytes)}, handlers that do nothing"
            with filled_topic(
                *(broker, run.name("topic"), PARTITION_COUNT, size_bytes, total_bytes),
                key_size_bytes=_KEY_SIZE_BYTES,
            ) as (topic, record_count):
                for match in (*_DIRECT, *_IN_LANES):
                    is_direct = match.concurrency == 1
                    count = record_count if is_direct else min(record_count, run.sizes.lane_count)
                    take = partial(_add_row, run, broker, topic, count, 0.0, what, match)
                    run.attempt(f"{match.title}, {what}", take)
        with filled_topic(
            *(broker, run.name("topic"), PARTITION_COUNT, 100, 100 * run.sizes.waiting_count),
            key_size_bytes=_KEY_SIZE_BYTES,
        ) as (topic, record_count):
            what = "handlers that wait 1 ms"
            count = min(record_count, run.sizes.waiting_count)
            for match in _IN_LANES:
                waiting = match._replace(goal=_GOAL)
                take = partial(_add_row, run, broker, topic, count, _WAIT_S, what, waiting)
                run.attempt(f"{match.title}, {what}", take)


def _add_row(
    run: Run,
    broker: Server,
    topic: str,
    record_count: int,
    wait_s: float,
    what: str,
    match: _Match,
) -> None:
    common = {
        "bootstrap": broker.bootstrap,
        "topic": topic,
        "record_count": record_count,
        "wait_s": wait_s,
    }

    def ours() -> float:
        group = run.name("group")
        return run_reader(match.worker, group=group, concurrency=match.concurrency, **common)

    def peer() -> float:
        return run_reader(match.peer, group=run.name("group"), **common)

    rates = alternate(ours, peer, run.sizes.rounds)
    row = Row.compared(f"{match.title}, {what}", "records/s", rates, match.peer, match.goal)
    run.results.rows.append(row)
