"""Serves a broker's metrics and its health over HTTP, where `metrics.listen` says.

It is there from the beginning of the start, so that `/ready` can tell what the broker is waiting
for. `/metrics` has a report from when the parts of the broker are there. It is made a piece at a
time, with turns for others in between. Those who ask while one is being made get the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Self

from headwater.broker.metrics.exposition import CONTENT_TYPE
from headwater.broker.metrics.health import BrokerHealth
from headwater.net.endpoint import split_address
from headwater.net.http_endpoint import HttpAnswer, HttpEndpoint

PATH = "/metrics"
_TOO_EARLY: Final = HttpAnswer(b"The broker starts.\n", 503)

MakePieces = Callable[[], Iterable[str]]


class MetricsEndpoint:
    """The pages, from `start` to `close`; its owner is the broker."""

    def __init__(self, health: BrokerHealth, pieces: MakePieces | None = None) -> None:
        self._health = health
        #: What makes a report, once there is something to report.
        self.pieces = pieces
        self._endpoint: HttpEndpoint | None = None
        self._making: asyncio.Task[bytes] | None = None

    @classmethod
    async def start(
        cls, address: str, health: BrokerHealth, pieces: MakePieces | None = None
    ) -> Self:
        """Listen at host:port; an address that cannot be had raises an OSError that names it."""
        metrics = cls(health, pieces)
        host, port = split_address(address)
        metrics._endpoint = await HttpEndpoint.start(host, port, metrics.answer)
        return metrics

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return 0 if self._endpoint is None else self._endpoint.port

    def close(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()

    async def answer(self, path: str) -> HttpAnswer | None:
        """The page of a path, None for any other path."""
        if path != PATH:
            return self._health.answer(path)
        if self.pieces is None:
            return _TOO_EARLY
        if self._making is None:
            self._making = asyncio.get_running_loop().create_task(self._make(self.pieces))
        # One who goes away must not take the report away from the others.
        return HttpAnswer(await asyncio.shield(self._making), content_type=CONTENT_TYPE)

    async def _make(self, pieces: MakePieces) -> bytes:
        try:
            made: list[str] = []
            for piece in pieces():
                made.append(piece)
                await asyncio.sleep(0)
            return "".join(made).encode()
        finally:
            self._making = None
