"""A delay or retry service as a process: started, reported on, and stopped by a signal.

Standard output has a line for each level now and then, and at the end; standard error has the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from headwater.base.printable import PrintableFormatter

if TYPE_CHECKING:
    from headwater.delivery.delay_service.level_loop import LevelReport

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Service(Protocol):
    """A `DelayService` or a `RetryService`."""

    async def start(self) -> list[str]: ...
    async def run(self) -> None: ...
    def stop(self) -> bool: ...
    def reports(self) -> list[LevelReport]: ...
    async def close(self) -> None: ...


class ServiceProcess:
    def __init__(
        self,
        service: Service,
        greeting: str,
        interval_s: float,
        *,
        as_json: bool = False,
        until_end_of: int | None = None,
    ) -> None:
        self._service = service
        self._greeting = greeting
        self._interval_s = interval_s
        self._as_json = as_json
        self._until_end_of = until_end_of
        self._shown: dict[str, int] = {}

    async def run(self) -> None:
        """Serve until a signal comes, or whoever started this is gone."""
        with self._stopped_from_outside():
            try:
                created = await self._service.start()
                self._say_started(created)
                reporting = asyncio.get_running_loop().create_task(self._report())
                try:
                    await self._service.run()
                finally:
                    reporting.cancel()
                    self._show(self._service.reports(), is_last=True)
            finally:
                await self._service.close()

    @contextlib.contextmanager
    def _stopped_from_outside(self) -> Iterator[None]:
        """A first signal ends it in order, a second one as usual."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def stop() -> None:
            self._forget(loop)
            if not self._service.stop() and task is not None:
                task.cancel()

        for number in _SIGNALS:
            loop.add_signal_handler(number, stop)
        if self._until_end_of is not None:
            descriptor = self._until_end_of

            def read() -> None:
                if not os.read(descriptor, 4096):
                    stop()

            loop.add_reader(descriptor, read)
        try:
            yield
        except asyncio.CancelledError:
            # It had not started yet.
            pass
        finally:
            self._forget(loop)

    def _forget(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if self._until_end_of is not None:
            loop.remove_reader(self._until_end_of)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            self._show(self._service.reports())

    # -- what it says ----------------------------------------------------------------------------

    def _say_started(self, created: Sequence[str]) -> None:
        if self._as_json:
            return
        if created:
            print(f"Created {', '.join(created)}.")
        print(self._greeting, flush=True)

    def _show(self, reports: Sequence[LevelReport], *, is_last: bool = False) -> None:
        """A line for each level that anything happened to, or that has something waiting."""
        for report in reports:
            if self._as_json:
                print(_as_json(report), flush=True)
                continue
            done = report.forwarded_count + report.dead_count
            if report.waiting_count or done != self._shown.get(report.level, 0) or is_last:
                print(_as_text(report), flush=True)
            self._shown[report.level] = done


def _as_text(report: LevelReport) -> str:
    lateness = report.lateness
    late = (
        "nothing forwarded"
        if lateness.p50_ms is None
        else f"late p50 {lateness.p50_ms} ms, p99 {lateness.p99_ms} ms"
    )
    return (
        f"level {report.level:<4} waiting {report.waiting_count:,}, forwarded "
        f"{report.forwarded_count:,}, dead {report.dead_count:,}, {late}"
    )


def _as_json(report: LevelReport) -> str:
    return json.dumps(
        {
            "level": report.level,
            "partitions": report.partition_count,
            "waiting": report.waiting_count,
            "forwarded": report.forwarded_count,
            "dead": report.dead_count,
            "lateness_p50_ms": report.lateness.p50_ms,
            "lateness_p99_ms": report.lateness.p99_ms,
            "lateness_max_ms": report.lateness.max_ms,
        }
    )


def serve(process: ServiceProcess) -> None:
    """Run it on an event loop of its own."""
    import uvloop

    log_to_stderr()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(process.run())


def log_to_stderr() -> None:
    """What the service logs, and of all others what is worth a warning."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("headwater.delivery").setLevel(logging.INFO)
