"""The tasks of a worker, on virtual time."""

from __future__ import annotations

import asyncio
from random import Random

from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import RetryPolicy
from headwater.delivery.worker.crews.tasks import TaskCrew
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.options import handlers_of, read_options
from headwater.sim.virtual_loop import VirtualLoop
from headwater.wire.records import TimestampType


def make_record(offset: int, key: bytes) -> ConsumerRecord:
    return ConsumerRecord("orders", 0, offset, 0, TimestampType.CREATE_TIME, key, b"", (), 0)


def test_who_is_due_while_everybody_is_busy_waits_in_peace() -> None:
    """A loop that goes round without time passing is an error on virtual time."""
    loop = VirtualLoop(Random(0), timer_lateness_ms=0.0)
    began: list[tuple[bytes | None, float]] = []

    async def handle(record: ConsumerRecord) -> None:
        began.append((record.key, loop.time()))
        if record.key == b"slow":
            await asyncio.sleep(30.0)
        elif len(began) == 1:
            raise OSError("away")

    async def run() -> None:
        policy = RetryPolicy(delays=["1s"])
        options = read_options(
            "billing", handlers_of("orders", handle), None, {"keep_order": True, "retry": policy}
        )
        crew = TaskCrew(Work(options), handle, 1, lambda: None)
        await crew.handle([make_record(0, b"failing"), make_record(1, b"slow")])
        await asyncio.sleep(60.0)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    assert began == [(b"failing", 0.0), (b"slow", 0.0), (b"failing", 30.0)]
