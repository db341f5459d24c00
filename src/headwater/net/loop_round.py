"""What all connections together may do before the event loop turns to others.

A round of the loop serves everybody who has sent something. If each of hundreds of connections gets
as much as it wants in it, somebody who has sent one small request waits for all of that. So a round
has a bound for what can also be done in the next: bytes that are sent from files, and requests that
came together with others on their connection. The first request of each is served in any case. Who
finds a bound used up goes on in the next round, in the order in which they came.
"""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

SENT_BYTES_MAX: Final = 4 * 1024 * 1024
#: A request takes some tens of microseconds, so this is a turn of some milliseconds.
FURTHER_REQUESTS_MAX: Final = 128

_rounds: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopRound] = WeakKeyDictionary()


def round_of(loop: asyncio.AbstractEventLoop) -> LoopRound:
    """The one that all connections of a loop share."""
    found = _rounds.get(loop)
    if found is None:
        found = _rounds[loop] = LoopRound()
    return found


class LoopRound:
    """What was done since the loop last began a round."""

    __slots__ = ("__weakref__", "_further_requests", "_is_counting", "_sent_bytes")

    def __init__(self) -> None:
        self._sent_bytes = 0
        self._further_requests = 0
        self._is_counting = False

    @property
    def has_sent_enough(self) -> bool:
        return self._sent_bytes >= SENT_BYTES_MAX

    def sent(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        """So much was sent from a file."""
        self._sent_bytes += size
        if not self._is_counting:
            self._count(loop)

    def may_begin_further(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a request behind another on its connection is begun in this round; counts it."""
        if not self._is_counting:
            self._count(loop)
        self._further_requests += 1
        return self._further_requests <= FURTHER_REQUESTS_MAX

    def _count(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_counting = True
        loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._is_counting = False
        self._sent_bytes = self._further_requests = 0
