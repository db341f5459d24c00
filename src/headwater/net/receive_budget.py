"""The bytes of requests that are in memory, and who has to wait when they are too many.

A request is charged with the memory that it takes, never with what its length claims. One that
comes in one go is charged with its size; one that comes in pieces, with a first stage and then with
more as more of it comes, until it is whole. What it was charged with is given back when it is
answered, or when its connection is lost.

A request is let in while less than the bound is held, one in pieces only while such ones hold less
than half of it: they last as long as their peers like, and must not keep out the small requests of
others. Who is not let in stands in line, and so does one in pieces that needs more room. If all
that is held belonged to requests that wait for more, none would ever be whole. So one of them at a
time may go over the bound. Hence a request larger than the bound makes progress too, and the sum
exceeds the bound by less than one request.

Somebody who has begun a large request and sends no more would hold up others who send large ones:
while somebody waits, those that bring next to nothing are ended, the slowest first. As long as this
lets nobody in, what counts as next to nothing is doubled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from headwater.net.progress import PROGRESS_BYTES_MIN

#: While somebody waits, a request in pieces has to bring `PROGRESS_BYTES_MIN` in such a time.
RELIEF_INTERVAL_S: Final = 0.5
#: That is a gigabyte: nobody is as quick.
_LOOKS_IN_VAIN_MAX: Final = 16


class Receiver(Protocol):
    """A connection, as far as it receives a request in pieces."""

    @property
    def bytes_in(self) -> int: ...

    def receiving_bytes(self) -> int:
        """The memory of a request whose next bytes are the peer's to send; 0 if there is none."""

    def grow(self) -> None:
        """It is its turn to ask for more room for the request under way."""

    def drop(self, reason: str) -> None:
        """End the connection, and soon give back what it holds."""


class ReceiveBudget:
    """Counts the bytes of requests in memory, and lets connections wait for their turn.

    Whenever somebody waits who may go on, a round of turns is on its way. While there is no bound
    and nobody waits, `is_open` is set, and connections change `held_bytes` themselves.
    """

    __slots__ = (
        "_beginning",
        "_growing",
        "_held_bytes_max",
        "_is_relief_coming",
        "_is_round_coming",
        "_is_turn",
        "_looks_in_vain",
        "_loop",
        "_overdrawn_by",
        "_receivers",
        "_seen_bytes",
        "_waiting",
        "held_bytes",
        "in_pieces_bytes",
        "is_open",
    )

    def __init__(
        self,
        held_bytes_max: int = -1,
        receivers: Callable[[], Iterable[Receiver]] = tuple,
    ) -> None:
        """`receivers` are all connections there are, for some to be ended if need be."""
        self.held_bytes = 0
        #: That part of it which belongs to requests that are not whole yet.
        self.in_pieces_bytes = 0
        self.is_open = held_bytes_max <= 0
        self._held_bytes_max = held_bytes_max
        self._receivers = receivers
        # Three lines: with a request that has come, with one under way, with the begin of one.
        self._waiting: deque[Callable[[], None]] = deque()
        self._growing: deque[Receiver] = deque()
        self._beginning: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_round_coming = False
        self._is_turn = False
        #: Whose request goes over the bound until it is whole.
        self._overdrawn_by: Receiver | None = None
        self._is_relief_coming = False
        #: How often receivers were looked at since somebody who had waited was let in.
        self._looks_in_vain = 0
        #: What each receiver had brought when it was last looked at.
        self._seen_bytes: dict[Receiver, int] = {}

    @property
    def held_bytes_max(self) -> int:
        """The bound; none if it is not positive."""
        return self._held_bytes_max

    @held_bytes_max.setter
    def held_bytes_max(self, size: int) -> None:
        self._held_bytes_max = size
        self.is_open = size <= 0 and not self.waiting_count
        self.call_round()

    @property
    def has_room(self) -> bool:
        return self.held_bytes < self._held_bytes_max or self._held_bytes_max <= 0

    @property
    def has_room_for_pieces(self) -> bool:
        return self.has_room and (
            2 * self.in_pieces_bytes < self._held_bytes_max or self._held_bytes_max <= 0
        )

    @property
    def waiting_count(self) -> int:
        return len(self._waiting) + len(self._growing) + len(self._beginning)

    # -- requests that come in one go ------------------------------------------------------------

    def take(self, size: int) -> bool:
        """Count `size` in, or answer that it must wait, be it for room or behind others."""
        if not self.has_room or (self._waiting and not self._is_turn):
            return False
        self._is_turn = False
        self.held_bytes += size
        return True

    def give_back(self, size: int) -> None:
        self.held_bytes -= size
        self.call_round()

    def wait(self, loop: asyncio.AbstractEventLoop, turn: Callable[[], None]) -> None:
        """Stand in line: `turn` is called once, from the loop, and may take one request then."""
        self._waiting.append(turn)
        self._somebody_waits(loop)

    # -- requests that come in pieces ------------------------------------------------------------

    def begin(self, size: int) -> bool:
        """Like `take`, with the first piece of memory for such a request."""
        is_late = (self._beginning or self._growing) and not self._is_turn
        if is_late or not self.has_room_for_pieces:
            return False
        self._is_turn = False
        self._count_piece(size)
        return True

    def wait_to_begin(self, loop: asyncio.AbstractEventLoop, turn: Callable[[], None]) -> None:
        self._beginning.append(turn)
        self._somebody_waits(loop)

    def take_more(self, size: int, receiver: Receiver) -> bool:
        """The next piece; who has to wait for it goes before those who begin."""
        is_late = self._growing and not self._is_turn
        if receiver is not self._overdrawn_by and (is_late or not self.has_room_for_pieces):
            return False
        self._is_turn = False
        self._count_piece(size)
        return True

    def wait_for_more(self, loop: asyncio.AbstractEventLoop, receiver: Receiver) -> None:
        """Stand in line: `grow` is called once, from the loop."""
        self._growing.append(receiver)
        self._somebody_waits(loop)

    def end_pieces(self, size: int, receiver: Receiver, *, is_whole: bool) -> None:
        """All has come, and it is a request like others; or no more will, and it is gone."""
        self.in_pieces_bytes -= size
        if receiver is self._overdrawn_by:
            self._overdrawn_by = None
        if is_whole:
            self.call_round()
        else:
            self.give_back(size)

    def _count_piece(self, size: int) -> None:
        self.held_bytes += size
        self.in_pieces_bytes += size

    # -- turns -----------------------------------------------------------------------------------

    def call_round(self) -> None:
        """Something has changed: let those who wait have their turns soon, if they may."""
        # Turns are never taken inside of a call that gives back: that is some handler at work.
        if (
            self._loop is not None
            and not self._is_round_coming
            and (
                (self._waiting and self.has_room)
                or ((self._growing or self._beginning) and self.has_room_for_pieces)
                or (self._growing and self._may_overdraw)
            )
        ):
            self._is_round_coming = True
            self._loop.call_soon(self._take_turns)

    @property
    def _may_overdraw(self) -> bool:
        # Requests that are whole will be answered and make room; those in pieces perhaps never.
        has_only_pieces = self.held_bytes == self.in_pieces_bytes
        return self._overdrawn_by is None and (self.has_room or has_only_pieces)

    def _take_turns(self) -> None:
        self._looks_in_vain = 0
        for _ in range(len(self._waiting)):
            if not self.has_room:
                break
            self._is_turn = True
            self._waiting.popleft()()
        for _ in range(len(self._growing)):
            if not self.has_room_for_pieces:
                if not self._may_overdraw:
                    break
                self._overdrawn_by = self._growing[0]
            self._is_turn = True
            self._growing.popleft().grow()
        for _ in range(len(self._beginning)):
            if self._growing or not self.has_room_for_pieces:
                break
            self._is_turn = True
            self._beginning.popleft()()
        self._is_turn = False
        self._is_round_coming = False
        self.is_open = self._held_bytes_max <= 0 and not self.waiting_count
        self.call_round()

    # -- ending those that make no progress ------------------------------------------------------

    def _somebody_waits(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_open = False
        self._loop = loop
        self.call_round()
        if not self._is_relief_coming:
            self._is_relief_coming = True
            self._look_at_receivers()
            loop.call_later(RELIEF_INTERVAL_S, self._relieve)

    def _look_at_receivers(self) -> dict[Receiver, int]:
        """What each has brought since the last look, of those that were there then."""
        now_bytes = {each: each.bytes_in for each in self._receivers() if each.receiving_bytes()}
        seen_bytes, self._seen_bytes = self._seen_bytes, now_bytes
        return {
            each: count - seen_bytes[each]
            for each, count in now_bytes.items()
            if each in seen_bytes
        }

    def _relieve(self) -> None:
        """End the slowest, until half of the room for requests in pieces is free."""
        self._is_relief_coming = False
        if self._loop is None or not self.waiting_count:
            self._seen_bytes = {}
            return
        self._is_relief_coming = True
        self._loop.call_later(RELIEF_INTERVAL_S, self._relieve)
        brought = self._look_at_receivers()
        progress_bytes_min = PROGRESS_BYTES_MIN << self._looks_in_vain
        self._looks_in_vain = min(self._looks_in_vain + 1, _LOOKS_IN_VAIN_MAX)
        too_much = self.in_pieces_bytes - self._held_bytes_max // 4
        for receiver in sorted(brought, key=brought.__getitem__):
            if too_much <= 0 or brought[receiver] >= progress_bytes_min:
                return
            too_much -= receiver.receiving_bytes()
            receiver.drop("its request does not go on, and others wait for the memory")
