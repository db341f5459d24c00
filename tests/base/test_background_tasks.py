"""Tasks of the background: whose end is a failure, and how it is told."""

from __future__ import annotations

import asyncio
import gc

import pytest

from headwater.base.background_tasks import BackgroundTaskError, BackgroundTasks
from tests.support.async_tests import run_async


async def fail(error: Exception) -> None:
    raise error


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@run_async
async def test_an_error_that_nobody_expected_is_logged_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = BackgroundTasks()
    tasks.start("image feed", fail(ValueError("planted")))
    failure = await tasks.wait_failed()
    assert isinstance(failure, BackgroundTaskError)
    assert str(failure) == "The task 'image feed' of the broker failed: ValueError('planted')."
    [record] = caplog.records
    assert record.levelname == "ERROR" and "image feed" in record.getMessage()
    assert record.exc_info is not None and record.exc_info[0] is ValueError


@run_async
async def test_an_expected_reason_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    tasks = BackgroundTasks()
    reason = OSError("No disk is left.")
    tasks.start("maintenance", fail(reason), expected=(OSError,))
    assert await tasks.wait_failed() is reason
    [record] = caplog.records
    assert record.exc_info is None


@run_async
async def test_the_first_failure_is_the_reason() -> None:
    tasks = BackgroundTasks()
    tasks.start("first", fail(ValueError("one")))
    tasks.start("second", fail(ValueError("two")))
    await asyncio.sleep(0.01)
    assert "one" in str(await tasks.wait_failed())


@run_async
async def test_being_cancelled_and_coming_to_an_end_are_no_failures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = BackgroundTasks()
    cancelled = tasks.start("cancelled", wait_for_ever())
    ended = tasks.start("ended", asyncio.sleep(0, "result"))
    watched = asyncio.create_task(asyncio.sleep(0))
    tasks.watch(watched)
    cancelled.cancel()
    await asyncio.wait({cancelled, ended, watched})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await tasks.wait_failed()
    assert await ended == "result"
    assert not caplog.records


@run_async
async def test_a_task_that_nobody_holds_goes_on() -> None:
    tasks = BackgroundTasks()
    is_done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        is_done.set()

    tasks.start("unheld", work())
    gc.collect()
    async with asyncio.timeout(5):
        await is_done.wait()


@run_async
async def test_who_waits_for_a_task_hears_that_one_has_failed() -> None:
    tasks = BackgroundTasks()
    assert await tasks.unless_failed(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(OSError, match="of its own"):
        await tasks.unless_failed(fail(OSError("of its own")))
    was_cancelled = False

    async def wait() -> None:
        nonlocal was_cancelled
        try:
            await wait_for_ever()
        finally:
            was_cancelled = True

    waiting = asyncio.create_task(tasks.unless_failed(wait()))
    await asyncio.sleep(0)
    tasks.start("feed", fail(ValueError("planted")))
    with pytest.raises(BackgroundTaskError, match="planted"):
        await waiting
    assert was_cancelled
