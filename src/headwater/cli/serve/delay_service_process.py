"""The delay service beside a broker: a child process that lives as long as the broker serves.

It is started when the broker is ready and started again when it ends by itself, after a pause that
grows while it keeps failing. What it prints goes to the broker's log. It ends with the broker: on
SIGTERM, or when its standard input ends because the broker was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import Final

from headwater.base.settings import SettingError, SettingValues
from headwater.client.producer.delay_levels import parse_levels

_PAUSE_S: Final = 1.0
_PAUSE_S_MAX: Final = 30.0
#: Who lived for so long did not fail at the start.
_HEALTHY_S: Final = 60.0
_STOP_S_MAX: Final = 15.0
#: A longer line is cut into pieces.
_LINE_BYTES: Final = 64 << 10

_logger = logging.getLogger(__name__)


def wants_delay_service(settings: SettingValues) -> bool:
    """Whether one is to run beside the broker; `SettingError` if it could not."""
    if not settings.boolean("delay.service.enable"):
        return False
    try:
        parse_levels(_levels(settings))
    except ValueError as error:
        raise SettingError(f"The setting delay.service.levels is wrong: {error}") from None
    return True


def delay_service_command(settings: SettingValues, address: str, broker_id: int) -> list[str]:
    """How the service beside this broker is started."""
    return [
        *(sys.executable, "-m", "headwater", "delay-service"),
        *("--bootstrap-server", address),
        *("--instance", f"broker-{broker_id}"),
        *("--levels", _levels(settings)),
        "--stop-with-stdin",
    ]


def _levels(settings: SettingValues) -> str:
    return ",".join(settings.texts("delay.service.levels"))


class DelayServiceProcess:
    """Owns the child. `start` it when the broker serves, `stop` it before the broker stops."""

    def __init__(self, command: list[str], pause_s: float = _PAUSE_S) -> None:
        self._command = command
        self._pause_s = pause_s
        self._watching: asyncio.Task[None] | None = None
        self.start_count = 0

    def start(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """End it in order, or after a while in any way."""
        if self._watching is None:
            return
        self._watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watching
        self._watching = None

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self._pause_s
        while True:
            began_s = loop.time()
            try:
                code = await self._run()
                _logger.warning("The delay service has ended with exit code %d.", code)
            except OSError as error:
                _logger.error("The delay service cannot be started: %s.", error.strerror or error)
            if loop.time() - began_s >= _HEALTHY_S:
                pause_s = self._pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_S_MAX)

    async def _run(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=_LINE_BYTES,
            # Ctrl-C is for the broker, which ends its child itself.
            start_new_session=True,
        )
        self.start_count += 1
        try:
            await _pass_on(process)
            return await process.wait()
        finally:
            await _end(process)


async def _pass_on(process: asyncio.subprocess.Process) -> None:
    """Log what it prints, to its end."""
    lines = process.stdout
    while lines is not None and (line := await _line(lines)):
        if text := line.decode(errors="replace").rstrip():
            _logger.info("delay service: %s", text)


async def _line(lines: asyncio.StreamReader) -> bytes:
    try:
        return await lines.readuntil()
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        return await lines.read(_LINE_BYTES)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_S_MAX):
            # It may have much to say: a full pipe would keep it from ending.
            await _pass_on(process)
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
