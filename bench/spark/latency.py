"""How long after it was written a record's micro-batch is done, if batches follow one another.

A query with the trigger that never waits reads one partition into nothing while records come at a
steady rate. Each batch tells which offsets it had, when it began and how long it took; the record
of an offset was written at a known time. So nothing is measured inside of Spark.
"""

from __future__ import annotations

import itertools
import json
import time
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.broker.results import LATENCY, Row
from bench.broker.run import take_turns
from bench.rounds import Comparison, percentile
from bench.spark.run import Run
from bench.spark.sides import SIDES, Side

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

SECTION = "Micro-batches"
_SHARES = {"p50": 0.5, "p99": 0.99}
_FINISH_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.05

_numbers = itertools.count(1)


class DoneBatch(NamedTuple):
    """Offsets before `end_offset` are done at `done_s`, by the clock of the wall."""

    end_offset: int
    done_s: float


def measure(run: Run) -> None:
    run.attempt(f"{SECTION}: latency", partial(_compare, run))


def _compare(run: Run) -> None:
    for _ in range(run.sizes.warm_up_rounds):
        for side in SIDES:
            _latencies_ms(run, side)
    found = take_turns(SIDES, run.sizes.latency_rounds, partial(_latencies_ms, run))
    for name, share in _SHARES.items():
        ours, peers = ([percentile(each, share) for each in values] for values in found)
        what = f"record written to batch done, {name}"
        run.results.rows.append(Row(SECTION, what, "ms", Comparison(ours, peers), LATENCY))


def _latencies_ms(run: Run, side: Side) -> list[float]:
    number = next(_numbers)
    with run.server.topic(f"latency-{number}", 1) as topic:
        query = (
            run.spark.readStream.format(side.format_name)
            .options(**side.options(run.server.bootstrap))
            .options(subscribe=topic, startingOffsets="earliest")
            .load()
            .writeStream.format("noop")
            .trigger(processingTime="0 seconds")
            .option("checkpointLocation", str(run.directory / f"checkpoint-{number}"))
            .start()
        )
        try:
            sent_s = _send(run, topic, query)
            batches = _done_batches(query, topic, len(sent_s))
        finally:
            query.stop()
    skipped = round(run.sizes.latency_warm_up_s / run.sizes.latency_interval_s)
    return latencies_ms(sent_s, batches)[skipped:]


def _send(run: Run, topic: str, query: StreamingQuery) -> list[float]:
    """Write record after record; returns when each of them was."""
    from headwater import Producer

    sizes = run.sizes
    count = round((sizes.latency_warm_up_s + sizes.latency_s) / sizes.latency_interval_s)
    sent_s: list[float] = []
    with Producer({"bootstrap.servers": run.server.bootstrap, "linger.ms": 0}) as producer:
        # A query needs some seconds until its first batch is done, and that is not the question.
        producer.send(topic, b"first").result(_FINISH_TIMEOUT_S)
        sent_s.append(time.time())
        _wait_for(query, topic, 1)
        next_s = time.monotonic()
        for _ in range(count):
            time.sleep(max(0.0, next_s - time.monotonic()))
            next_s += sizes.latency_interval_s
            sent_s.append(time.time())
            producer.send(topic, b"x" * 100)
        producer.flush(_FINISH_TIMEOUT_S)
    return sent_s


def _done_batches(query: StreamingQuery, topic: str, record_count: int) -> list[DoneBatch]:
    _wait_for(query, topic, record_count)
    return [done_batch(progress, topic) for progress in _progress(query)]


def _wait_for(query: StreamingQuery, topic: str, record_count: int) -> None:
    end_s = time.monotonic() + _FINISH_TIMEOUT_S
    while not any(
        done_batch(progress, topic).end_offset >= record_count for progress in _progress(query)
    ):
        if (failure := query.exception()) is not None:
            raise failure
        if time.monotonic() > end_s:
            raise RuntimeError(f"{record_count} records were not read in {_FINISH_TIMEOUT_S:g} s")
        time.sleep(_POLL_INTERVAL_S)


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    """What is known of each batch that had something to read."""
    return [
        progress
        for progress in (json.loads(each.json) for each in query.recentProgress)
        if progress["numInputRows"] > 0
    ]


def done_batch(progress: dict[str, Any], topic: str) -> DoneBatch:
    [source] = progress["sources"]
    end = source["endOffset"]
    offsets = json.loads(end) if isinstance(end, str) else end
    began = datetime.fromisoformat(progress["timestamp"])
    taken_s = progress["durationMs"]["triggerExecution"] / 1000
    return DoneBatch(int(offsets[topic]["0"]), began.timestamp() + taken_s)


def latencies_ms(sent_s: Sequence[float], batches: Sequence[DoneBatch]) -> list[float]:
    """How long each record took, in the order of offsets; all of them are done."""
    ordered = sorted(batches)
    ends = [batch.end_offset for batch in ordered]
    return [
        (ordered[bisect_right(ends, offset)].done_s - written_s) * 1000
        for offset, written_s in enumerate(sent_s)
    ]
