"""A program that has dead letters sent back, task after task, and gives orders meanwhile.

It begins tasks of all kinds, pauses, resumes and stops them. What it finds interrupted, because
another program was killed or stands still, it carries on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from headwater.base.errors import KafkaError
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.letters.letter_filter import LetterFilter
from headwater.delivery.redrive.runner import OnProgress
from headwater.delivery.redrive.tasks.plan import Edits, RedrivePlan, To
from headwater.delivery.redrive.tasks.task import RedriveTask, State, Wanted

#: Headers of what is sent back: where the letter lay, and the number of the task.
FROM_HEADER = "from"
TASK_HEADER = "task"

#: So few letters a second that a task would take very long: it is stopped before.
_SLOW = 0.3


@dataclass
class RedriveLedger:
    """What is known of the redrives of one dead-letter topic, beside what stands in the cluster."""

    source: str
    target: str
    task_count: int = 0
    #: How often a task was carried on.
    resumed_count: int = 0
    stopped_count: int = 0
    #: By task and partition, up to where its runners were told that it is committed.
    told: dict[str, dict[int, int]] = field(default_factory=dict)
    #: Who waits until the next transaction is over, and wants to know whose it was.
    waiting: list[asyncio.Future[str]] = field(default_factory=list)

    def tell(self, program: str, task: RedriveTask) -> None:
        """Runners may hear late of what they did, when another is further already."""
        for each in self.waiting:
            if not each.done():
                each.set_result(program)
        self.waiting.clear()
        told = self.told.setdefault(task.id, {})
        for partition, position in task.progress.positions.items():
            told[partition] = max(position, told.get(partition, 0))


class RedriveProgram:
    def __init__(
        self,
        name: str,
        ledger: RedriveLedger,
        random: Random,
        environment: ClientEnvironment,
        settings: Mapping[str, Any],
        *,
        note: Callable[[str], None],
    ) -> None:
        self.name = name
        self.ledger = ledger
        self.is_finishing = False
        self._random = random
        self._note = note
        self._clock = environment.clock
        self._redrives = in_environment(AsyncRedrives, environment)(**settings)

    async def run(self) -> None:
        """Until it is told to finish, whatever errors it meets."""
        while not self.is_finishing:
            await asyncio.sleep(self._random.random() * 2)
            with self._surviving():
                task = await self._unfinished()
                if task is None:
                    await self._begin(self._plan())
                elif task.wanted is not Wanted.STOPPED:
                    await self._carry_on(task)

    async def finish(self) -> None:
        """Send all that is there by now, each letter that nobody has sent."""
        while True:
            with self._surviving():
                task = await self._unfinished()
                if task is None:
                    plan = self._plan_of(LetterFilter(), None)
                    done = await self._redrives.run(plan, on_progress=self._tell)
                    if done.progress.state is State.DONE:
                        return
                elif task.wanted is not Wanted.STOPPED:
                    await self._redrives.resume(task.id, on_progress=self._tell)
            await asyncio.sleep(self._random.random())

    async def _unfinished(self) -> RedriveTask | None:
        now_ms = self._clock.wall_ms
        for task in await self._redrives.tasks():
            if task.plan.source == self.ledger.source and not task.state(now_ms()).is_final:
                return task
        return None

    async def _begin(self, plan: RedrivePlan) -> None:
        await self._steered(plan, lambda tell: self._redrives.run(plan, on_progress=tell))

    async def _carry_on(self, task: RedriveTask) -> None:
        self.ledger.resumed_count += 1
        await self._steered(
            task.plan, lambda tell: self._redrives.resume(task.id, on_progress=tell)
        )

    def _plan(self) -> RedrivePlan:
        random = self._random
        key = random.choice((b"a", b"b", b"c")) if random.random() < 0.3 else None
        is_first = not self.ledger.task_count
        rate = _SLOW if is_first else random.choice((None, None, _SLOW, 8.0))
        return self._plan_of(LetterFilter(key=None if is_first else key), rate)

    def _plan_of(self, letter_filter: LetterFilter, rate: float | None) -> RedrivePlan:
        ledger = self.ledger
        ledger.task_count += 1
        headers = ((FROM_HEADER, ledger.source.encode()), (TASK_HEADER, b"%d" % ledger.task_count))
        return RedrivePlan(
            source=ledger.source,
            to=To.TOPIC,
            topic=ledger.target,
            filter=letter_filter,
            edits=Edits(headers=headers),
            rate=rate,
        )

    def _tell(self, task: RedriveTask) -> None:
        self.ledger.tell(self.name, task)

    # -- orders ----------------------------------------------------------------------------------

    async def _steered(
        self, plan: RedrivePlan, work: Callable[[OnProgress], Awaitable[RedriveTask]]
    ) -> None:
        """Run a task, and give orders to it once it has begun."""
        begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def tell(task: RedriveTask) -> None:
            self._tell(task)
            if not begun.done():
                begun.set_result(task.id)

        steering = asyncio.ensure_future(self._steer(begun, is_slow=plan.rate == _SLOW))
        try:
            ended = await work(tell)
            self._note(f"{self.name}: task {ended.id} is {ended.progress.state}")
        finally:
            steering.cancel()
            await asyncio.wait([steering])

    async def _steer(self, begun: asyncio.Future[str], *, is_slow: bool) -> None:
        task_id, random = await begun, self._random
        await asyncio.sleep(random.random() * random.choice((0.3, 2.0)))
        chance = random.random()
        if is_slow or chance < 0.25:
            with self._surviving():
                await self._redrives.stop(task_id)
                self.ledger.stopped_count += 1
        elif chance < 0.5:
            with self._surviving():
                await self._redrives.pause(task_id)
            is_paused = True
            while is_paused:
                await asyncio.sleep(random.random() * 2)
                with self._surviving():
                    await self._redrives.resume(task_id, on_progress=self._tell)
                    is_paused = False

    @contextlib.contextmanager
    def _surviving(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            self._note(f"{self.name}: {type(error).__name__}: {error}")
