"""A broker, or a few of them, as a process: started, announced, and stopped by a signal.

The first SIGTERM or SIGINT stops it in order: leaderships are handed over, what is under way is
answered, logs are flushed, the clean-shutdown marker is written. A second one ends it at once,
which costs the next start a recovery but no acknowledged record.

Several brokers in one process share an embedded metadata store, which is opened before the first
of them and closed after the last; see `development_cluster`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

import uvloop

from headwater import __version__
from headwater.base.printable import printable
from headwater.base.settings import SettingValues
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.server import BrokerServer
from headwater.broker.start.faults import StartError
from headwater.cli.serve.broker_introduction import announcement, introduction, store_text
from headwater.cli.serve.broker_log import DEFAULT_LOG, LogOptions, broker_log
from headwater.cli.serve.delay_service_process import (
    DelayServiceProcess,
    delay_service_command,
    wants_delay_service,
)
from headwater.cli.serve.development_cluster import broker_settings, store_directory
from headwater.cli.serve.open_files import raise_open_files_limit
from headwater.cli.serve.shared_store import SharedStore
from headwater.delivery.dead_letter_moves import open_session
from headwater.storage.directories.log_directory import LoadProgress
from headwater.storage.disk.disk_files import DiskFiles
from headwater.storage.disk.spare_descriptors import SpareDescriptors

EXIT_FAILED: Final = 1
#: Threads that sync, roll and write checkpoints at once have a file more each for a moment.
_SPARE_DESCRIPTORS: Final = 24
_PROGRESS_INTERVAL_S: Final = 2.0

_logger = logging.getLogger(__name__)


def run_broker(
    settings: SettingValues, log: LogOptions = DEFAULT_LOG, *, broker_count: int = 0
) -> int:
    """Serve until a signal comes; returns the exit code. A count of 0 is a broker by itself."""
    brokers = broker_settings(settings, broker_count) if broker_count else [settings]
    wants_delay_service(settings)
    shared = None
    if broker_count and not settings.optional_text("zookeeper.connect"):
        shared = SharedStore(store_directory(settings))
    try:
        with broker_log(log), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_BrokerProcess(brokers, shared, log).run())
    except StartError as error:
        # When the log is written: the reason comes last.
        if log.is_for_people:
            _complain(str(error))
        return EXIT_FAILED


class _BrokerProcess:
    def __init__(
        self,
        brokers: Sequence[SettingValues],
        shared: SharedStore | None = None,
        log: LogOptions = DEFAULT_LOG,
    ) -> None:
        self._brokers = brokers
        self._log = log
        self._shared = shared
        self._descriptors_max = raise_open_files_limit() // len(brokers)
        self._shown_s = time.monotonic()
        self._is_stopping = False
        self._stop = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        store = store_text(self._brokers[0], None if self._shared is None else self._shared.path)
        for line in introduction(__version__, self._brokers, store, self._descriptors_max):
            _say(line)
        try:
            return await self._serve(loop)
        except StartError as error:
            self._log_reason(str(error))
            raise
        finally:
            if self._shared is not None:
                await self._shared.close()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> int:
        servers = [BrokerServer(settings, self._environment()) for settings in self._brokers]
        stop_wanted = loop.create_task(self._stop.wait())
        if not await self._start(servers, stop_wanted):
            _say("Headwater was stopped before it was ready.")
            return 0
        for line in announcement(servers, _process_age_s()):
            _say(line)
        delay_services = self._start_delay_services(servers)
        failed = [loop.create_task(server.wait_failed()) for server in servers]
        await asyncio.wait((stop_wanted, *failed), return_when=asyncio.FIRST_COMPLETED)
        exit_code = 0
        for failure in failed:
            if failure.done():
                reason = f"{failure.result()} The broker stops."
                self._log_reason(reason)
                if self._log.is_for_people:
                    _complain(reason)
                exit_code = EXIT_FAILED
        _say("Headwater is stopping.")
        for waiting in (*failed, stop_wanted):
            waiting.cancel()
        # While there are brokers to commit to.
        await asyncio.gather(*(service.stop() for service in delay_services))
        # One after the other, so that each can hand over to those that are left.
        for server in servers:
            await server.stop()
        _say("Headwater has stopped.")
        return exit_code

    async def _start(
        self, servers: Sequence[BrokerServer], stop_wanted: asyncio.Task[bool]
    ) -> bool:
        """Start all at once; False if a signal came first. Whoever fails takes all along."""
        loop = asyncio.get_running_loop()
        starting = [loop.create_task(server.start(self._show_progress)) for server in servers]
        waiting: set[asyncio.Task[None] | asyncio.Task[bool]] = {*starting, stop_wanted}
        while not (stop_wanted.done() or all(each.done() for each in starting)):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(each.exception() is not None for each in done):
                break
        for each in starting:
            each.cancel()
        await asyncio.wait(starting)
        ready = [not each.cancelled() and each.exception() is None for each in starting]
        if all(ready):
            return True
        for server, is_ready in zip(servers, ready, strict=True):
            if is_ready:
                await server.stop()
        for each in starting:
            if not each.cancelled():
                each.result()
        return False

    def _start_delay_services(self, servers: Sequence[BrokerServer]) -> list[DelayServiceProcess]:
        """One beside each broker, where that is switched on."""
        services = []
        for settings, server in zip(self._brokers, servers, strict=True):
            if wants_delay_service(settings):
                command = delay_service_command(
                    settings, server.addresses[0], server.context.node_id
                )
                services.append(DelayServiceProcess(command))
                services[-1].start()
        return services

    def _environment(self) -> BrokerEnvironment:
        files = DiskFiles(SpareDescriptors(_SPARE_DESCRIPTORS))
        environment = BrokerEnvironment(
            files=files,
            descriptors_max=self._descriptors_max,
            open_move_session=open_session,
        )
        if self._shared is not None:
            environment.open_store = self._shared.open
        return environment

    def _on_signal(self, number: signal.Signals) -> None:
        if self._is_stopping:
            print("headwater: stopped at once.", file=sys.stderr, flush=True)
            os._exit(EXIT_FAILED)
        _logger.info("%s came: Headwater stops.", number.name)
        self._is_stopping = True
        self._stop.set()

    def _log_reason(self, sentence: str) -> None:
        """Why it ends, for who reads the log; on standard error it stands plainly, if it may."""
        if self._log.path is not None or not self._log.is_for_people:
            _logger.error("%s", sentence)

    def _show_progress(self, progress: LoadProgress) -> None:
        """A line now and then; starting takes long only if there is much to load or recover."""
        now_s = time.monotonic()
        if now_s - self._shown_s >= _PROGRESS_INTERVAL_S:
            self._shown_s = now_s
            verb = "recovering" if progress.is_recovering else "loading"
            _say(
                f"  loading     {progress.done:,} of {progress.total:,} logs, "
                f"{verb} {progress.partition}"
            )


def _complain(sentence: str) -> None:
    print(f"headwater: {printable(sentence)}", file=sys.stderr)


def _process_age_s() -> float:
    """Since the process began, its imports included, where the operating system tells."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            # Behind the name, which may hold spaces and ends with a bracket.
            fields = file.read().rpartition(")")[2].split()
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began_s
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time()


def _say(line: str) -> None:
    print(line, flush=True)
