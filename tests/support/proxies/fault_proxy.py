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
from collections import Counter
from typing import Final, NamedTuple

from tests.support.proxies.proxy_thread import HOST, ProxyThread, read_frame

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


class FaultProxy(ProxyThread):
    def __init__(self, port: int, broker_port: int) -> None:
        super().__init__((HOST, broker_port), port)
        #: How many of each fault there were.
        self.counts: Counter[str] = Counter()
        self._chances: FaultChances | None = None
        self._generator = random.Random()

    def begin_faults(self, seed: int, chances: FaultChances | None = None) -> None:
        self.counts.clear()
        self._generator = random.Random(seed)
        self._chances = chances or FaultChances()

    def end_faults(self) -> None:
        """Let everything pass, and end the connections in which something is stuck."""
        self._chances = None
        self._loop.call_soon_threadsafe(self.cut_all)

    async def pass_on(
        self,
        requests: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
    ) -> None:
        both = (back, broker)
        await asyncio.gather(self._pump(requests, broker, both), self._pump(answers, back, both))

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        """Pass frames on until one side is gone, which ends the other direction too."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await read_frame(source)
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


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read to the end and throw it away; the other direction lives as long as its own ends."""
    with contextlib.suppress(ConnectionError):
        while await stream.read(65536):
            pass
