import asyncio
import threading
import time
from collections.abc import Iterator
from random import Random

import pytest

from headwater.sim.virtual_loop import (
    OutsideWorldError,
    SimulationDeadlock,
    SimulationLivelock,
    VirtualLoop,
)


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_hours_pass_in_no_time(loop: VirtualLoop) -> None:
    async def wait_long() -> float:
        for _ in range(100):
            await asyncio.sleep(3600)
        return loop.time()

    started = time.monotonic()
    assert loop.run_until_complete(wait_long()) == pytest.approx(360_000)
    assert time.monotonic() - started < 5


def test_timers_run_in_the_order_of_their_times(loop: VirtualLoop) -> None:
    ran: list[tuple[float, str]] = []
    for delay_s, name in ((3, "c"), (1, "a"), (100_000, "d"), (2, "b")):
        loop.call_later(delay_s, lambda name=name: ran.append((loop.time(), name)))  # type: ignore[misc]
    loop.run_until_complete(asyncio.sleep(200_000))
    assert ran == [(1, "a"), (2, "b"), (3, "c"), (100_000, "d")]


def test_timeouts_and_queues_work_as_on_any_loop(loop: VirtualLoop) -> None:
    async def run() -> list[object]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        seen: list[object] = []

        async def feed() -> None:
            await asyncio.sleep(2)
            queue.put_nowait(7)

        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            try:
                async with asyncio.timeout(1):
                    await queue.get()
            except TimeoutError:
                seen.append(("timeout", loop.time()))
            seen.append((await queue.get(), loop.time()))
        return seen

    assert loop.run_until_complete(run()) == [("timeout", 1.0), (7, 2.0)]


def test_waiting_for_what_never_comes_is_a_deadlock_that_names_who_waits(
    loop: VirtualLoop,
) -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationDeadlock, match="wait_for_ever"):
        loop.run_until_complete(wait_for_ever())


def test_a_busy_wait_is_found(loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.sim.virtual_loop.ROUNDS_AT_ONE_TIME_MAX", 1000)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(SimulationLivelock, match=r"At 0\.000 s"):
        loop.run_until_complete(spin())


def test_other_threads_are_refused(loop: VirtualLoop) -> None:
    refused: list[Exception] = []

    def intrude() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except Exception as error:
            refused.append(error)

    thread = threading.Thread(target=intrude)
    thread.start()
    thread.join()
    assert [type(error) for error in refused] == [OutsideWorldError]
    ran: list[int] = []
    loop.call_soon_threadsafe(ran.append, 1)
    loop.run_until_complete(asyncio.sleep(0))
    assert ran == [1]


def test_work_for_an_executor_runs_in_place(loop: VirtualLoop) -> None:
    async def run() -> tuple[int, float]:
        ident = await loop.run_in_executor(None, threading.get_ident)
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, divmod, 1, 0)
        return ident, loop.time()

    assert loop.run_until_complete(run()) == (threading.get_ident(), 0.0)


def test_sockets_and_names_are_refused(loop: VirtualLoop) -> None:
    async def run() -> None:
        with pytest.raises(OutsideWorldError):
            await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        with pytest.raises(OutsideWorldError):
            await loop.create_connection(asyncio.Protocol, "127.0.0.1", 1)
        with pytest.raises(OutsideWorldError):
            await loop.getaddrinfo("localhost", 80)

    loop.run_until_complete(run())


def _order_of_equal_timers(seed: int) -> list[int]:
    loop = VirtualLoop(Random(seed), timer_lateness_ms=5)
    order: list[int] = []
    for number in range(20):
        loop.call_later(1, order.append, number)
    loop.run_until_complete(asyncio.sleep(2))
    assert loop.time() >= 2
    loop.close()
    return order


def test_the_seed_decides_how_late_timers_are() -> None:
    orders = [_order_of_equal_timers(seed) for seed in (1, 2, 1, 2)]
    assert orders[:2] == orders[2:]
    assert orders[0] != orders[1]
    assert all(sorted(order) == list(range(20)) for order in orders)


def test_failures_that_nobody_hears_of_are_kept(loop: VirtualLoop) -> None:
    loop.call_soon(divmod, 1, 0)
    loop.run_until_complete(asyncio.sleep(1))
    assert [type(each["exception"]) for each in loop.unhandled] == [ZeroDivisionError]
