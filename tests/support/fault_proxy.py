"""A proxy that does to connections what networks do: cuts, delays, half-closes and swallows.

It stands before one broker, which names the proxy as its own address (`advertised.listeners`), and
passes frames in both directions. While faults are on, each frame may meet one, as a generator says:

- cut: the connection ends at once, perhaps in the middle of the frame. What the broker has answered
  is lost if it is an answer that meets it;
- delay: this frame and all behind it wait a moment;
- half-close: nothing more comes in this direction, and its receiver sees the end of the stream; the
  other direction goes on;
- swallow: nothing more comes in this direction, and nobody sees anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from types import TracebackType
from typing import Final, NamedTuple, Self

HOST: Final = "127.0.0.1"
DELAY_MAX_S: Final = 0.15


class FaultChances(NamedTuple):
    """How likely each fault is for a frame."""

    cut: float = 0.03
    delay: float = 0.05
    half_close: float = 0.01
    swallow: float = 0.003

    def choose(self, generator: random.Random) -> str | None:
        point = generator.random()
        for name, chance in self._asdict().items():
            if point < chance:
                return str(name)
            point -= chance
        return None


class FaultProxy:
    """Runs on a thread and a port of its own while it is entered."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        #: How many of each fault there were.
        self.counts: Counter[str] = Counter()
        self._broker_port = broker_port
        self._chances: FaultChances | None = None
        self._generator = random.Random()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy")

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def begin_faults(self, seed: int, chances: FaultChances | None = None) -> None:
        self.counts.clear()
        self._generator = random.Random(seed)
        self._chances = chances or FaultChances()

    def end_faults(self) -> None:
        """Let everything pass, and end the connections in which something is stuck."""
        self._chances = None
        self._loop.call_soon_threadsafe(self._cut_all)

    def __enter__(self) -> Self:
        self._thread.start()
        opening = asyncio.start_server(self._serve, HOST, self.port)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        self._cut_all()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Those whose task had not begun, or was interrupted before it could end them.
        self._cut_all()

    def _cut_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _serve(self, requests: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._writers.add(back)
        task = self._loop.create_task(self._pass_on(requests, back))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, requests: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            answers, broker = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:
            self._writers.discard(back)
            back.transport.abort()
            return
        self._writers.add(broker)
        both = (back, broker)
        try:
            await asyncio.gather(
                self._pump(requests, broker, both), self._pump(answers, back, both)
            )
        finally:
            for writer in both:
                self._writers.discard(writer)
                writer.transport.abort()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        """Pass frames on until one side is gone, which ends the other direction too."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _read_frame(source)
                chances = self._chances
                fault = None if chances is None else chances.choose(self._generator)
                if fault is not None:
                    self.counts[fault] += 1
                if fault == "cut":
                    target.write(frame[: self._generator.randrange(len(frame))])
                    break
                if fault == "delay":
                    await asyncio.sleep(self._generator.uniform(0, DELAY_MAX_S))
                elif fault == "half_close":
                    target.write_eof()
                    return await _drain(source)
                elif fault == "swallow":
                    return await _drain(source)
                target.write(frame)
                await target.drain()
        for writer in both:
            # What was written before still gets out, as it would on a real line.
            writer.close()
        return None


async def _read_frame(stream: asyncio.StreamReader) -> bytes:
    length = await stream.readexactly(4)
    return length + await stream.readexactly(int.from_bytes(length, "big"))


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read to the end and throw it away; the other direction lives as long as its own ends."""
    with contextlib.suppress(ConnectionError):
        while await stream.read(65536):
            pass
