"""A simulated client's way to the broker: a channel that is opened again whenever it is lost.

A request ends in an answer or in `Unanswered`: the client then does not know whether the broker
did what it was asked, which is what clients must be able to live with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from headwater.net.peer_channel import PeerChannel, PeerTimeoutError, PeerUnavailableError
from headwater.sim.history import PropertyViolated
from headwater.wire.schema import Message

T = TypeVar("T", bound=Message)


class Unanswered(Exception):
    """The connection was lost, or time was up."""


class BrokerLink:
    def __init__(
        self, name: str, address: tuple[str, int], random: Random, timeout_s: float
    ) -> None:
        self.name = name
        self.random = random
        self.timeout_s = timeout_s
        self._address = address
        self._channel: PeerChannel | None = None

    async def channel(self) -> PeerChannel:
        """An open channel; raises `Unanswered` if there is none to be had."""
        if self._channel is None or self._channel.is_closed:
            try:
                self._channel = await PeerChannel.connect(
                    *self._address, client_id=self.name, timeout_s=self.timeout_s
                )
            except (PeerUnavailableError, PeerTimeoutError) as error:
                raise Unanswered(str(error)) from error
        return self._channel

    async def ask(
        self, message: Message, response_class: type[T], *, version: int | None = None
    ) -> T:
        """One request and its answer."""
        return (await self.ask_all([message], response_class, version=version))[0]

    async def ask_all(
        self, messages: Sequence[Message], response_class: type[T], *, version: int | None = None
    ) -> list[T]:
        """Several requests at once; if any stays without an answer, all count as unanswered."""
        channel = await self.channel()
        futures: list[asyncio.Future[Any]] = []
        try:
            futures = [channel.send_nowait(message, version=version) for message in messages]
            async with asyncio.timeout(self.timeout_s):
                answers = [await future for future in futures]
        except (PeerUnavailableError, PeerTimeoutError, TimeoutError) as error:
            await self.close()
            for future in futures:
                future.cancel()
            raise Unanswered(str(error)) from error
        for answer in answers:
            if not isinstance(answer, response_class):
                raise PropertyViolated(f"{response_class.__name__} was due, {answer!r} came")
        return answers

    async def pause(self) -> None:
        """Wait a little before the next attempt."""
        await asyncio.sleep(self.random.uniform(0.01, 0.5))

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
