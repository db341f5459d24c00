"""One session with ZooKeeper: requests in order, connections that break, and the end.

Requests wait in a queue of our own and are handed to kazoo while it is connected, many at a time,
so that their round trips overlap. What becomes of one whose connection breaks:

- a read is asked again on the next connection, in its old place,
- a change that was sent fails with UncertainWriteError, because nobody knows whether it was made,
- what was still waiting was never sent, and waits on.

kazoo repeats nothing by itself, since it is only ever given single requests.

A session outlives connections, as long as the client is back within the session timeout. It is
over when ZooKeeper says so, or when it is closed. It is also over, for us, when there was no
connection for as long as the session timeout: ZooKeeper has then most likely given it up, with all
its ephemeral nodes, and can only not tell us; a broker that believed in its registration, or in its
seat as the controller, would do so against what all the others see. Should ZooKeeper still know of
the session when it is reached again, because it had stopped itself, then it is closed at once.

After a reconnect the watches are restored before anything else is asked. A request that kazoo had
not sent yet when the connection broke goes out even before that, so answers are held back until the
watches are restored: the watch comes before any answer that shows the change.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient, KazooState

from headwater.base.checks import check
from headwater.cluster.store.errors import SessionExpiredError, UncertainWriteError
from headwater.cluster.store.node_paths import ROOT
from headwater.cluster.store.zookeeper.errors import is_connection_loss, store_error
from headwater.cluster.store.zookeeper.handler import LoopHandler, LoopResult
from headwater.cluster.store.zookeeper.requests import Request, ZooKeeperRequests

#: As many requests are with kazoo at most. It wakes its thread with a byte per request, through a
#: pipe in which a few hundred have room while there is no connection; more would block the loop.
IN_FLIGHT_MAX: Final = 100

_logger = logging.getLogger(__name__)


class _Asked(NamedTuple):
    request: Request
    answer: asyncio.Future[Any]


class ZooKeeperSession:
    """A session that begins with `begin` and is over at most once."""

    def __init__(
        self,
        client: KazooClient,
        handler: LoopHandler,
        requests: ZooKeeperRequests,
        session_timeout_s: float,
    ) -> None:
        """`handler` is the client's, and `requests` are made for it."""
        self.session_id = 0
        self.is_over = False
        self._client = client
        self.handler = handler
        self._requests = requests
        self.timeout_s = session_timeout_s
        self._loop = asyncio.get_running_loop()
        self._began: asyncio.Future[None] = self._loop.create_future()
        #: Done when nothing of the session is left, no thread and no connection.
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.is_connected = False
        self._is_stopping = False
        self._waiting: deque[_Asked] = deque()
        self._to_repeat: list[_Asked] = []
        self._in_flight_count = 0
        #: Reads that restore watches and are still to be sent, before anything else.
        self._restoring: deque[Request] = deque()
        #: How many of them are not answered.
        self._restoring_count = 0
        self._connection_number = 0
        #: What was answered while there were any.
        self._held: list[Callable[[], None]] = []
        self._cut_off_timer: asyncio.TimerHandle | None = None
        self._expired_callbacks: list[Callable[[], None]] = []

    # -- for the store ----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Connect; returns with the first connection, however long that takes."""
        self._client.add_listener(self._on_state)
        self._client.start_async()
        await asyncio.shield(self._began)

    def ask(self, request: Request) -> asyncio.Future[Any]:
        """Put a request into the queue."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self.is_over:
            answer.set_exception(SessionExpiredError(request.path))
        else:
            self._waiting.append(_Asked(request, answer))
            self._send_waiting()
        return answer

    @property
    def credentials(self) -> tuple[int, bytes]:
        """The session's number and password, while it is connected."""
        session_id, password = self._client.client_id
        return session_id, password

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._expired_callbacks.append(callback)

    async def close(self) -> None:
        """End the session; returns when ZooKeeper knows, or cannot be told in reasonable time."""
        self._expired_callbacks.clear()
        self._end()
        self._stop_client()
        await asyncio.wait((self._ended,), timeout=self.timeout_s)

    async def wait_ended(self) -> None:
        """Return when nothing of a session that is over is left."""
        check(self.is_over, "a session that is not over has no end to wait for")
        await asyncio.shield(self._ended)

    # -- connections come and go ------------------------------------------------------------------

    def _on_state(self, state: str) -> None:
        """In kazoo's thread."""
        if state == KazooState.LOST:
            self.handler.forbid()
        elif state == KazooState.SUSPENDED:
            self.handler.avoid_last()
        self.handler.post(lambda: self._state_changed(state))

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._expire("ZooKeeper has ended the session")
            self._stop_client()
        elif state == KazooState.SUSPENDED:
            self._disconnected()
        elif self.is_over:
            # It was over for us while it could not be told so.
            self._stop_client()
        else:
            self._connected()

    def _connected(self) -> None:
        if self._cut_off_timer is not None:
            self._cut_off_timer.cancel()
            self._cut_off_timer = None
        self.is_connected = True
        if not self._began.done():
            self.session_id = self._client.client_id[0]
            self._began.set_result(None)
        self._waiting.extendleft(reversed(self._to_repeat))
        self._to_repeat.clear()
        self._begin_restoring()
        self._send_waiting()

    def _disconnected(self) -> None:
        self.is_connected = False
        if self._cut_off_timer is None and not self.is_over:
            _logger.info("The connection to ZooKeeper broke; trying to come back.")
            self._cut_off_timer = self._loop.call_later(
                self.timeout_s, self._expire, "ZooKeeper could not be reached for so long"
            )

    def _expire(self, reason: str) -> None:
        if self.is_over:
            return
        _logger.warning("The session %#x is over: %s.", self.session_id, reason)
        self._end()
        callbacks, self._expired_callbacks = self._expired_callbacks, []
        for callback in callbacks:
            callback()

    def _end(self) -> None:
        self.is_over = True
        if self._cut_off_timer is not None:
            self._cut_off_timer.cancel()
            self._cut_off_timer = None
        if not self._began.done():
            self._began.set_exception(SessionExpiredError(ROOT))
            # Looked at here, because it may be that nobody waits for it.
            self._began.exception()
        self._requests.watches.drop_all()
        self._restoring_count = 0
        self._restoring.clear()
        self._deliver_held()
        for asked in (*self._to_repeat, *self._waiting):
            _fail(asked.answer, SessionExpiredError(asked.request.path))
        self._to_repeat.clear()
        self._waiting.clear()

    def _stop_client(self) -> None:
        """Have kazoo end. That blocks, so it is done in a thread of its own."""

        def stop() -> None:
            try:
                self._client.stop()
                self._client.close()
            except Exception:
                _logger.debug("kazoo did not stop in order.", exc_info=True)
            self.handler.post(self._stopped)

        if not self._is_stopping:
            self._is_stopping = True
            self.handler.spawn(stop)

    def _stopped(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    # -- requests and answers ---------------------------------------------------------------------

    def _send_waiting(self) -> None:
        while self.is_connected and self._in_flight_count < IN_FLIGHT_MAX:
            if self._restoring:
                request = self._restoring.popleft()
                self._start(request, partial(self._restored, request))
            elif not self._waiting:
                return
            else:
                asked = self._waiting.popleft()
                # Whoever has gone away needs no answer, and has no change to regret.
                if not asked.answer.done():
                    self._start(asked.request, partial(self._answered, asked))

    def _start(self, request: Request, done: Callable[[int, LoopResult], None]) -> None:
        self._in_flight_count += 1
        request.start().rawlink(partial(done, self._connection_number))

    def _is_lost(self, connection_number: int, result: LoopResult) -> bool:
        """Whether the connection broke before an answer came."""
        self._in_flight_count -= 1
        if result.exception is None or not is_connection_loss(result.exception):
            return False
        if connection_number == self._connection_number:
            # The news that the connection is broken comes right behind.
            self.is_connected = False
        return True

    def _answered(self, asked: _Asked, connection_number: int, result: LoopResult) -> None:
        request, answer = asked
        if self._is_lost(connection_number, result):
            if request.is_write:
                _fail(answer, UncertainWriteError(request.path))
            elif self.is_over:
                _fail(answer, SessionExpiredError(request.path))
            else:
                self._to_repeat.append(asked)
            return
        try:
            give = partial(_give, answer, request.convert(result))
        except Exception as failure:
            give = partial(_fail, answer, store_error(failure, request.path))
        if self._restoring_count:
            self._held.append(give)
        else:
            give()
        self._send_waiting()

    def _deliver_held(self) -> None:
        held, self._held = self._held, []
        for give in held:
            give()

    # -- watches ----------------------------------------------------------------------------------

    def _begin_restoring(self) -> None:
        """Read again what is watched; what is left of an earlier attempt counts no more."""
        self._connection_number += 1
        self._restoring = deque(self._requests.restoring())
        self._restoring_count = len(self._restoring)
        if not self._restoring_count:
            self._deliver_held()

    def _restored(self, request: Request, connection_number: int, result: LoopResult) -> None:
        if self._is_lost(connection_number, result):
            return
        if not self.is_over:
            request.convert(result)
        if connection_number == self._connection_number and self._restoring_count:
            self._restoring_count -= 1
            if not self._restoring_count:
                self._deliver_held()
        self._send_waiting()


def _give(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
