"""The order of appends to a partition while some of them are prepared in threads.

Most appends are over at once. Where records have to be looked into (a compacted topic, another
compression than the producer's) that takes long enough for a thread to do it, and then requests
that came later must not overtake: a producer's batches are numbered, and its records have an
order. So such an append takes a turn when its request comes, prepares itself, and writes when all
that came before have written or failed. While anybody holds a turn, every append takes one.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class AppendTurn:
    """One place in the order: `async with turn` waits for it, and lets the next one go after."""

    __slots__ = ("_done", "_previous", "_turns")

    def __init__(self, turns: AppendTurns, previous: asyncio.Future[None] | None) -> None:
        self._turns = turns
        self._previous = previous
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> asyncio.Future[None]:
        return self._done

    async def __aenter__(self) -> None:
        if self._previous is not None:
            await asyncio.shield(self._previous)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set_result(None)
        self._turns.finished(self)


class AppendTurns:
    """The turns of one partition; its owner is the event loop."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: AppendTurn | None = None

    @property
    def is_busy(self) -> bool:
        """Whether somebody holds a turn."""
        return self._last is not None

    def take(self) -> AppendTurn:
        """The place behind all that are taken; it must be used."""
        self._last = AppendTurn(self, None if self._last is None else self._last.done)
        return self._last

    def finished(self, turn: AppendTurn) -> None:
        if self._last is turn:
            self._last = None


class TransactionTurns:
    """The turns of one partition, by producer, while the first batch of a transaction waits.

    A producer may have sent the next batches of its transaction before its coordinator has said
    whether the first may be written. They wait behind it, each with a turn of its own, and all
    other producers go on. The owner is the event loop.
    """

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, AppendTurns] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def is_busy(self, producer_id: int) -> bool:
        """Whether a batch of that producer waits."""
        turns = self._by_producer.get(producer_id)
        return turns is not None and turns.is_busy

    def take(self, producer_id: int) -> AppendTurn:
        """The place behind all of that producer's batches; it must be used."""
        turns = self._by_producer.get(producer_id)
        if turns is None:
            turns = self._by_producer[producer_id] = AppendTurns()
        turn = turns.take()
        turn.done.add_done_callback(lambda _: self._forget(producer_id, turns))
        return turn

    def _forget(self, producer_id: int, turns: AppendTurns) -> None:
        if not turns.is_busy and self._by_producer.get(producer_id) is turns:
            del self._by_producer[producer_id]
