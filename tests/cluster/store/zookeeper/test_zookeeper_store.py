"""What becomes of operations and watches when the line to ZooKeeper is cut, closed or held."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from headwater.base.errors import KafkaError
from headwater.cluster.store.errors import (
    AccessDeniedError,
    BadVersionError,
    SessionExpiredError,
    StoreUnreachableError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import (
    Create,
    Node,
    Set,
    WatchEvent,
    WatchKind,
)
from headwater.cluster.store.zookeeper.connector import Digest, ZooKeeperConnector
from headwater.cluster.store.zookeeper.session import IN_FLIGHT_MAX
from headwater.cluster.store.zookeeper.store import ZooKeeperStore
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import end_session
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.fakes.peers.store_line import StoreLine

LIMIT_S = 60.0


class Stores:
    """A store behind a line, another one that sees all from outside, and the line."""

    def __init__(self, line: StoreLine, chroot: str) -> None:
        self.line = line
        self.chroot = chroot
        self.connectors: list[ZooKeeperConnector] = []

    async def connect(self, session_timeout_ms: int = 10_000) -> ZooKeeperStore:
        return await self.connector(session_timeout_ms).connect()

    def connector(self, session_timeout_ms: int = 10_000) -> ZooKeeperConnector:
        connector = ZooKeeperConnector(
            self.line.address + self.chroot, session_timeout_ms=session_timeout_ms
        )
        self.connectors.append(connector)
        return connector

    async def connect_outside(self) -> ZooKeeperStore:
        connector = ZooKeeperConnector(shared_zookeeper().address + self.chroot)
        self.connectors.append(connector)
        return await connector.connect()


@asynccontextmanager
async def stores() -> AsyncIterator[Stores]:
    async with asyncio.timeout(2 * LIMIT_S), StoreLine(shared_zookeeper().address) as line:
        both = Stores(line, fresh_chroot())
        try:
            yield both
        finally:
            line.open()
            line.release()
            await asyncio.gather(*(connector.close() for connector in both.connectors))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def until_data(store: ZooKeeperStore, path: str, data: bytes) -> None:
    async with asyncio.timeout(LIMIT_S):
        while (await store.get(path)).data != data:
            await asyncio.sleep(0.01)


@run_async
async def test_a_read_is_asked_again_when_the_connection_breaks() -> None:
    async with stores() as both:
        store = await both.connect()
        await store.create("/a", b"1")
        session_id = store.session_id
        both.line.hold_answers()
        reads = [asyncio.create_task(store.get("/a")) for _ in range(3 * IN_FLIGHT_MAX)]
        many = asyncio.create_task(store.get_many(["/a", "/missing"]))
        names = asyncio.create_task(store.children("/"))
        await asyncio.sleep(0.1)
        assert not any(read.done() for read in reads)
        both.line.cut()
        assert {node.data for node in await asyncio.gather(*reads)} == {b"1"}
        assert [node and node.data for node in await many] == [b"1", None]
        assert await names == ["a"]
        assert store.session_id == session_id
        assert both.line.connection_count == 2


@run_async
async def test_a_change_whose_answer_is_lost_is_uncertain_and_was_made() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        await store.create("/a", b"0")
        both.line.hold_answers()
        writes = [
            asyncio.create_task(store.set("/a", b"1", 0)),
            asyncio.create_task(store.create("/b-", b"", sequence=True, ephemeral=True)),
            asyncio.create_task(store.multi([Create("/c", b""), Set("/a", b"2", 1)])),
            asyncio.create_task(store.delete("/c")),
        ]
        await until_data(outside, "/a", b"2")
        async with asyncio.timeout(LIMIT_S):
            while await outside.exists("/c") is not None:
                await asyncio.sleep(0.01)
        both.line.cut()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [UncertainWriteError] * 4
        assert (await store.get("/a")).data == b"2"
        # The session goes on, so what it created is still its own.
        assert len(await store.children("/")) == 2


@run_async
async def test_a_change_that_never_left_is_uncertain_and_was_not_made() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        await store.create("/a", b"0")
        both.line.hold_requests()
        write = asyncio.create_task(store.set("/a", b"1", 0))
        await asyncio.sleep(0.1)
        both.line.cut()
        with pytest.raises(UncertainWriteError, match="/a"):
            await write
        assert (await outside.get("/a")).version == 0
        assert await store.set("/a", b"1", 0) == 1


@run_async
async def test_what_is_asked_without_a_connection_waits_for_one_and_keeps_its_order() -> None:
    async with stores() as both:
        store = await both.connect()
        await store.create("/a", b"0")
        both.line.close()
        await until(lambda: not store.is_connected)
        asked = [
            asyncio.create_task(store.set("/a", b"1", 0)),
            asyncio.create_task(store.get("/a")),
            asyncio.create_task(store.set("/a", b"2", 0)),
            asyncio.create_task(store.multi([Set("/a", b"3", 1)])),
        ]
        await asyncio.sleep(0.2)
        assert not any(task.done() for task in asked)
        both.line.open()
        version, node, refused, results = await asyncio.gather(*asked, return_exceptions=True)
        assert (version, results) == (1, [2])
        assert isinstance(node, Node) and node.data == b"1"
        assert isinstance(refused, BadVersionError)


@run_async
async def test_many_requests_are_under_way_at_once() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        await store.create("/a", b"")
        both.line.hold_answers()
        writes = [asyncio.create_task(store.set("/a", b"%d" % n, n)) for n in range(IN_FLIGHT_MAX)]
        await until_data(outside, "/a", b"%d" % (IN_FLIGHT_MAX - 1))
        assert not any(write.done() for write in writes)
        both.line.release()
        assert await asyncio.gather(*writes) == list(range(1, IN_FLIGHT_MAX + 1))


@run_async
async def test_watches_hear_what_happened_while_there_was_no_connection() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        for path in ("/same", "/changed", "/deleted", "/parent", "/quiet", "/ended"):
            await outside.create(path, b"")
        fired: list[WatchEvent] = []
        for path in ("/same", "/changed", "/deleted"):
            await store.get(path, fired.append)
        await store.exists("/created", fired.append)
        await store.exists("/never", fired.append)
        for path in ("/parent", "/quiet", "/ended"):
            await store.children(path, fired.append)
        both.line.close()
        await until(lambda: not store.is_connected)
        await outside.set("/changed", b"1")
        await outside.delete("/deleted")
        await outside.create("/created", b"")
        await outside.create("/parent/child", b"")
        await outside.delete("/ended")
        both.line.open()
        await until(lambda: len(fired) >= 5)
        missed = {
            (WatchKind.CHANGED, "/changed"),
            (WatchKind.DELETED, "/deleted"),
            (WatchKind.CREATED, "/created"),
            (WatchKind.CHILDREN, "/parent"),
            (WatchKind.DELETED, "/ended"),
        }
        assert set(fired) == missed and len(fired) == 5
        # The others still wait, with the server that the session is connected to now.
        await outside.set("/same", b"1")
        await outside.create("/never", b"")
        await outside.create("/quiet/child", b"")
        await until(lambda: len(fired) >= 8)
        assert set(fired[5:]) == {
            (WatchKind.CHANGED, "/same"),
            (WatchKind.CREATED, "/never"),
            (WatchKind.CHILDREN, "/quiet"),
        }


async def _note(store: ZooKeeperStore, order: list[object]) -> None:
    order.append((await store.get("/a")).data)


@run_async
async def test_a_missed_watch_comes_before_an_answer_that_shows_the_change() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        await store.create("/a", b"")
        for round_number in range(10):
            new = b"%d" % round_number
            order: list[object] = []
            await store.get("/a", order.append)
            both.line.hold_answers()
            reads = [asyncio.create_task(_note(store, order)) for _ in range(5)]
            await outside.set("/a", new)
            both.line.cut()
            await asyncio.gather(*reads)
            assert order == [(WatchKind.CHANGED, "/a"), *[new] * 5]


@run_async
async def test_a_session_that_zookeeper_ended_is_over_and_another_one_can_begin() -> None:
    async with stores() as both:
        connector = both.connector()
        store, outside = await connector.connect(), await both.connect_outside()
        await store.create("/mine", b"", ephemeral=True)
        expired: list[int] = []
        store.on_expired(lambda: expired.append(store.session_id))
        fired: list[WatchEvent] = []
        await store.get("/mine", fired.append)
        await end_session(store)
        await until(lambda: expired)
        assert await outside.exists("/mine") is None
        for attempt in (store.get("/mine"), store.create("/b", b""), store.get_many([])):
            with pytest.raises(SessionExpiredError):
                await attempt
        again = await connector.connect()
        assert again.session_id != store.session_id
        await again.create("/mine", b"", ephemeral=True)
        # kazoo began no session of its own: each connection but the broken one is one of ours.
        assert both.line.connection_count <= 3
        await store.close()
        assert (expired, fired) == ([store.session_id], [])
        assert await outside.exists("/mine") is not None


@run_async
async def test_who_is_cut_off_for_longer_than_the_session_knows_that_it_is_over() -> None:
    async with stores() as both:
        connector = both.connector(session_timeout_ms=1_000)
        store, outside = await connector.connect(), await both.connect_outside()
        await store.create("/mine", b"", ephemeral=True)
        expired: list[bool] = []
        store.on_expired(lambda: expired.append(True))
        both.line.close()
        await until(lambda: not store.is_connected)
        read = asyncio.create_task(store.get("/mine"))
        write = asyncio.create_task(store.create("/b", b""))
        await until(lambda: expired)
        for waiting in (read, write):
            with pytest.raises(SessionExpiredError):
                await waiting
        connecting = asyncio.create_task(connector.connect())
        await asyncio.sleep(0.1)
        assert not connecting.done()
        both.line.open()
        again = await connecting
        assert await again.exists("/mine") is None
        await again.create("/mine", b"", ephemeral=True)
        assert (await outside.get("/mine")).ephemeral_owner == again.session_id
        assert expired == [True]


@run_async
async def test_a_session_that_outlived_our_patience_is_closed_before_the_next_begins() -> None:
    async with stores() as both:
        connector = both.connector(session_timeout_ms=30_000)
        store, outside = await connector.connect(), await both.connect_outside()
        # So the server knows the session for much longer than we do.
        store._session.timeout_s = 0.3
        await store.create("/mine", b"", ephemeral=True)
        expired = asyncio.Event()
        store.on_expired(expired.set)
        both.line.close()
        await expired.wait()
        assert await outside.exists("/mine") is not None
        both.line.open()
        await connector.connect()
        assert await outside.exists("/mine") is None


@run_async
async def test_closing_ends_the_session_at_once_and_calls_nothing() -> None:
    async with stores() as both:
        store, outside = await both.connect(), await both.connect_outside()
        expired: list[bool] = []
        store.on_expired(lambda: expired.append(True))
        write = asyncio.create_task(store.create("/mine", b"", ephemeral=True))
        await asyncio.sleep(0)
        await store.close()
        assert await write == "/mine"
        assert await outside.exists("/mine") is None
        await store.close()
        assert expired == []


@run_async
async def test_a_change_larger_than_a_packet_is_uncertain_and_the_session_goes_on() -> None:
    async with stores() as both:
        store = await both.connect()
        with pytest.raises(UncertainWriteError):
            await store.multi([Create("/a", bytes(700_000)), Create("/b", bytes(700_000))])
        assert await store.children("/") == []
        await store.create("/a", bytes(700_000))


@run_async
async def test_a_wrong_address_is_told_in_a_sentence_and_in_time() -> None:
    async with StoreLine(shared_zookeeper().address) as line:
        line.close()
        for address in (line.address, "no-such-host.invalid:2181", "127.0.0.1:1/path"):
            connector = ZooKeeperConnector(address, connection_timeout_ms=300)
            with pytest.raises(
                StoreUnreachableError, match=r"did not answer within 0\.3 s"
            ) as told:
                await connector.connect()
            assert address.partition("/")[0] in str(told.value)
            await connector.close()


@run_async
async def test_without_a_limit_it_waits_for_the_store(caplog: pytest.LogCaptureFixture) -> None:
    async with stores() as both:
        both.line.close()
        connecting = asyncio.create_task(both.connect())
        await asyncio.sleep(0.3)
        assert not connecting.done()
        both.line.open()
        await (await connecting).create("/a", b"")
        assert caplog.records == []


@pytest.mark.parametrize("address", ["", "host:port", "host:2181/a//b", "host:99999", "h:1,:2"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(KafkaError, match="is not the address of a ZooKeeper"):
        ZooKeeperConnector(address)


@run_async
async def test_clusters_with_paths_of_their_own_do_not_meet() -> None:
    server, root = shared_zookeeper().address, fresh_chroot()
    connectors = [
        ZooKeeperConnector(f"{server}{root}{path}") for path in ("/x/deep/", "/x/deep", "/y", "")
    ]
    first, same, other, whole = await asyncio.gather(*(each.connect() for each in connectors))
    await first.create("/a", b"1")
    fired: list[WatchEvent] = []
    await same.get("/a", fired.append)
    await same.children("/", fired.append)
    await first.multi([Set("/a", b"2"), Create("/b-", b"", sequence=True)])
    await until(lambda: len(fired) == 2)
    assert set(fired) == {(WatchKind.CHANGED, "/a"), (WatchKind.CHILDREN, "/")}
    assert await same.children("/") == ["a", "b-0000000001"]
    assert await other.children("/") == []
    assert (await whole.get("/x/deep/a")).data == b"2"
    await asyncio.gather(*(each.close() for each in connectors))


@run_async
async def test_only_who_knows_the_password_may_use_what_is_protected() -> None:
    address = shared_zookeeper().address + fresh_chroot()
    digests = (None, Digest("headwater", "secret"), Digest("headwater", "secret"), Digest("x", "y"))
    # The first makes the path itself, which is therefore open to all.
    connectors = [ZooKeeperConnector(address, digest=each, set_acl=True) for each in digests]
    nobody, owner, friend, stranger = [await each.connect() for each in connectors]
    await owner.create("/a", b"1")
    await owner.multi([Create("/b", b"2")])
    assert [node and node.data for node in await friend.get_many(["/a", "/b"])] == [b"1", b"2"]
    for store in (stranger, nobody):
        for attempt in (store.get("/a"), store.set("/b", b""), store.create("/a/c", b"")):
            with pytest.raises(AccessDeniedError):
                await attempt
        with pytest.raises(AccessDeniedError, match="/b"):
            await store.multi([Set("/b", b"")])
    connectors += [
        ZooKeeperConnector(f"{address}/closed", digest=each, set_acl=True) for each in digests
    ]
    await connectors[5].connect()
    for refused in (connectors[4], connectors[7]):
        with pytest.raises(AccessDeniedError):
            await refused.connect()
    await connectors[6].connect()
    await asyncio.gather(*(each.close() for each in connectors))
