"""The wheel turns with the event loop."""

import asyncio
import logging
from functools import partial

import pytest

from headwater.base.loop_timer import LoopTimer


def test_tasks_run_in_order_and_never_early() -> None:
    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        timer = LoopTimer(loop)
        started_s = loop.time()
        ran: list[tuple[int, float]] = []
        done = asyncio.Event()

        def note(delay_ms: int) -> None:
            ran.append((delay_ms, loop.time() - started_s))

        for delay_ms in (30, 5, 45, 15):
            timer.call_later(delay_ms, partial(note, delay_ms))
        timer.call_later(50, done.set)
        await done.wait()
        timer.close()
        return ran

    ran = asyncio.run(main())
    assert [delay_ms for delay_ms, _ in ran] == [5, 15, 30, 45]
    assert all(elapsed_s * 1000 >= delay_ms for delay_ms, elapsed_s in ran)


def test_a_cancelled_task_does_not_run() -> None:
    async def main() -> list[str]:
        timer = LoopTimer(asyncio.get_running_loop())
        ran: list[str] = []
        done = asyncio.Event()
        entry = timer.call_later(5, lambda: ran.append("cancelled"))
        timer.call_later(10, done.set)
        assert timer.cancel(entry)
        assert not timer.cancel(entry)
        await done.wait()
        timer.close()
        return ran

    assert asyncio.run(main()) == []


def test_a_task_that_fails_is_logged_and_the_others_run(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        timer = LoopTimer(asyncio.get_running_loop())
        done = asyncio.Event()

        def fail() -> None:
            raise ValueError("a broken task")

        timer.call_later(1, fail)
        timer.call_later(2, done.set)
        await done.wait()
        timer.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert "timer tasks failed" in caplog.text
