"""A simulated client's way to a broker: a channel that is opened again whenever it is lost.

A request ends in an answer or in `Unanswered`: the client then does not know whether the broker
did what it was asked, which is what clients must be able to live with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar

from headwater.base.errors import ErrorCode
from headwater.net.peer_channel import PeerChannel, PeerTimeoutError, PeerUnavailableError
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.schema import Message

T = TypeVar("T", bound=Message)

#: What passes by itself: the same request may work a moment later.
PASSING: Final = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


#: Of a link that is not to the leader of a partition.
NO_LEADER_EPOCH: Final = -1


class Unanswered(Exception):
    """The connection was lost, or time was up."""


class BrokerLink:
    def __init__(
        self, name: str, address: tuple[str, int], random: Random, timeout_s: float
    ) -> None:
        self.name = name
        self.random = random
        self.timeout_s = timeout_s
        self.address = address
        #: Of the partition whose leader the link leads to, if any: what requests are to name.
        self.leader_epoch = NO_LEADER_EPOCH
        #: Requests so far of which nobody here knows what became.
        self.unanswered_count = 0
        self._channel: PeerChannel | None = None

    async def channel(self) -> PeerChannel:
        """An open channel; raises `Unanswered` if there is none to be had."""
        if self._channel is None or self._channel.is_closed:
            try:
                self._channel = await PeerChannel.connect(
                    *self.address, client_id=self.name, timeout_s=self.timeout_s
                )
            except (PeerUnavailableError, PeerTimeoutError) as error:
                raise Unanswered(str(error)) from error
        return self._channel

    async def ask(
        self,
        message: Message,
        response_class: type[T],
        *,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> T:
        """One request and its answer."""
        answers = await self.ask_all(
            [message], response_class, version=version, timeout_s=timeout_s
        )
        return answers[0]

    async def insist(
        self,
        message: Message,
        response_class: type[T],
        errors_of: Callable[[T], Sequence[int]],
        *,
        version: int | None = None,
    ) -> T:
        """Ask until an answer comes that tells of nothing that passes by itself."""
        while True:
            try:
                answer = await self.ask(message, response_class, version=version)
                if not PASSING.intersection(errors_of(answer)):
                    return answer
                await self.look_again()
            except Unanswered:
                self.unanswered_count += 1
            await self.pause()

    async def ask_all(
        self,
        messages: Sequence[Message],
        response_class: type[T],
        *,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> list[T]:
        """Several requests at once; if any stays without an answer, all count as unanswered."""
        channel = await self.channel()
        futures: list[asyncio.Future[Any]] = []
        try:
            futures = [channel.send_nowait(message, version=version) for message in messages]
            async with asyncio.timeout(self.timeout_s if timeout_s is None else timeout_s):
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

    async def look_again(self) -> None:
        """The broker said that it is not the right one, or not now: where else could one ask?"""

    async def pause(self) -> None:
        """Wait a little before the next attempt."""
        await asyncio.sleep(self.random.uniform(0.01, 0.5))

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
