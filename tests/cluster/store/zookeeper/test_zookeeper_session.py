"""A session over a kazoo of the tests' own, which answers, fails and reconnects when it is told."""

import asyncio
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooState
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.protocol.states import ZnodeStat

from headwater.cluster.store.errors import SessionExpiredError, UncertainWriteError
from headwater.cluster.store.metadata_store import WatchEvent, WatchKind
from headwater.cluster.store.zookeeper.handler import LoopHandler, LoopResult
from headwater.cluster.store.zookeeper.requests import ZooKeeperRequests
from headwater.cluster.store.zookeeper.session import IN_FLIGHT_MAX, ZooKeeperSession
from headwater.cluster.store.zookeeper.store import ZooKeeperStore
from tests.support.async_tests import run_async

TIMEOUT_S = 600.0


class Sent(NamedTuple):
    kind: str
    path: str
    result: LoopResult


def stat(transaction: int, version: int = 0) -> ZnodeStat:
    return ZnodeStat(1, transaction, 1, 1, version, 0, 0, 0, 0, 0, transaction)


class FakeKazoo:
    """As much of a KazooClient as a session uses."""

    client_id = (77, b"password")

    def __init__(self, handler: LoopHandler) -> None:
        self._handler = handler
        self._listeners: list[Any] = []
        self.sent: list[Sent] = []
        self.is_stopped = False

    def add_listener(self, listener: Any) -> None:
        self._listeners.append(listener)

    def start_async(self) -> None:
        self.become(KazooState.CONNECTED)

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        pass

    def become(self, state: str) -> None:
        for listener in self._listeners:
            listener(state)

    def lose(self) -> None:
        """The connection breaks, and all that was sent fails with it."""
        while self.sent:
            self.sent.pop(0).result.set_exception(ConnectionLoss())
        self.become(KazooState.SUSPENDED)

    def __getattr__(self, name: str) -> Any:
        kind, _, rest = name.rpartition("_async")
        assert kind and not rest, name

        def send(path: str, *args: object, **kwargs: object) -> LoopResult:
            self.sent.append(Sent(kind, path, self._handler.async_result()))
            return self.sent[-1].result

        return send


class Played(NamedTuple):
    kazoo: FakeKazoo
    handler: LoopHandler
    session: ZooKeeperSession
    store: ZooKeeperStore

    def take(self) -> Sent:
        return self.kazoo.sent.pop(0)


async def begin() -> Played:
    handler = LoopHandler(asyncio.get_running_loop(), 1, TIMEOUT_S)
    kazoo = FakeKazoo(handler)
    requests = ZooKeeperRequests(kazoo, handler, "/base", None)
    session = ZooKeeperSession(kazoo, handler, requests, TIMEOUT_S)
    await session.begin()
    return Played(kazoo, handler, session, ZooKeeperStore(session, requests))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@run_async
async def test_no_more_is_with_kazoo_than_fits_into_its_pipe() -> None:
    played = await begin()
    reads = [asyncio.create_task(played.store.get("/a")) for _ in range(IN_FLIGHT_MAX + 5)]
    await settle()
    assert len(played.kazoo.sent) == IN_FLIGHT_MAX
    for _ in reads:
        sent = played.take()
        assert (sent.kind, sent.path) == ("get", "/base/a")
        sent.result.set((b"1", stat(3)))
        await settle()
    assert {(await read).data for read in reads} == {b"1"}


@run_async
async def test_repeated_reads_keep_their_place_before_later_requests() -> None:
    played = await begin()
    first = [asyncio.create_task(played.store.get(f"/{name}")) for name in "ab"]
    await settle()
    played.kazoo.lose()
    await settle()
    later = asyncio.create_task(played.store.get("/c"))
    await settle()
    assert played.kazoo.sent == []
    played.kazoo.become(KazooState.CONNECTED)
    await settle()
    assert [sent.path for sent in played.kazoo.sent] == ["/base/a", "/base/b", "/base/c"]
    for number in range(3):
        played.take().result.set((b"%d" % number, stat(3)))
    assert [(await read).data for read in (*first, later)] == [b"0", b"1", b"2"]


@run_async
async def test_an_answer_from_before_the_watches_were_restored_is_held_back() -> None:
    played = await begin()
    order: list[object] = []
    reading = asyncio.create_task(played.store.get("/a", order.append))
    await settle()
    played.take().result.set((b"old", stat(3)))
    await reading

    async def read() -> None:
        order.append((await played.store.get("/a")).data)

    straggler = asyncio.create_task(read())
    await settle()
    in_kazoo = played.take()
    # The connection breaks and comes back, while the read lies in kazoo's queue all the time.
    played.kazoo.become(KazooState.SUSPENDED)
    played.kazoo.become(KazooState.CONNECTED)
    in_kazoo.result.set((b"new", stat(9)))
    await settle()
    restoring = played.take()
    assert (restoring.kind, restoring.path) == ("exists", "/base/a")
    assert order == []
    restoring.result.set(stat(9))
    await straggler
    assert order == [WatchEvent(WatchKind.CHANGED, "/a"), b"new"]


@run_async
async def test_restoring_begins_again_when_the_connection_breaks_once_more() -> None:
    played = await begin()
    fired: list[WatchEvent] = []
    leaving = [
        asyncio.create_task(played.store.get("/a", fired.append)),
        asyncio.create_task(played.store.children("/b", fired.append)),
    ]
    await settle()
    played.take().result.set((b"", stat(3)))
    played.take().result.set(([], stat(4)))
    await asyncio.gather(*leaving)
    played.kazoo.lose()
    played.kazoo.become(KazooState.CONNECTED)
    await settle()
    assert [sent.kind for sent in played.kazoo.sent] == ["exists", "get_children"]
    # One is restored; the other one's answer is lost.
    played.take().result.set(stat(3))
    played.kazoo.lose()
    read = asyncio.create_task(played.store.get("/c"))
    await settle()
    played.kazoo.become(KazooState.CONNECTED)
    await settle()
    assert [sent.kind for sent in played.kazoo.sent] == ["exists", "get_children", "get"]
    played.take().result.set(None)
    played.take().result.set_exception(NoNodeError())
    played.take().result.set((b"", stat(5)))
    await read
    assert fired == [(WatchKind.DELETED, "/a"), (WatchKind.DELETED, "/b")]


@run_async
async def test_a_loss_that_is_heard_late_does_not_concern_the_new_connection() -> None:
    played = await begin()
    write = asyncio.create_task(played.store.create("/a", b""))
    await settle()
    late = played.take()
    played.kazoo.become(KazooState.SUSPENDED)
    played.kazoo.become(KazooState.CONNECTED)
    await settle()
    # kazoo passes the outcome of a creation on by one more step than that of a read.
    late.result.set_exception(ConnectionLoss())
    with pytest.raises(UncertainWriteError):
        await write
    again = asyncio.create_task(played.store.set("/a", b""))
    await settle()
    played.take().result.set(stat(3, version=1))
    assert await again == 1


@run_async
async def test_after_the_end_nothing_is_sent_and_no_connection_made() -> None:
    played = await begin()
    expired: list[bool] = []
    played.store.on_expired(lambda: expired.append(True))
    read = asyncio.create_task(played.store.get("/a"))
    await settle()
    played.kazoo.become(KazooState.LOST)
    # In kazoo's thread, before anything has reached the loop.
    with pytest.raises(ConnectionAbortedError, match="the session is over"):
        played.handler.create_connection(address=("127.0.0.1", 1))
    played.take().result.set_exception(ConnectionLoss())
    for attempt in (read, played.store.get("/b")):
        with pytest.raises(SessionExpiredError):
            await attempt
    await played.session.wait_ended()
    assert played.kazoo.is_stopped and played.kazoo.sent == []
    assert expired == [True]


@run_async
async def test_who_gave_up_waiting_has_nothing_sent() -> None:
    played = await begin()
    played.kazoo.become(KazooState.SUSPENDED)
    await settle()
    impatient = asyncio.create_task(played.store.set("/a", b""))
    patient = asyncio.create_task(played.store.set("/b", b""))
    await settle()
    impatient.cancel()
    await settle()
    played.kazoo.become(KazooState.CONNECTED)
    await settle()
    assert [sent.path for sent in played.kazoo.sent] == ["/base/b"]
    played.take().result.set(stat(3, version=1))
    assert await patient == 1
