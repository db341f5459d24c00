"""`python -m bench.audit`: CPU time of an append with the audit off and on, in one process.

Appends of one ordinary batch, without a network. With the audit on, the time counts in which the
new headers are counted and published. Rounds take turns, and the smallest of each counts: what else
the machine does only adds. The goal is at most 2 us a batch.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from time import process_time
from typing import Final

from bench.bench_command import BenchParser
from headwater.broker.context import BrokerContext
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.topics.new_topic import NewTopic
from headwater.replication.partition.partition import Partition
from headwater.wire.records import Record, encode_batch

GOAL_US: Final = 2.0
_FULL, _QUICK, _TINY = (20_000, 15), (10_000, 7), (50, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    count, rounds = options.sizes
    with tempfile.TemporaryDirectory() as directory:
        off_us, on_us = asyncio.run(_measure(directory, count, rounds))
    print(f"append, audit off   {off_us:7.2f} us a batch")
    print(f"append, audit on    {on_us:7.2f} us a batch")
    print(f"difference          {on_us - off_us:7.2f} us a batch, goal: at most {GOAL_US:g}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = BenchParser(prog="bench-audit", description=__doc__)
    parser.add_sizes(_FULL, _QUICK, _TINY, times=("a few seconds", "no time"))
    return parser.parse_args(arguments)


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


if __name__ == "__main__":
    sys.exit(main())
