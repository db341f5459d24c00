"""What a broker registers is what the others read."""

import asyncio
from collections.abc import Sequence

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers.registration import (
    load_brokers,
    load_present_brokers,
    load_return_marks,
    register_broker,
)
from headwater.cluster.identity import prepare_store
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import UncertainWriteError
from headwater.cluster.store.metadata_store import Create, Delete, Operation, Result, Watch
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import open_in_memory

BROKER = BrokerInfo(
    7,
    (
        EndpointInfo("PLAINTEXT", "host.example", 9092),
        EndpointInfo("INTERNAL_1", "::1", 19092),
        EndpointInfo("DIALLED", "", 0),
    ),
    "rack-a",
    log_dirs=("/a", "/b"),
    cordoned_log_dirs=("/b",),
)


@run_async
async def test_a_registration_is_read_back_and_goes_with_the_session() -> None:
    store = await open_in_memory()
    session, other = store.connect(), store.connect()
    await prepare_store(session)
    registered = await register_broker(session, BROKER, 5)
    bare = await register_broker(other, BrokerInfo(2, ()), 5)
    assert registered == BROKER._replace(broker_epoch=registered.broker_epoch)
    assert bare.broker_epoch > registered.broker_epoch > 0
    assert await load_brokers(other) == {2: bare, 7: registered}
    with pytest.raises(KafkaError) as caught:
        await register_broker(other, BROKER, 6)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await session.close()
    assert await load_brokers(other) == {2: bare}
    again = await register_broker(other, BROKER, 7)
    assert again.broker_epoch > registered.broker_epoch


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("3", b""),
        ("3", b"{}"),
        ("3", b"[1]"),
        ("3", b'{"endpoints":["nonsense"]}'),
        ("3", b'{"endpoints":["A://host:70000"]}'),
        ("3", b'{"endpoints":[],"rack":7}'),
        ("3", b'{"endpoints":[],"log_dirs":7}'),
        ("3", b'{"endpoints":[],"log_dirs":"data"}'),
        ("3", b'{"endpoints":[],"cordoned_log_dirs":[7]}'),
        ("03", b'{"endpoints":[]}'),
        ("three", b'{"endpoints":[]}'),
        ("3000000000", b'{"endpoints":[]}'),
    ],
)
@run_async
async def test_a_registration_that_is_none_is_left_out(
    name: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    session = (await open_in_memory()).connect()
    await prepare_store(session)
    registered = await register_broker(session, BROKER, 5)
    await session.create(f"/brokers/ids/{name}", data)
    assert await load_brokers(session) == {7: registered}
    [line] = caplog.messages
    assert f"/brokers/ids/{name} " in line


@run_async
async def test_a_mark_of_no_broker_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    session = (await open_in_memory()).connect()
    await prepare_store(session)
    await session.create("/brokers/unclean/three", b"")
    assert await load_return_marks(session) == {}
    [line] = caplog.messages
    assert "/brokers/unclean/three" in line


async def _marked(session: EmbeddedSession) -> tuple[set[int], set[int]]:
    marks = await load_return_marks(session)
    return set(marks), {broker_id for broker_id, mark in marks.items() if mark.is_unclean}


async def _marks(session: EmbeddedSession) -> list[str]:
    return await session.children("/brokers/unclean")


@run_async
async def test_the_mark_of_an_unclean_return_comes_with_the_registration_and_stays() -> None:
    store = await open_in_memory()
    observer, first = store.connect(), store.connect()
    await prepare_store(observer)
    await register_broker(first, BROKER, 5)
    assert await _marks(observer) == []
    # Nobody else's registration leaves a mark, not even one that is refused.
    with pytest.raises(KafkaError):
        await register_broker(observer, BROKER, 5, is_unclean=True)
    assert await _marks(observer) == []
    for _ in range(2):
        # The second time the mark of the first is still there.
        await first.close()
        first = store.connect()
        registered = await register_broker(first, BROKER, 6, is_unclean=True)
        assert await _marked(observer) == ({7}, {7})
        assert await load_brokers(observer) == {7: registered}
    await first.close()
    assert await _marked(observer) == ({7}, {7})


@run_async
async def test_a_mark_says_what_the_worst_of_the_lives_lacked() -> None:
    store = await open_in_memory()
    observer = store.connect()
    await prepare_store(observer)
    lives: list[tuple[bool, set[int]]] = [(False, set()), (True, {7}), (False, {7}), (True, {7})]
    for is_unclean, unclean in lives:
        session = store.connect()
        await register_broker(session, BROKER, 5, is_unclean=is_unclean, is_restarted=True)
        assert await _marked(observer) == ({7}, unclean)
        await session.close()
    await observer.set("/brokers/unclean/7", b"who knows")
    assert await _marked(observer) == ({7}, {7})
    await observer.delete("/brokers/unclean/7")
    await register_broker(store.connect(), BROKER, 5)
    assert await _marked(observer) == (set(), set())


class _RacingSession(EmbeddedSession):
    """The mark is removed and put back, behind the back of a registration."""

    moves = 0

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if self.moves:
            self.moves -= 1
            marks = await self.children("/brokers/unclean")
            change = Delete("/brokers/unclean/7") if marks else Create("/brokers/unclean/7", b"")
            await super().multi([change])
        return await super().multi(operations)


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
@run_async
async def test_a_mark_that_comes_and_goes_meanwhile_does_not_stop_a_registration(
    moves: int,
) -> None:
    store = await open_in_memory()
    session = _RacingSession(store, session_id=99)
    await prepare_store(session)
    session.moves = moves
    registered = await register_broker(session, BROKER, 5, is_unclean=True)
    assert await load_brokers(session) == {7: registered}
    assert await _marked(session) == ({7}, {7})


@run_async
async def test_whoever_comes_back_early_waits_for_the_end_of_its_last_life() -> None:
    store = await open_in_memory()
    old, new = store.connect(), store.connect()
    await prepare_store(old)
    before = await register_broker(old, BROKER, 5)
    waiting = asyncio.create_task(register_broker(new, BROKER, 6, wait_s=60.0))
    for _ in range(20):
        await asyncio.sleep(0)
    # That the node changes is not its end.
    await old.set("/brokers/ids/7", (await old.get("/brokers/ids/7")).data)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    await store.expire(old.session_id)
    after = await asyncio.wait_for(waiting, 20)
    assert after.broker_epoch > before.broker_epoch
    third = store.connect()
    with pytest.raises(KafkaError, match="id 7") as caught:
        await register_broker(third, BROKER, 7, wait_s=0.02)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


class _DeafSession(EmbeddedSession):
    """Does a write, or does not, and cannot tell which."""

    def __init__(self, store: EmbeddedStore, session_id: int, fates: list[bool]) -> None:
        super().__init__(store, session_id)
        self.fates = fates

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if not self.fates:
            return await super().multi(operations)
        if self.fates.pop():
            await super().multi(operations)
        raise UncertainWriteError(operations[0].path)


@pytest.mark.parametrize("fates", [[True], [False], [True, False], [False, False]])
@run_async
async def test_a_registration_that_was_not_heard_of_is_looked_for(fates: list[bool]) -> None:
    store = await open_in_memory()
    observer = store.connect()
    await prepare_store(observer)
    session = _DeafSession(store, 99, list(fates))
    registered = await register_broker(session, BROKER, 5, is_unclean=True)
    assert await load_brokers(observer) == {7: registered}
    assert await _marked(observer) == ({7}, {7})


class _WatchedSession(EmbeddedSession):
    """A broker comes back while the others are being read."""

    comings: int = 0

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names = await super().children(path, watch)
        if self.comings:
            self.comings -= 1
            session = self._store.connect()
            newcomer = BrokerInfo(self.comings, ())
            await register_broker(session, newcomer, 5, is_restarted=True)
        return names


@pytest.mark.parametrize("comings", range(8))
@run_async
async def test_brokers_and_their_marks_are_those_of_one_moment(comings: int) -> None:
    session = _WatchedSession(await open_in_memory(), session_id=99)
    await prepare_store(session)
    session.comings = comings
    present = await load_present_brokers(session)
    assert present.brokers.keys() == present.marks.keys()
    assert session.comings == 0 or len(present.brokers) < comings


@run_async
async def test_a_mark_that_is_left_anew_is_not_the_same_mark() -> None:
    store = await open_in_memory()
    observer, first, second = store.connect(), store.connect(), store.connect()
    await prepare_store(observer)
    await register_broker(first, BROKER, 5, is_restarted=True)
    before = (await load_return_marks(observer))[7]
    await first.close()
    await register_broker(second, BROKER, 5, is_restarted=True)
    assert (await load_return_marks(observer))[7].version == before.version + 1
