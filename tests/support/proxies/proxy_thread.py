"""A proxy before a broker, on a thread and an event loop of its own while it is entered.

What a proxy does to a connection is its `pass_on`; this opens the port, keeps the connections, and
leaves none behind at the end, however a connection's task was interrupted.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

HOST: Final = "127.0.0.1"
LIMIT_S: Final = 10


class ProxyThread(ABC):
    def __init__(self, broker: tuple[str, int], port: int = 0) -> None:
        """Port 0 is any that is free; `port` says which once it is entered."""
        self.port = port
        self._broker = broker
        # Kept, because a loop refers to tasks that wait for a stream only weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        opening = asyncio.start_server(self._serve, HOST, self.port)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(LIMIT_S)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(LIMIT_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(LIMIT_S)
            self._loop.close()

    @abstractmethod
    async def pass_on(
        self,
        requests: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
    ) -> None:
        """Serve one connection, whose writers are ended when this returns."""

    def cut_all(self) -> None:
        """End every connection at once; on the proxy's thread."""
        for writer in self._writers:
            writer.transport.abort()

    async def _close(self) -> None:
        self._server.close()
        # Rather than closed in order, which would wait for a peer that does not read.
        self.cut_all()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        # The transports close their sockets in the turn after.
        await asyncio.sleep(0)

    def _serve(self, requests: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._writers.add(back)
        task = self._loop.create_task(self._connect(requests, back))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, back))

    async def _connect(self, requests: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            answers, broker = await asyncio.open_connection(*self._broker)
        except OSError:
            return
        self._writers.add(broker)
        try:
            await self.pass_on(requests, back, answers, broker)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            broker.close()
            self._writers.discard(broker)

    def _ended(self, task: asyncio.Task[None], back: asyncio.StreamWriter) -> None:
        """Also for a task that was cancelled before it began."""
        back.close()
        self._writers.discard(back)
        self._tasks.discard(task)


async def read_frame(stream: asyncio.StreamReader) -> bytes:
    """A request or an answer, with the length before it."""
    length = await stream.readexactly(4)
    return length + await stream.readexactly(int.from_bytes(length, "big"))
