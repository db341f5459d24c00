"""Very many messages that are due in the same second: how soon all are there, and what other topics
feel of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bench.delay.lateness import ORDINARY_RATE_PER_S
from bench.delay.load import now_ms, start_job
from bench.delay.run import Run
from bench.job_process import finish_job
from bench.rounds import Comparison, percentile
from bench.table import Row
from headwater.java.processes import kill_process

PARTITION_COUNT = 4
_SECOND_MS = 1_000
#: Before the second comes other topics are measured in peace.
_PEACE_MS = 5_000
_WRITE_RATE_PER_S = 8_000


def measure(run: Run) -> None:
    run.attempt(f"{run.sizes.burst_count:,} due in one second", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    count = run.sizes.burst_count
    with run.broker() as broker:
        delayed = run.topic(broker, PARTITION_COUNT, is_delayed=True)
        ordinary = run.topic(broker, is_delayed=False)
        from_ms = now_ms() + int(count / _WRITE_RATE_PER_S * 1000) + 2 * _PEACE_MS
        common = {"port": broker.port, "topic": delayed, "partition_count": PARTITION_COUNT}
        common["record_count"] = count
        finish_job(start_job("send_due", from_ms=from_ms, span_ms=_SECOND_MS, **common))
        if now_ms() > from_ms - _PEACE_MS:
            raise RuntimeError(f"writing {count:,} messages took too long")
        receiver = start_job("receive_due", **common)
        others = {"port": broker.port, "topic": ordinary, "rate_per_s": ORDINARY_RATE_PER_S}
        answered: list[list[float]] = []
        with ThreadPoolExecutor(1) as threads:
            # It has much to tell, so somebody has to listen.
            received = threads.submit(finish_job, receiver)
            try:
                while not received.done():
                    answered += finish_job(start_job("send_ordinary", seconds=2.0, **others))
                late: list[float] = received.result()
            except BaseException:
                kill_process(receiver)
                raise
    last_ms = from_ms + _SECOND_MS + max(late)
    peace = [took for sent, took in answered if sent < from_ms]
    meanwhile = [took for sent, took in answered if from_ms <= sent <= last_ms]
    note = f"{count:,} due in one second, {PARTITION_COUNT} partitions"
    rows = run.results.rows
    rows.append(Row.single("The last of a burst is late by", "s", max(late) / 1000, note=note))
    rows.append(
        Row.single("Delivered in a burst", "records/s", count / (max(late) / 1000 + 1), note=note)
    )
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        values = Comparison([percentile(meanwhile, share)], [percentile(peace, share)])
        what = f"Another topic's acknowledgements meanwhile, {label}"
        rows.append(Row.compared(what, "ms", values, "before"))
