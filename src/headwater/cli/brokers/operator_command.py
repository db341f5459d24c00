"""The operator's own command that restarts a broker: filled in, run by the shell, waited for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Callable
from typing import Final

from headwater.cli.brokers.rolling_restart import RestartStoppedError
from headwater.client.connection.cluster_metadata import BrokerNode

#: How long a command that is given up has to end by itself.
_END_S: Final = 5.0


def filled_in(command: str, node: BrokerNode) -> str:
    """The command for one broker; everything else in braces is the shell's."""
    # A host is what a cluster says, so the shell must not read more in it than a word.
    host = shlex.quote(node.address.host)
    return command.replace("{id}", str(node.broker_id)).replace("{host}", host)


def names_broker(command: str) -> bool:
    """Whether it is another command for each broker."""
    return "{id}" in command or "{host}" in command


class OperatorCommand:
    """Runs the command for a broker; its output goes where the caller's goes."""

    def __init__(self, command: str, tell: Callable[[str], None]) -> None:
        self._command = command
        self._tell = tell

    async def __call__(self, node: BrokerNode) -> None:
        """Returns when it has ended well; RestartStoppedError if it says that it has failed."""
        command = filled_in(self._command, node)
        self._tell(f"      $ {command}")
        process = await asyncio.create_subprocess_shell(
            command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            # It took too long, or nobody wants it any more; what it has started ends with it.
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_END_S):
                        await process.wait()
                        break
            raise
        if code != 0:
            raise RestartStoppedError(f"its command failed with exit code {code}.")
