import asyncio
from collections.abc import Iterator

import pytest

from headwater.base.checks import InvariantError
from headwater.sim.process import SimulatedProcess, current_process
from headwater.sim.virtual_loop import VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()
    assert not made.unhandled


class Worker:
    """Ticks every second in a task and, by a timer, in a callback."""

    def __init__(self, loop: VirtualLoop, process: SimulatedProcess) -> None:
        self.loop = loop
        self.ticks: list[float] = []
        self.cleaned_up_at: list[float] = []
        process.run(self.start)

    def start(self) -> None:
        assert current_process() is not None
        self.loop.create_task(self.tick())
        self.loop.call_later(0.5, self.call)

    async def tick(self) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                self.ticks.append(self.loop.time())
        finally:
            self.cleaned_up_at.append(self.loop.time())
            self.loop.call_soon(self.ticks.append, -1.0)

    def call(self) -> None:
        assert current_process() is not None
        self.ticks.append(self.loop.time())
        self.loop.call_later(1, self.call)


def test_nothing_of_a_process_runs_after_its_end(loop: VirtualLoop) -> None:
    process = loop.start_process("broker", "10.0.0.1")
    other = loop.start_process("client", "10.0.0.2")
    worker, survivor = Worker(loop, process), Worker(loop, other)
    loop.call_later(2.2, process.kill)
    loop.run_until_complete(asyncio.sleep(4.2))
    assert worker.ticks == [0.5, 1.0, 1.5, 2.0]
    assert worker.cleaned_up_at == []
    assert survivor.ticks == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
    assert current_process() is None


def test_the_clean_up_of_the_dead_is_not_seen(loop: VirtualLoop) -> None:
    process = loop.start_process("broker", "10.0.0.1")
    worker = Worker(loop, process)
    loop.run_until_complete(asyncio.sleep(1.2))
    process.kill()
    process.bury()
    loop.run_until_complete(asyncio.sleep(5))
    assert worker.ticks == [0.5, 1.0]
    assert worker.cleaned_up_at == [1.2]


def test_a_future_set_by_others_does_not_wake_the_dead(loop: VirtualLoop) -> None:
    process = loop.start_process("broker", "10.0.0.1")
    future: asyncio.Future[int] = loop.create_future()
    woken: list[int] = []

    async def wait() -> None:
        woken.append(await future)

    process.run(lambda: loop.create_task(wait()))
    loop.run_until_complete(asyncio.sleep(1))
    process.kill()
    future.set_result(1)
    loop.run_until_complete(asyncio.sleep(1))
    assert woken == []


def test_killing_while_it_runs_ends_it_at_its_next_await(loop: VirtualLoop) -> None:
    process = loop.start_process("broker", "10.0.0.1")
    steps: list[str] = []

    async def run() -> None:
        steps.append("before")
        process.kill()
        steps.append("on the stack")
        await asyncio.sleep(0)
        steps.append("after")

    process.run(lambda: loop.create_task(run()))
    loop.run_until_complete(asyncio.sleep(1))
    assert steps == ["before", "on the stack"]
    with pytest.raises(InvariantError, match="broker is dead"):
        process.run(print)


def test_whoever_wants_to_know_hears_of_the_end_once(loop: VirtualLoop) -> None:
    process = loop.start_process("broker", "10.0.0.1")
    heard: list[int] = []
    process.add_kill_callback(lambda: heard.append(1))
    process.kill()
    process.kill()
    assert heard == [1]


def test_a_paused_process_does_nothing_until_it_is_resumed() -> None:
    loop = VirtualLoop()
    seen: list[tuple[str, float]] = []

    async def tick(name: str) -> None:
        for _ in range(4):
            await asyncio.sleep(1.0)
            seen.append((name, loop.time()))

    async def drive() -> None:
        paused, other = loop.start_process("paused", "a"), loop.start_process("other", "b")
        tasks = [process.run(loop.create_task, tick(process.name)) for process in (paused, other)]
        await asyncio.sleep(1.5)
        loop.pause_process(paused)
        paused.deliver(lambda: seen.append(("delivery", loop.time())))
        await asyncio.sleep(10.0)
        assert [name for name, _ in seen].count("paused") == 1
        assert [name for name, _ in seen].count("other") == 4
        loop.resume_process(paused)
        await asyncio.gather(*tasks)

    loop.run_until_complete(drive())
    # What was due happens at once, and the rest in its time.
    assert [when for name, when in seen if name == "paused"] == [1.0, 11.5, 12.5, 13.5]
    assert [when for name, when in seen if name == "delivery"] == [11.5]
    loop.close()


def test_a_paused_process_can_be_killed() -> None:
    loop = VirtualLoop()
    seen: list[int] = []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1.0)
            seen.append(1)

    async def drive() -> None:
        process = loop.start_process("paused", "a")
        process.run(loop.create_task, tick())
        await asyncio.sleep(1.5)
        loop.pause_process(process)
        await asyncio.sleep(5.0)
        process.kill()
        loop.resume_process(process)
        await asyncio.sleep(5.0)
        assert seen == [1] and not process.is_alive

    loop.run_until_complete(drive())
    loop.close()
