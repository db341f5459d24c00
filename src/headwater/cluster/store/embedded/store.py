"""A metadata store inside this process: the node tree, a journal, and one queue in front of both.

The rounds. Operations are served in the order in which they come. All the changes that wait at the
same time make one round: they are applied to the tree one after the other, committed to the journal
together, and answered when that commit is durable; so many waiting writers share one fsync. A read
never falls into a round: it waits for the commit in front of it, hence nobody sees a state that a
crash, or a commit that fails, could take back. As long as nothing waits, a read is answered at
once.

If the journal cannot commit, the round is undone in the tree and every writer in it hears why; the
store goes on, because what it then holds is again what the journal holds.

Watches are called and answers given in the order of the operations, from the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

from headwater.base.checks import check
from headwater.base.clocks import Clock
from headwater.cluster.store.embedded.journal import Journal, NodeRow
from headwater.cluster.store.embedded.node_tree import Applied, NodeTree
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.watches import Watches

T = TypeVar("T")


class EmbeddedConnector:
    """A `StoreConnector`: sessions with a store of this process, which it closes if it owns it."""

    def __init__(self, store: EmbeddedStore, *, is_owner: bool = True) -> None:
        self._store = store
        self._is_owner = is_owner
        self._sessions: list[EmbeddedSession] = []

    async def connect(self) -> EmbeddedSession:
        session = self._store.connect()
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        if self._is_owner:
            await self._store.close()


class _Waiting(NamedTuple):
    """An operation in the queue: a call on the tree, and who waits for what it returns."""

    call: Callable[[], Any]
    answer: asyncio.Future[Any]
    is_write: bool


class EmbeddedStore:
    """The store that the sessions of this process share."""

    def __init__(self, tree: NodeTree, journal: Journal, clock: Clock) -> None:
        self.tree = tree
        self.watches = Watches()
        self._journal = journal
        self._clock = clock
        self._queue: deque[_Waiting] = deque()
        #: The operations that left the queue and are not answered.
        self._round: list[_Waiting] = []
        #: An error of this program, after which the tree cannot be trusted.
        self._fault: Exception | None = None
        self._rounds: asyncio.Task[None] | None = None
        self._sessions: dict[int, EmbeddedSession] = {}
        self._last_session_id = 0
        #: How often the journal was asked to commit.
        self.commit_count = 0

    @classmethod
    async def open(cls, journal: Journal, clock: Clock) -> Self:
        """Load what the journal holds; if that fails, the journal is closed."""
        try:
            content = await journal.load()
            return cls(NodeTree(content.rows, content.transaction_id), journal, clock)
        except BaseException:
            await journal.close()
            raise

    def connect(self) -> EmbeddedSession:
        """Begin a session."""
        self._last_session_id += 1
        session = EmbeddedSession(self, self._last_session_id)
        self._sessions[session.session_id] = session
        return session

    async def expire(self, session_id: int) -> None:
        """End a session as if its client had fallen silent."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        session.is_over = True
        self.watches.drop_session(session_id)
        # The journal knows nothing of ephemeral nodes, so this needs no round, and cannot fail.
        await self.read(lambda: self._end_session(session_id))
        session.expired()

    def _end_session(self, session_id: int) -> None:
        applied = self.tree.end_session(session_id, self.now_ms())
        check(not applied.changes, "the end of a session must not concern the journal")
        self._call_watches(applied)

    async def close(self) -> None:
        """End all sessions and close the journal; what was answered before is durable."""
        for session_id in list(self._sessions):
            await self.expire(session_id)
        while self._rounds is not None:
            await asyncio.shield(self._rounds)
        await self._journal.close()

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    async def read(self, call: Callable[[], T]) -> T:
        """What `call` finds in the tree when all earlier operations are durable."""
        if self._rounds is None and self._fault is None:
            return call()
        result: T = await self._enqueue(call, is_write=False)
        return result

    async def write(self, call: Callable[[], Applied]) -> Applied:
        """Let `call` change the tree, and return when the change is durable."""
        applied: Applied = await self._enqueue(call, is_write=True)
        return applied

    def _enqueue(self, call: Callable[[], Any], *, is_write: bool) -> asyncio.Future[Any]:
        if self._fault is not None:
            raise self._fault
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._queue.append(_Waiting(call, answer, is_write))
        if self._rounds is None:
            self._rounds = loop.create_task(self._serve())
        return answer

    async def _serve(self) -> None:
        try:
            while self._queue:
                if self._queue[0].is_write:
                    await self._serve_writes()
                else:
                    _give(self._queue[0].answer, *_attempt(self._queue.popleft().call))
        except Exception as error:
            self._fault = error
            for waiting in (*self._round, *self._queue):
                _give(waiting.answer, None, error)
            self._queue.clear()
        finally:
            self._rounds = None

    async def _serve_writes(self) -> None:
        """One round: apply, commit, answer."""
        outcomes: list[tuple[Applied | None, Exception | None]] = []
        changes: dict[str, NodeRow | None] = {}
        while self._queue and self._queue[0].is_write:
            self._round.append(self._queue.popleft())
            applied, error = _attempt(self._round[-1].call)
            outcomes.append((applied, error))
            if applied is not None:
                changes |= applied.changes
        failure = await self._commit(changes)
        if failure is not None:
            for applied, _ in reversed(outcomes):
                if applied is not None:
                    self.tree.undo(applied)
        for waiting, (applied, error) in zip(self._round, outcomes, strict=True):
            if failure is None and applied is not None:
                self._call_watches(applied)
            # A refusal may rest on a change of the same round that was undone.
            _give(waiting.answer, applied, failure or error)
        self._round.clear()

    def _call_watches(self, applied: Applied) -> None:
        loop = asyncio.get_running_loop()
        for watch, event in self.watches.take(applied.events):
            loop.call_soon(watch, event)

    async def _commit(self, changes: dict[str, NodeRow | None]) -> Exception | None:
        if not changes:
            return None
        self.commit_count += 1
        try:
            await self._journal.commit(changes, self.tree.transaction_id)
        except Exception as error:
            return error
        return None


def _attempt(call: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def _give(answer: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    """Answer unless whoever asked has gone."""
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
