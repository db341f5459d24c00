"""How far a topic of fixed delays was shown, kept on disk for the next start of its broker.

While `delay.ms` stays what it is, the clock says what was shown. When it has been raised, only this
file does: a table of one line, like a checkpoint (see `storage.checkpoints`), with an offset. It is
written now and then, when somebody asks for it, and when the broker stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from headwater.delay.partition_delays import DelayEnvironment
from headwater.replication.partition.partition import Partition
from headwater.storage.checkpoints import format_table, parse_integer, parse_table
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.errors import CorruptCheckpointError

NAME: Final = "shown.checkpoint"
_INTERVAL_S: Final = 10.0

_logger = logging.getLogger(__name__)


class ShownPlace:
    """Of one partition: `start`, then it works until `close`. Its owner is the `FixedDelay`."""

    def __init__(self, partition: Partition, environment: DelayEnvironment) -> None:
        self._partition = partition
        self._environment = environment
        #: What the file says; None if that is not known.
        self._kept: int | None = None
        self._wake = asyncio.Event()
        self._trouble = ""
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    def read(self) -> int | None:
        """The offset in the file; None if there is none that can be read."""
        log = self._partition.log
        path = f"{log.directory}/{NAME}"
        try:
            found = parse_table(read_bytes(log.files, path), path, lambda it: parse_integer(it, 64))
        except FileNotFoundError:
            return None
        except (OSError, CorruptCheckpointError) as error:
            _logger.error(
                "What %s has shown is not known: %s", self._partition.log.partition, error
            )
            return None
        self._kept = found[0] if found else None
        return self._kept

    def start(self) -> None:
        name = f"what is shown of {self._partition.topic_partition}"
        self._task = self._environment.tasks.start(name, self._run())

    def keep_now(self) -> None:
        """The clock will not tell what is shown now."""
        self._wake.set()

    def log_replaced(self) -> None:
        """The log lies in another directory now, and the file does not."""
        self._kept = None
        self._wake.set()

    async def close(self) -> None:
        """Keep what is shown in the end."""
        self._is_closing = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while not self._is_closing and not self._partition.is_removed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _INTERVAL_S)
            self._wake.clear()
            await self._keep()

    async def _keep(self) -> None:
        log, shown = self._partition.log, self._partition.log.shown_end
        if shown is None or shown == self._kept or self._partition.is_removed:
            return
        path, table = f"{log.directory}/{NAME}", format_table([str(shown)])
        try:
            await self._environment.run_in_thread(lambda: write_atomically(log.files, path, table))
        except OSError as error:
            if str(error) != self._trouble and not self._partition.is_removed:
                self._trouble = str(error)
                _logger.error("What %s has shown cannot be kept: %s", log.partition, error)
            return
        if log is self._partition.log:
            self._kept, self._trouble = shown, ""
