"""A delay service: a loop for each level, until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence

from headwater.base.clocks import Clock, SystemClock
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.delivery.delay_service.known_topics import KnownTopics
from headwater.delivery.delay_service.level_loop import LevelLoop, LevelReport
from headwater.delivery.delay_service.level_topics import prepare_topics
from headwater.delivery.delay_service.options import ServiceOptions
from headwater.delivery.delay_service.routing import HeaderRouting


class DelayService:
    """Use: `start`, then `run` until somebody calls `stop`, then `close`."""

    def __init__(self, options: ServiceOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._admin = AsyncAdmin(bootstrap_servers=options.bootstrap_servers)
        self._loops: Sequence[LevelLoop] = ()

    async def start(self) -> list[str]:
        """Connect, and create what topics are missing; returns their names."""
        await self._admin.start()
        created = await prepare_topics(self._admin, self._options)
        routing = HeaderRouting(KnownTopics(self._admin, self._clock.monotonic_ms))
        self._loops = [
            LevelLoop(self._options, level, routing, self._clock) for level in self._options.levels
        ]
        return created

    async def run(self) -> None:
        """Forward what becomes due. The first level that cannot go on ends all of them."""
        await run_together(loop.run() for loop in self._loops)

    def stop(self) -> bool:
        """Let every level end after its round; false if it has not started yet."""
        for loop in self._loops:
            loop.stop()
        return bool(self._loops)

    def reports(self) -> list[LevelReport]:
        """What each level did."""
        return [loop.report() for loop in self._loops]

    async def close(self) -> None:
        await self._admin.close()


async def run_together(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all until each has ended; the first that fails ends the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


def _first(failure: BaseException) -> BaseException:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
