"""A broker's session with the simulated metadata store, over connections that break.

It keeps the promises of `MetadataStore`. Operations are sent in their order. When a connection is
lost (it broke, or nothing was heard for two thirds of the session's time), changes under way raise
UncertainWriteError, reads are asked again over the next connection, and so is what was not sent
yet. Whether a session is over is the store's to say: a client hears of it when it comes back. One
that is cautious gives the session up by itself when the store must have, others go on until then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.errors import SessionExpiredError, StoreError, UncertainWriteError
from headwater.cluster.store.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    Node,
    Operation,
    Result,
    Set,
    Watch,
    WatchEvent,
)
from headwater.cluster.store.node_paths import ROOT
from headwater.sim.process import SimulatedProcess
from headwater.sim.store.connection import Message, StoreConnection
from headwater.sim.store.service import StoreService, Work

_RECONNECT_PAUSE_S: Final = 0.1
_CLOSE_TIME_S: Final = 1.0


class _WatchKey(NamedTuple):
    is_for_children: bool
    path: str
    watch: Watch


class _Call(NamedTuple):
    path: str
    name: str
    work: Work
    is_write: bool
    answer: asyncio.Future[Any]
    #: What a read leaves behind when it is answered.
    left: _WatchKey | None = None


class LinkedSession:
    """A `MetadataStore`; `LinkedConnector.connect` makes it."""

    def __init__(
        self,
        service: StoreService,
        connection: StoreConnection,
        session_id: int,
        timeout_s: float,
        *,
        is_cautious: bool,
    ) -> None:
        self._service = service
        self._connection: StoreConnection | None = connection
        self._process = connection.process
        self._session_id = session_id
        self._timeout_s = timeout_s
        self._is_cautious = is_cautious
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._unsent: deque[_Call] = deque()
        self._under_way: deque[_Call] = deque()
        self._watches: set[_WatchKey] = set()
        self._expired_callbacks: list[Callable[[], None]] = []
        #: When something was heard last, and when the last ping left that was answered.
        self._heard_s = self._alive_s = self._loop.time()
        self._task = self._loop.create_task(self._keep())

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def timeout_s(self) -> float | None:
        return self._timeout_s

    # -- operations ------------------------------------------------------------------------------

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        return cast(str, await self._write(Create(path, data, ephemeral, sequence)))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return cast(int, await self._write(Set(path, data, version)))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._write(Delete(path, version))

    async def _write(self, operation: Operation) -> Result:
        return (await self.multi([operation]))[0]

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        path = operations[0].path if operations else ROOT
        name = ", ".join(f"{type(each).__name__} {each.path}" for each in operations)
        work = list(operations)
        result = await self._ask(path, name, lambda session: session.multi(work), is_write=True)
        return cast(list[Result], result)

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        def work(session: EmbeddedSession) -> Any:
            return session.get(path, self._remote(watch, path))

        return cast(Node, await self._read(path, "get", work, watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Node | None:
        def work(session: EmbeddedSession) -> Any:
            return session.exists(path, self._remote(watch, path))

        return cast(Node | None, await self._read(path, "exists", work, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        def work(session: EmbeddedSession) -> Any:
            return session.children(path, self._remote(watch, path, is_for_children=True))

        return cast(
            list[str], await self._read(path, "children", work, watch, is_for_children=True)
        )

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        wanted = list(paths)
        first = wanted[0] if wanted else ROOT
        result = await self._read(first, "get_many", lambda each: each.get_many(wanted), None)
        return cast(list[Node | None], result)

    async def _read(
        self,
        path: str,
        name: str,
        work: Work,
        watch: Watch | None,
        *,
        is_for_children: bool = False,
    ) -> Any:
        left = None if watch is None else _WatchKey(is_for_children, path, watch)
        return await self._ask(path, f"{name} {path}", work, is_write=False, left=left)

    async def _ask(
        self, path: str, name: str, work: Work, *, is_write: bool, left: _WatchKey | None = None
    ) -> Any:
        if self._is_over:
            raise SessionExpiredError(path)
        call = _Call(path, name, work, is_write, self._loop.create_future(), left)
        self._unsent.append(call)
        self._send_unsent()
        return await call.answer

    # -- watches ---------------------------------------------------------------------------------

    def _remote(
        self, watch: Watch | None, path: str, *, is_for_children: bool = False
    ) -> Watch | None:
        """What the store is to call: it sends the event here."""
        if watch is None:
            return None
        key = _WatchKey(is_for_children, path, watch)

        def tell(event: WatchEvent) -> None:
            self._service.tell(self._session_id, lambda: self._event_came(key, event))

        return tell

    def _event_came(self, key: _WatchKey, event: WatchEvent) -> None:
        self._heard_s = self._loop.time()
        # One whose read was not answered, or that was called already, has nothing to say.
        if key in self._watches and not self._is_over:
            self._watches.discard(key)
            # Behind the answer that left the watch, which may be on its way to who asked.
            self._loop.call_soon(key.watch, event)

    # -- the connection --------------------------------------------------------------------------

    def _send_unsent(self) -> None:
        connection = self._connection
        while connection is not None and self._unsent:
            call = self._unsent.popleft()
            self._under_way.append(call)
            self._send(connection, call)

    def _send(self, connection: StoreConnection, call: _Call) -> None:
        def answer(result: Any, error: StoreError | None) -> None:
            if call in self._under_way:
                self._heard_s = self._loop.time()
                self._under_way.remove(call)
                # Now, and not when whoever asked goes on: the event may arrive in between.
                if call.left is not None and error is None:
                    self._watches.add(call.left)
                _give(call.answer, result, error)

        connection.send_to_store(
            Message(
                lambda: self._service.work(
                    self._session_id, connection, call.name, call.work, answer
                )
            )
        )

    async def _keep(self) -> None:
        """Ping, notice silence, come back, until the session is over."""
        while not self._is_over:
            now_s = self._loop.time()
            if self._is_cautious and now_s > self._alive_s + self._timeout_s:
                self._expire()
            elif self._connection is None:
                await self._come_back()
            elif self._connection.is_broken or now_s > self._heard_s + self._timeout_s * 2 / 3:
                self._lose_connection()
            else:
                self._ping(self._connection, now_s)
                await asyncio.sleep(self._timeout_s / 6)

    def _ping(self, connection: StoreConnection, now_s: float) -> None:
        def heard(_result: Any, _error: StoreError | None) -> None:
            self._heard_s = self._loop.time()
            self._alive_s = max(self._alive_s, now_s)

        connection.send_to_store(
            Message(
                lambda: self._service.work(self._session_id, connection, "ping", _nothing, heard)
            )
        )

    def _lose_connection(self) -> None:
        """Nobody knows what became of the changes under way; the reads are asked again."""
        self._connection = None
        calls, self._under_way = self._under_way, deque()
        self._unsent.extendleft(call for call in reversed(calls) if not call.is_write)
        for call in calls:
            if call.is_write:
                _give(call.answer, None, UncertainWriteError(call.path))

    async def _come_back(self) -> None:
        connection = StoreConnection(self._service.network, self._process)
        answered: asyncio.Future[bool] = self._loop.create_future()

        def answer(is_alive: Any, _error: StoreError | None) -> None:
            if answered.done():
                return
            answered.set_result(is_alive)
            if is_alive and not self._is_over:
                self._connection = connection
                self._heard_s = self._alive_s = self._loop.time()
                self._send_unsent()

        connection.send_to_store(
            Message(lambda: self._service.resume(self._session_id, connection, answer))
        )
        try:
            async with asyncio.timeout(self._timeout_s / 3):
                if not await answered:
                    self._expire()
        except TimeoutError:
            # An answer that is late must not revive what was given up.
            connection.is_broken = True
            await asyncio.sleep(_RECONNECT_PAUSE_S)

    # -- the end ---------------------------------------------------------------------------------

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._expired_callbacks.append(callback)

    def _expire(self) -> None:
        self._end()
        for callback in self._expired_callbacks:
            callback()

    def _end(self) -> None:
        self._is_over = True
        self._lose_connection()
        calls, self._unsent = self._unsent, deque()
        for call in calls:
            _give(call.answer, None, SessionExpiredError(call.path))

    async def close(self) -> None:
        if self._is_over:
            return
        closing = asyncio.ensure_future(
            self._ask(ROOT, "close", lambda session: session.close(), is_write=True)
        )
        # If no answer comes, the store ends the session by itself when it has heard nothing more.
        await asyncio.wait((closing,), timeout=min(_CLOSE_TIME_S, self._timeout_s / 3))
        self._end()
        await asyncio.wait((closing,))
        closing.exception()
        self._task.cancel()


class LinkedConnector:
    """A `StoreConnector` for one broker process, which must be the caller."""

    def __init__(
        self,
        service: StoreService,
        process: SimulatedProcess,
        timeout_s: float,
        *,
        is_cautious: bool,
    ) -> None:
        self._service = service
        self._process = process
        self._timeout_s = timeout_s
        self._is_cautious = is_cautious
        self._sessions: list[LinkedSession] = []

    async def connect(self) -> LinkedSession:
        while True:
            session_id = await self._begin()
            if session_id is not None:
                return self._sessions[-1]
            await asyncio.sleep(_RECONNECT_PAUSE_S)

    async def _begin(self) -> int | None:
        """Ask for a session; None if no answer came in time."""
        connection = StoreConnection(self._service.network, self._process)
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def answer(session_id: Any, _error: StoreError | None) -> None:
            if not answered.done():
                answered.set_result(session_id)

        connection.send_to_store(
            Message(lambda: self._service.begin(connection, self._timeout_s, answer))
        )
        try:
            async with asyncio.timeout(self._timeout_s / 3):
                session_id = await answered
        except TimeoutError:
            connection.is_broken = True
            return None
        self._sessions.append(
            LinkedSession(
                self._service,
                connection,
                session_id,
                self._timeout_s,
                is_cautious=self._is_cautious,
            )
        )
        return session_id

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()


async def _nothing(_session: EmbeddedSession) -> None:
    """A ping says only that somebody is there."""


def _give(answer: asyncio.Future[Any], result: object, error: StoreError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
