"""A retry service: a loop that counts what failed, and a delay service in which it waits."""

from __future__ import annotations

from headwater.base.clocks import Clock, SystemClock
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.delivery.delay_service.level_loop import LevelLoop, LevelReport
from headwater.delivery.delay_service.level_topics import have_topics
from headwater.delivery.delay_service.service import DelayService, run_together
from headwater.delivery.group_topics import service_topics
from headwater.delivery.retry_service.attempts import AttemptRouting
from headwater.delivery.retry_service.options import Intake, RetryServiceOptions


class RetryService:
    """Use: `start`, then `run` until somebody calls `stop`, then `close`."""

    def __init__(self, options: RetryServiceOptions, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._admin = AsyncAdmin(bootstrap_servers=options.waiting.bootstrap_servers)
        self._delays = DelayService(options.waiting, self._clock)
        self._intake: LevelLoop | None = None

    async def start(self) -> list[str]:
        """Connect, and create what topics are missing; returns their names."""
        options, waiting = self._options, self._options.waiting
        await self._admin.start()
        topics = service_topics(
            options.group, waiting.partition_count, waiting.replication_factor, options.dead_topic
        )
        created = await have_topics(self._admin, topics, may_create=waiting.creates_topics)
        created += await self._delays.start()
        routing = AttemptRouting(options, self._clock)
        self._intake = LevelLoop(options.intake, Intake(options.group), routing, self._clock)
        return created

    async def run(self) -> None:
        """Keep what fails. The first loop that cannot go on ends all of them."""
        if self._intake is None:
            raise RuntimeError("The retry service has not started.")
        await run_together([self._intake.run(), self._delays.run()])

    def stop(self) -> bool:
        """Let every loop end after its round; false if it has not started yet."""
        if self._intake is not None:
            self._intake.stop()
        return self._delays.stop() and self._intake is not None

    def reports(self) -> list[LevelReport]:
        """What was counted, and what each level did."""
        counted = [] if self._intake is None else [self._intake.report()]
        return [*counted, *self._delays.reports()]

    async def close(self) -> None:
        await self._delays.close()
        await self._admin.close()
