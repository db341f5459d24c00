"""The tasks of a worker, on virtual time."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import RetryPolicy
from headwater.delivery.worker.crews.direct import AsyncDirectCrew
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


def make_work() -> Work:
    return Work(read_options("billing", handlers_of("orders", print), None, {"concurrency": 2}))


async def waits_for_what_is_cancelled(_: ConsumerRecord) -> None:
    waited_for = asyncio.ensure_future(asyncio.sleep(30.0))
    waited_for.cancel()
    await waited_for


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_handler_that_waits_for_what_is_cancelled_has_failed(attempts: int) -> None:
    async def run() -> None:
        options = read_options(
            "billing",
            handlers_of("orders", print),
            None,
            {"in_process_attempts": attempts, "in_process_backoff": 0},
        )
        direct = Work(options)
        await AsyncDirectCrew(direct, waits_for_what_is_cancelled).handle([make_record(0, b"a")])
        assert (direct.metrics().failed_count, direct.unsettled_count) == (attempts, 1)

        work = make_work()
        crew = TaskCrew(work, waits_for_what_is_cancelled, 2, lambda: None)
        await crew.handle([make_record(0, b"a")])
        assert await crew.quiet(5.0)
        assert crew.failure is None
        assert (work.metrics().failed_count, work.unsettled_count) == (1, 1)

    asyncio.run(run())


def test_who_cancels_a_worker_fails_no_record() -> None:
    async def handle(_: ConsumerRecord) -> None:
        await asyncio.sleep(30.0)

    async def run() -> None:
        work = make_work()
        crew = AsyncDirectCrew(work, handle)
        record = make_record(0, b"a")
        handling = asyncio.ensure_future(crew.handle([record]))
        await asyncio.sleep(0)
        handling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handling
        assert crew.left == [record]
        assert work.metrics().failed_count == 0

        tasks = TaskCrew(work, handle, 2, lambda: None)
        await tasks.handle([record])
        await asyncio.sleep(0)
        await tasks.end()
        assert tasks.failure is None
        assert work.metrics().failed_count == 0

    asyncio.run(run())
