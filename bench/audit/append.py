"""CPU time of an append with the audit off and on, in one process.

Appends of one ordinary batch, without a network. With the audit on, the time counts in which the
new headers are counted and published. Rounds take turns, and the smallest of each counts: what else
the machine does only adds.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from time import process_time
from typing import Final

from bench.audit.run import Run
from bench.table import Goal, Row
from headwater.broker.context import BrokerContext
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.topics.new_topic import NewTopic
from headwater.replication.partition.partition import Partition
from headwater.wire.records import Record, encode_batch

_GOAL: Final = Goal(2.0, is_upper=True)


def measure(run: Run) -> None:
    run.attempt("CPU of an append", lambda: _add_rows(run))


def _add_rows(run: Run) -> None:
    with tempfile.TemporaryDirectory(dir=run.scratch) as directory:
        off_us, on_us = asyncio.run(
            _measure(directory, run.sizes.append_count, run.sizes.append_rounds)
        )
    note = "smallest of all rounds"
    run.results.rows += [
        Row.single("CPU of an append, audit off", "us a batch", off_us, note=note),
        Row.single("CPU of an append, audit on", "us a batch", on_us, note=note),
        Row.single("Difference", "us a batch", on_us - off_us, _GOAL),
    ]


async def _measure(directory: str, count: int, rounds: int) -> tuple[float, float]:
    """The smallest CPU times of an append with the audit off and on, in microseconds."""
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": directory,
        "broker.id": "0",
        "acks.all.flush": "off",
        # It is published when this program says so.
        "audit.bucket.ms": "86400000",
    }
    server = BrokerServer(static_of(texts))
    await server.start()
    try:
        context = server.context
        await context.controller.create_topics([NewTopic("off", 1, 1), NewTopic("on", 1, 1)])
        best = {"off": float("inf"), "on": float("inf")}
        for number in range(rounds + 1):
            for name in ("off", "on") if number % 2 else ("on", "off"):
                took_us = await _round(context, name, count)
                if number > 0:  # The first is for the caches.
                    best[name] = min(best[name], took_us)
        return best["off"], best["on"]
    finally:
        await server.stop()


async def _round(context: BrokerContext, name: str, count: int) -> float:
    partition = context.partitions.get(name, 0)
    publisher = context.audit_publisher
    now_ms = context.clock.wall_ms()
    batch = encode_batch([Record(number, now_ms, None, b"x" * 100) for number in range(10)])
    copies = [memoryview(bytearray(batch)) for _ in range(count)]
    publisher.look()
    await publisher.publish_all()  # What other rounds left behind is not this round's.
    begun = process_time()
    _append(partition, copies, now_ms)
    if name == "on":
        await publisher.publish_all()
    return (process_time() - begun) / count * 1e6


def _append(partition: Partition, copies: Sequence[memoryview], now_ms: int) -> None:
    for copy in copies:
        if partition.append_plain(copy, acks=1, now_ms=now_ms) is None:
            partition.append(copy, acks=1, now_ms=now_ms)
