"""Serves a broker's metrics over HTTP at `/metrics`, where `metrics.listen` says.

A report is made a piece at a time, with turns for others in between. Those who ask while one is
being made get the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Self

from headwater.broker.metrics.exposition import CONTENT_TYPE
from headwater.net.endpoint import split_address
from headwater.net.http_endpoint import HttpAnswer, HttpEndpoint

PATH = "/metrics"


class MetricsEndpoint:
    """The page, from `start` to `close`; its owner is the broker."""

    def __init__(self, pieces: Callable[[], Iterable[str]]) -> None:
        self._pieces = pieces
        self._endpoint: HttpEndpoint | None = None
        self._making: asyncio.Task[bytes] | None = None

    @classmethod
    async def start(cls, address: str, pieces: Callable[[], Iterable[str]]) -> Self:
        """Listen at host:port; an address that cannot be had raises an OSError that names it."""
        metrics = cls(pieces)
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
            return None
        if self._making is None:
            self._making = asyncio.get_running_loop().create_task(self._make())
        # One who goes away must not take the report away from the others.
        return HttpAnswer(await asyncio.shield(self._making), content_type=CONTENT_TYPE)

    async def _make(self) -> bytes:
        try:
            made: list[str] = []
            for piece in self._pieces():
                made.append(piece)
                await asyncio.sleep(0)
            return "".join(made).encode()
        finally:
            self._making = None
