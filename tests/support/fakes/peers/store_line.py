"""A line to a server that tests can cut, close and hold, on the event loop of the test itself.

async with StoreLine(shared_zookeeper().address) as line:
    store = await ZooKeeperConnector(line.address + fresh_chroot()).connect()
    line.hold_answers()
    ...
    line.cut()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"


class StoreLine:
    """Passes bytes on, both ways, as long as it is open."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = True
        self._requests_pass = asyncio.Event()
        self._answers_pass = asyncio.Event()
        self._requests_pass.set()
        self._answers_pass.set()
        self._cut_count = 0
        self.port = 0
        #: How many connections there were.
        self.connection_count = 0

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def cut(self) -> None:
        """End the connections there are; what is held is lost. New ones are taken."""
        self._cut_count += 1
        for task in self._tasks:
            task.cancel()
        self.release()

    def close(self) -> None:
        """End the connections there are, and take no more."""
        self._is_open = False
        self.cut()

    def open(self) -> None:
        self._is_open = True

    def hold_requests(self) -> None:
        """Keep what comes from the client from now on."""
        self._requests_pass.clear()

    def hold_answers(self) -> None:
        """Keep what comes from the server from now on."""
        self._answers_pass.clear()

    def release(self) -> None:
        self._requests_pass.set()
        self._answers_pass.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _connected(self, requests: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        if not self._is_open:
            back.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connection_count += 1
        writers = [back]
        try:
            with contextlib.suppress(OSError):
                answers, forward = await asyncio.open_connection(*self._target)
                writers.append(forward)
                await _first_done(
                    self._pass_on(requests, forward, self._requests_pass),
                    self._pass_on(answers, back, self._answers_pass),
                )
        except asyncio.CancelledError:
            # By `cut`; for the server that runs this task it is an end like any other.
            pass
        finally:
            self._tasks.discard(task)
            for writer in writers:
                writer.transport.abort()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, may_pass: asyncio.Event
    ) -> None:
        cut_count = self._cut_count
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                await may_pass.wait()
                if cut_count != self._cut_count:
                    return
                target.write(data)
                await target.drain()


async def _first_done(*directions: Coroutine[None, None, None]) -> None:
    """Until one direction has ended, which ends the other."""
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
