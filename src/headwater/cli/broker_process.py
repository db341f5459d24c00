"""A broker as a process: started, announced, and stopped by a signal.

The first SIGTERM or SIGINT stops it in order: what is under way is answered, logs are flushed, the
clean-shutdown marker is written. A second one ends it at once, which costs the next start a
recovery but no acknowledged record.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from typing import Final

import uvloop

from headwater import __version__
from headwater.base.settings import SettingValues
from headwater.broker.server import BrokerServer, StartError
from headwater.cli.durability_promise import durability_promise
from headwater.storage.directories.log_directory import LoadProgress
from headwater.storage.log_settings import log_directory_paths

EXIT_FAILED: Final = 1
_PROGRESS_INTERVAL_S: Final = 2.0
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run_broker(settings: SettingValues, *, log_level: str) -> int:
    """Serve until a signal comes; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=log_level, format=_LOG_FORMAT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_BrokerProcess(settings).run())


class _BrokerProcess:
    def __init__(self, settings: SettingValues) -> None:
        self._settings = settings
        self._shown_s = time.monotonic()
        self._is_stopping = False
        self._stop = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        self._introduce()
        server = BrokerServer(self._settings)
        starting = loop.create_task(server.start(self._show_progress))
        stop_wanted = loop.create_task(self._stop.wait())
        try:
            await asyncio.wait((starting, stop_wanted), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.wait((starting,))
            if starting.cancelled():
                _say("Headwater was stopped before it was ready.")
                return 0
            starting.result()
        except StartError as error:
            print(f"headwater: {error}", file=sys.stderr)
            return EXIT_FAILED
        self._announce(server)
        failed = loop.create_task(server.wait_failed())
        await asyncio.wait((stop_wanted, failed), return_when=asyncio.FIRST_COMPLETED)
        exit_code = 0
        if failed.done():
            print(f"headwater: {failed.result()} The broker stops.", file=sys.stderr)
            exit_code = EXIT_FAILED
        _say("Headwater is stopping.")
        for waiting in (failed, stop_wanted):
            waiting.cancel()
        await server.stop()
        _say("Headwater has stopped.")
        return exit_code

    def _on_signal(self) -> None:
        if self._is_stopping:
            print("headwater: stopped at once.", file=sys.stderr, flush=True)
            os._exit(EXIT_FAILED)
        self._is_stopping = True
        self._stop.set()

    # -- what people see -------------------------------------------------------------------------

    def _introduce(self) -> None:
        settings = self._settings
        promise = durability_promise(
            settings.text("acks.all.flush"), settings.integer("log.flush.interval.messages")
        )
        _say(f"Headwater {__version__}")
        _say(f"  data        {', '.join(log_directory_paths(settings))}")
        _say(f"  durability  {promise.sentence}")

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

    def _announce(self, server: BrokerServer) -> None:
        addresses = ", ".join(str(address) for address in server.addresses)
        for name, address in server.addresses_by_name():
            _say(f"  listening   {address} ({name})")
        if server.metrics_address is not None:
            _say(f"  metrics     http://{server.metrics_address}/metrics")
        context = server.context
        _say(
            f"Headwater is ready: {addresses} (broker {context.node_id}, cluster "
            f"{context.cluster_id}, {len(context.partitions):,} partitions, started in "
            f"{_process_age_s():.2f} s)"
        )


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
