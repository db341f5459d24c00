"""Many messages that wait for up to a week: the memory they take, and a restart with them.

Before the restart some are left overdue, so the first delivery is the first copy that a reader sees
after the process was started. The checkpoint is good, as after every stop in order.
"""

from __future__ import annotations

import time

from bench.broker.process_usage import resident_bytes
from bench.broker.raw_client import RawClient, wait_until
from bench.delay.load import due_batches, now_ms, produce, send_due
from bench.delay.run import Run
from bench.table import Goal, Row
from headwater.testing.broker_process import BrokerProcess

PARTITION_COUNT = 4
_WEEK_MS = 7 * 24 * 3600 * 1000
_MEMORY_GOAL = Goal(80.0, is_upper=True)
_RESTART_GOAL = Goal(2.0, is_upper=True)
#: What is due so soon is in memory anyway.
_SOON_MS = 600_000
#: What a process takes more for its first writes is none of what waits.
_WARM_UP_COUNT = 20_000
_SETTLE_S = 12.0
_STOP_MS = 3_000


def measure(run: Run) -> None:
    run.attempt(f"{run.sizes.waiting_count:,} waiting", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    count = run.sizes.waiting_count
    with run.broker() as broker:
        topic = run.topic(broker, PARTITION_COUNT, is_delayed=True)
        common = {"from_ms": now_ms() + _SOON_MS, "span_ms": _WEEK_MS}
        send_due(broker.port, topic, PARTITION_COUNT, min(_WARM_UP_COUNT, count), **common)
        before = resident_bytes(broker.pid)
        seconds = send_due(broker.port, topic, PARTITION_COUNT, count, **common)
        run.say(f"written in {seconds:.0f} s, {count / seconds:,.0f} a second")
        time.sleep(_SETTLE_S if count > _WARM_UP_COUNT else 0)
        more_mb = (resident_bytes(broker.pid) - before) / 1e6
        note = f"{count:,} waiting, random delays up to 7 days, {PARTITION_COUNT} partitions"
        run.results.rows.append(Row.single("Memory more", "MB", more_mb, _MEMORY_GOAL, note))
        run.results.rows.append(
            Row.single("Writing what waits", "records/s", count / seconds, note="one connection")
        )
        run.results.rows.append(
            Row.single(
                "Restart to the first delivery", "s", _restart_s(broker, topic), _RESTART_GOAL, note
            )
        )


def _restart_s(broker: BrokerProcess, topic: str) -> float:
    with RawClient(broker.port) as client:
        end = client.record_count(topic, PARTITION_COUNT)
        for batch in due_batches([now_ms() + _STOP_MS]):
            produce(client, topic, 0, batch)
    overdue_ms = now_ms() + _STOP_MS
    broker.stop()
    while now_ms() < overdue_ms:
        time.sleep(0.05)
    start = time.perf_counter()
    broker.start()
    with RawClient(broker.port) as client:
        wait_until(lambda: client.record_count(topic, PARTITION_COUNT) > end, "nothing came")
    return time.perf_counter() - start
