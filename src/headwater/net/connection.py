"""One accepted connection: requests come in, answers leave in their order.

Every frame becomes an `Exchange` that is handed to the request handler at once, also while earlier
ones wait for their answers. `_pending` holds, in order, those whose turn to be answered has not
come; a completed one leaves it as soon as all before it have.

Reading pauses while
- as many requests as allowed are pending, or a request waits for its task to begin,
- it has had its turn: between requests that came together those of others are served,
- the bytes of all requests in memory have reached their bound (`receive_budget`),
- answers queue because the peer does not read, or because the disk has to be waited for,
- the connection is about to close.

What a peer does wrong ends its own connection, with one line in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from headwater.base.threads import RunInThread
from headwater.net.endpoint import join_address
from headwater.net.exchange import Disconnection, Exchange, RequestHandler
from headwater.net.frame_protocol import FrameProtocol
from headwater.net.limits import ConnectionLimits
from headwater.net.loop_round import round_of
from headwater.net.peer_identity import ANONYMOUS, PeerIdentity
from headwater.net.progress import ProgressWatch
from headwater.net.sender import Sender

_logger = logging.getLogger(__name__)

PAUSED_BY_PENDING = 1
PAUSED_BY_BUDGET = 2
PAUSED_BY_SENDER = 4
PAUSED_BY_CLOSING = 8
PAUSED_BY_TASK = 16
PAUSED_BY_TURN = 32

Address = tuple[str, int]


class Connection(FrameProtocol):
    """The server's end of a connection, and what is known about the client."""

    _sender: Sender

    __slots__ = (
        "__weakref__",
        "_active_s",
        "_activity",
        "_budget",
        "_closed",
        "_handler",
        "_limits",
        "_opened",
        "_pending",
        "_receiving",
        "_round",
        "_run_in_thread",
        "_sender",
        "_sending",
        "_time",
        "client_id",
        "identity",
        "is_closed",
        "listener_name",
        "local",
        "peer",
        "requests",
        "state",
    )

    def __init__(
        self,
        handler: RequestHandler,
        limits: ConnectionLimits,
        *,
        listener_name: str = "PLAINTEXT",
        run_in_thread: RunInThread | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        opened: Callable[[Connection], None] | None = None,
        closed: Callable[[Connection], None] | None = None,
    ) -> None:
        """Without `run_in_thread`, the loop waits for parts of files that are not in memory."""
        super().__init__(loop or asyncio.get_running_loop(), limits.request_size_max)
        if not limits.budget.is_open:
            # What is received and not let in is in memory too, so it had better be little.
            self._window = self._full_window = self._memory.small_scratch
        self._handler = handler
        self._limits = limits
        self._budget = limits.budget
        self._round = round_of(self._loop)
        self._time = self._loop.time
        self._run_in_thread = run_in_thread
        self._opened = opened
        self._closed = closed
        self._pending: deque[Exchange] = deque()
        self.listener_name = listener_name
        self.peer: Address = ("", 0)
        self.local: Address = ("", 0)
        self.client_id: str | None = None
        #: Who the client has proven to be.
        self.identity: PeerIdentity = ANONYMOUS
        #: For whoever has something to remember about this client.
        self.state: dict[str, object] = {}
        self.requests = 0
        self.is_closed = False
        self._activity = 0
        self._active_s = self._loop.time()
        self._receiving = ProgressWatch()
        self._sending = ProgressWatch()

    @property
    def bytes_out(self) -> int:
        return self._sender.bytes_out

    @property
    def pending_count(self) -> int:
        """Requests whose answers have not been handed to the socket."""
        return len(self._pending)

    def idle_s(self, now_s: float) -> float:
        """For how long nothing has moved here, as far as it shows when asked from time to time."""
        activity = self.bytes_in + self.bytes_out - self.transport.get_write_buffer_size()
        # Who waits for the broker is not idle.
        is_waiting = self._pauses & PAUSED_BY_BUDGET or any(
            exchange.outcome is None for exchange in self._pending
        )
        if is_waiting or activity != self._activity:
            self._activity = activity
            self._active_s = now_s
        return now_s - self._active_s

    def stall(self, now_s: float) -> str:
        """What the peer has left half done for too long; empty as long as it goes on."""
        limits = self._limits
        if self.receiving_bytes():
            stalled_s = self._receiving.stalled_s(now_s, self.bytes_in, self.requests)
            if stalled_s >= limits.receive_progress_s > 0:
                return f"its request has not gone on for {stalled_s:.0f} s"
        else:
            self._receiving.rest()
        if self._sender.waits_for_peer:
            unsent = self.transport.get_write_buffer_size()
            stalled_s = self._sending.stalled_s(now_s, self.bytes_out - unsent, 0)
            if stalled_s >= limits.send_progress_s > 0:
                return f"it has not read its answers for {stalled_s:.0f} s"
        else:
            self._sending.rest()
        return ""

    # What transports call, beside what FrameProtocol answers.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer = _address(transport.get_extra_info("peername"))
        self.local = _address(transport.get_extra_info("sockname"))
        refusal = self._limits.refusal(self.peer[0])
        is_reserved = bool(refusal) and self._limits.has_reserve(self.peer[0])
        if refusal and not is_reserved:
            self._limits.counters.refused += 1
            self.is_closed = True
            self._limits.refusals.refused(self, refusal, self._time())
            self.transport.abort()
            return
        self._sender = Sender(
            self._loop,
            self.transport,
            run_in_thread=self._run_in_thread,
            set_busy=self._set_sender_busy,
            fail=self.drop,
        )
        self._limits.counters.add(self, self.peer[0], is_reserved=is_reserved)
        if self._opened is not None:
            self._opened(self)

    def connection_lost(self, exception: Exception | None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._pauses |= PAUSED_BY_CLOSING
        self._backlog = None
        if self._frame is not None:
            self._frame = None
            self._budget.end_pieces(self._room, self, is_whole=False)
        abandoned = [each for each in self._pending if each.outcome is None]
        self._pending.clear()
        self._sender.close()
        self._limits.counters.remove(self, self.peer[0])
        if self._closed is not None:
            self._closed(self)
        for exchange in abandoned:
            if exchange.on_abandoned is not None:
                exchange.on_abandoned()

    def eof_received(self) -> None:
        # A client that has closed its end waits for nothing; the transport closes next.
        self._sender.close()

    def pause_writing(self) -> None:
        self._sender.pause_writing()

    def resume_writing(self) -> None:
        self._sender.resume_writing()

    # From frames to the handler.

    def admit_frame(self, size: int, *, is_whole: bool) -> bool:
        if len(self._pending) >= self._limits.requests_in_flight_max:
            self.pause(PAUSED_BY_PENDING)
            return False
        budget = self._budget
        if is_whole:
            if budget.is_open:
                budget.held_bytes += size
            elif not budget.take(size):
                self.pause(PAUSED_BY_BUDGET)
                budget.wait(self._loop, self._take_turn)
                return False
        elif not budget.begin(size):
            self.pause(PAUSED_BY_BUDGET)
            budget.wait_to_begin(self._loop, self._take_turn)
            return False
        return True

    def admit_more(self, size: int) -> bool:
        if self._budget.take_more(size, self):
            return True
        self.pause(PAUSED_BY_BUDGET)
        self._budget.wait_for_more(self._loop, self)
        return False

    def grow(self) -> None:
        """It is its turn to ask for more room for the frame under way."""
        self._pauses &= ~PAUSED_BY_BUDGET
        self.ask_for_room()
        self.continue_reading()

    def receiving_bytes(self) -> int:
        """The memory of a request whose next bytes are the peer's to send; 0 if there is none."""
        return 0 if self._frame is None or self._pauses else self._room

    def _take_turn(self) -> None:
        """The budget has room: the frame that had to wait is let in now."""
        self._pauses &= ~PAUSED_BY_BUDGET
        self.continue_reading()

    def complete_frame(self, frame: memoryview) -> None:
        self._budget.end_pieces(len(frame), self, is_whole=True)
        self.receive_frame(frame)

    def receive_frame(self, frame: memoryview) -> None:
        self.requests += 1
        exchange = Exchange(self, frame, self._time())
        self._pending.append(exchange)
        try:
            self._handler(exchange)
        except Exception:
            _logger.exception("%s is disconnected: the handler of its request failed", self)
            self.abort()
            if not exchange.is_completed:
                exchange.answer_nothing()

    def hold(self) -> None:
        """Hand no further request to the handler until `release`."""
        self.pause(PAUSED_BY_TASK)

    def release(self) -> None:
        if not self.is_closed:
            self.resume(PAUSED_BY_TASK)

    def start_series(self) -> None:
        self._sender.cork()

    def end_series(self) -> None:
        self._sender.uncork()

    def may_go_on(self) -> bool:
        if self._round.may_begin_further(self._loop):
            return True
        self.pause(PAUSED_BY_TURN)
        self._loop.call_soon(self._begin_turn)
        return False

    def _begin_turn(self) -> None:
        self._pauses &= ~PAUSED_BY_TURN
        self.continue_reading()

    def refuse_frame(self, size: int) -> None:
        self.drop(f"it announces a request of {size} bytes")

    # From the handler to the socket.

    def complete(self, exchange: Exchange) -> None:
        """Send the answer when its turn has come; for `Exchange` alone."""
        budget = self._budget
        budget.held_bytes -= len(exchange.frame)
        if not budget.is_open:
            budget.call_round()
        pending = self._pending
        if not pending or pending[0] is not exchange:
            return
        while pending and (outcome := pending[0].outcome) is not None:
            pending.popleft()
            if outcome:
                if pending:
                    # Answers to the others may follow in a moment: one write for all.
                    self._sender.gather()
                if isinstance(outcome, Disconnection):
                    _logger.warning("%s is disconnected: %s", self, outcome.reason)
                    pending.clear()
                    self.finish()
                    return
                self._sender.send(outcome)
        if self._pauses:
            self._reconsider()

    def _reconsider(self) -> None:
        if len(self._pending) < self._limits.requests_in_flight_max:
            self.resume(PAUSED_BY_PENDING)
        self._close_if_done()

    def _set_sender_busy(self, is_busy: bool) -> None:
        if is_busy:
            self.pause(PAUSED_BY_SENDER)
        else:
            self.resume(PAUSED_BY_SENDER)
            self._close_if_done()

    # Closing.

    def finish(self) -> None:
        """Take no further request, answer those that came, then close."""
        self.pause(PAUSED_BY_CLOSING)
        self._close_if_done()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self.pause(PAUSED_BY_CLOSING)
        self._sender.close()
        self.transport.abort()

    def _close_if_done(self) -> None:
        if self._pauses & PAUSED_BY_CLOSING and not self._pending:
            self._sender.uncork()
            if self._sender.is_empty:
                self.transport.close()

    def drop(self, reason: str) -> None:
        """Close at once, with the reason in the log if there is one."""
        if reason and not self._pauses & PAUSED_BY_CLOSING:
            _logger.warning("%s is disconnected: %s", self, reason)
        self.abort()

    def __str__(self) -> str:
        return join_address(*self.peer)


def _address(name: object) -> Address:
    """Host and port; of an IPv4 peer on an IPv6 socket, the IPv4 address."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ("", 0)
    host, port = name[:2]
    return (str(host).removeprefix("::ffff:"), int(port))
