"""The simulated metadata store: an embedded one outside of all brokers, which outlives them all.

It stands for a ZooKeeper ensemble that never fails. Brokers reach it through connections that take
time, break and are cut off (`connection`); see `session` for their side. A session of
which nothing was heard for its timeout is ended, however alive its broker may be, and so may any
session be ended by whoever drives the simulation.

Every change of a node that is not ephemeral is told to `observers` when it is made.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

from headwater.base.clocks import Clock
from headwater.cluster.store.embedded.journal import Changes, NullJournal
from headwater.cluster.store.embedded.node_tree import NodeTree
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import SessionExpiredError, StoreError
from headwater.sim.network.network import SimulatedNetwork
from headwater.sim.store.connection import Message, StoreConnection

Observer = Callable[[Changes], None]
#: What a client wants done with its session, and who is told what came of it.
Work = Callable[[EmbeddedSession], Awaitable[Any]]
Answer = Callable[[Any, StoreError | None], None]


class _ObservedJournal(NullJournal):
    def __init__(self) -> None:
        self.observers: list[Observer] = []

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        for observer in self.observers:
            observer(changes)


class ServedSession:
    """A session as the store knows it."""

    def __init__(
        self, session: EmbeddedSession, connection: StoreConnection, timeout_s: float, now_s: float
    ) -> None:
        self.session = session
        self.connection = connection
        self.timeout_s = timeout_s
        self.heard_s = now_s


class StoreService:
    def __init__(self, network: SimulatedNetwork, clock: Clock) -> None:
        journal = _ObservedJournal()
        self.store = EmbeddedStore(NodeTree(), journal, clock)
        self.network = network
        self.observers = journal.observers
        self.expired_count = 0
        self._sessions: dict[int, ServedSession] = {}
        # What the store does belongs to no broker.
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[None]] = set()

    def session_ids_of(self, host: str) -> list[int]:
        """The sessions that are open for a host's processes, dead ones among them."""
        return [
            session_id
            for session_id, served in self._sessions.items()
            if served.connection.process.host == host
        ]

    def expire(self, session_id: int) -> None:
        """End a session; its client learns of it when it is heard of again."""
        served = self._sessions.pop(session_id, None)
        if served is None:
            return
        self.expired_count += 1
        self.network.trace.note("store", f"session {session_id} is over")
        served.connection.is_broken = True
        self._start(self.store.expire(session_id))

    # -- what clients send -----------------------------------------------------------------------

    def begin(self, connection: StoreConnection, timeout_s: float, answer: Answer) -> None:
        """A client wants a session."""
        session = self.store.connect()
        self._sessions[session.session_id] = served = ServedSession(
            session, connection, timeout_s, self._now_s
        )
        self._note(connection, f"begins session {session.session_id}")
        self._watch_silence(session.session_id, served)
        connection.send_to_client(Message(lambda: answer(session.session_id, None)))

    def resume(self, session_id: int, connection: StoreConnection, answer: Answer) -> None:
        """A client is back with another connection; the answer says whether in time."""
        served = self._sessions.get(session_id)
        self._note(connection, f"is back with session {session_id}, alive: {served is not None}")
        connection.send_to_client(Message(lambda: answer(served is not None, None)))
        if served is not None:
            events = served.connection.undelivered_events()
            served.connection = connection
            served.heard_s = self._now_s
            for event in events:
                connection.send_to_client(event)

    def work(
        self, session_id: int, connection: StoreConnection, name: str, work: Work, answer: Answer
    ) -> None:
        """A client wants something done; a connection that was replaced is not heard any more."""
        served = self._sessions.get(session_id)
        if served is None or served.connection is not connection:
            return
        served.heard_s = self._now_s
        self._note(connection, name)
        self._start(self._do(served, work, answer))

    async def _do(self, served: ServedSession, work: Work, answer: Answer) -> None:
        result: Any = None
        error: StoreError | None = None
        try:
            result = await work(served.session)
        except SessionExpiredError:
            return
        except StoreError as refusal:
            error = refusal
        served.connection.send_to_client(Message(lambda: answer(result, error)))

    def tell(self, session_id: int, arrive: Callable[[], None]) -> None:
        """Send the event of a watch to a session's client."""
        served = self._sessions.get(session_id)
        if served is not None:
            served.connection.send_to_client(Message(arrive, is_event=True))

    # -- silence ---------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float:
        return self.network.loop.time()

    def _watch_silence(self, session_id: int, served: ServedSession) -> None:
        if self._sessions.get(session_id) is not served:
            return
        left_s = served.heard_s + served.timeout_s - self._now_s
        if left_s <= 0:
            self.expire(session_id)
        else:
            self.network.soon(left_s + 0.001, self._watch_silence, session_id, served)

    def _note(self, connection: StoreConnection, event: str) -> None:
        self.network.trace.note("store", f"{connection.process.host} {event}")

    def _start(self, work: Any) -> None:
        task = self.network.loop.create_task(work, context=self._context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
