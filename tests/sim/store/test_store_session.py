import asyncio

import pytest

from headwater.cluster.store.errors import (
    NodeExistsError,
    SessionExpiredError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import Check, Create, Set, WatchEvent, WatchKind
from headwater.sim.network.network import NetworkConditions
from headwater.sim.store.connection import STORE_HOST
from headwater.sim.store.session import LinkedSession
from tests.support.brokers.simulated_store import TIMEOUT_S, StoreStage


def cut(stage: StoreStage, host: str) -> None:
    stage.network.cut(host, STORE_HOST)
    stage.network.cut(STORE_HOST, host)


def test_what_one_broker_writes_another_one_reads() -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        first, second = await stage.connect(one), await stage.connect(other)
        assert first.session_id != second.session_id
        events: list[WatchEvent] = []
        assert await stage.start(other, second.exists("/a", events.append)) is None
        await stage.start(one, first.create("/a", b"1"))
        with pytest.raises(NodeExistsError):
            await stage.start(other, second.create("/a", b"2"))
        # The watch comes before any answer that shows the change.
        assert events == [WatchEvent(WatchKind.CREATED, "/a")]
        await stage.start(one, first.multi([Check("/a", 0), Set("/a", b"3")]))
        assert (await stage.start(other, second.get("/a"))).data == b"3"

    stage.run(run())


def test_a_watch_is_called_also_if_its_event_comes_together_with_the_answer() -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        first, second = await stage.connect(one), await stage.connect(other)
        told: list[object] = []

        async def read() -> None:
            told.append(await second.exists("/a", told.append))

        reading = stage.start(other, read())
        await asyncio.sleep(0)
        other.is_paused = True
        # The read has arrived before this, and its answer waits.
        await asyncio.sleep(TIMEOUT_S / 10)
        await stage.start(one, first.create("/a", b"1"))
        await asyncio.sleep(TIMEOUT_S / 10)
        other.is_paused = False
        other.resume_deliveries()
        await reading
        await asyncio.sleep(0)
        assert told == [None, WatchEvent(WatchKind.CREATED, "/a")]

    stage.run(run())


def test_operations_take_effect_in_their_order_while_the_network_is_bad() -> None:
    stage = StoreStage()
    stage.network.conditions = NetworkConditions(delay_ms_max=300.0, loss_probability=0.003)

    async def run() -> None:
        process = stage.process("one")
        session = await stage.connect(process)

        async def write() -> int:
            """Writes that are sure come in order; those of unknown fate may or may not be there."""
            await until_done(session)
            uncertain_count = 0
            names: list[str] = []
            for _ in range(40):
                writes = [
                    asyncio.ensure_future(session.create("/list/n", b"", sequence=True))
                    for _ in range(5)
                ]
                for each in writes:
                    try:
                        names.append(await each)
                    except UncertainWriteError:
                        uncertain_count += 1
            assert names == sorted(names)
            there = await session.children("/list")
            assert {name.rpartition("/")[2] for name in names} <= set(there)
            assert len(there) <= 200
            return uncertain_count

        uncertain = await stage.start(process, write())
        assert 0 < uncertain < 200

    stage.run(run())


async def until_done(session: LinkedSession) -> None:
    """Create `/list`, whatever becomes of the attempts."""
    while await session.exists("/list") is None:
        try:
            await session.create("/list", b"")
        except (UncertainWriteError, NodeExistsError):
            continue


@pytest.mark.parametrize("is_cautious", [False, True])
def test_a_session_that_is_cut_off_for_long_is_over_for_both_ends(is_cautious: bool) -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        session = await stage.connect(one, is_cautious=is_cautious)
        watcher = await stage.connect(other)
        over: list[float] = []
        session.on_expired(lambda: over.append(stage.loop.time()))
        await stage.start(one, session.create("/a", b"", ephemeral=True))
        gone: list[WatchEvent] = []
        await stage.start(other, watcher.exists("/a", gone.append))
        cut(stage, "one")
        writing = stage.start(one, session.create("/b", b""))
        await asyncio.sleep(TIMEOUT_S * 1.5)
        assert gone == [WatchEvent(WatchKind.DELETED, "/a")]
        assert bool(over) is is_cautious
        with pytest.raises(UncertainWriteError):
            await writing
        stage.network.heal()
        await asyncio.sleep(TIMEOUT_S)
        assert len(over) == 1
        with pytest.raises(SessionExpiredError):
            await stage.start(one, session.get("/"))
        again = await stage.connect(one)
        assert await stage.start(one, again.exists("/b")) is None

    stage.run(run())


def test_a_session_outlives_a_short_cut_and_misses_no_watch() -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        session, writer = await stage.connect(one), await stage.connect(other)
        over: list[int] = []
        session.on_expired(lambda: over.append(1))
        await stage.start(one, session.create("/a", b"", ephemeral=True))
        events: list[WatchEvent] = []
        assert await stage.start(one, session.exists("/b", events.append)) is None
        for _ in range(5):
            cut(stage, "one")
            await asyncio.sleep(TIMEOUT_S * 0.4)
            reading = stage.start(one, session.children("/"))
            stage.network.heal()
            assert "a" in await reading
            await asyncio.sleep(1.0)
        cut(stage, "one")
        await stage.start(other, writer.create("/b", b""))
        await asyncio.sleep(TIMEOUT_S * 0.4)
        assert not events
        stage.network.heal()
        assert await stage.start(one, session.exists("/b")) is not None
        assert events == [WatchEvent(WatchKind.CREATED, "/b")]
        assert not over

    stage.run(run())


def test_a_watch_that_is_left_twice_is_called_once() -> None:
    stage = StoreStage()

    async def run() -> None:
        process = stage.process("one")
        session = await stage.connect(process)
        events: list[WatchEvent] = []
        watch = events.append
        for _ in range(2):
            await stage.start(process, session.exists("/a", watch))
        await stage.start(process, session.create("/a", b""))
        await stage.start(process, session.get("/a"))
        assert len(events) == 1

    stage.run(run())


def test_a_killed_process_keeps_its_nodes_until_the_session_ends() -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        session, watcher = await stage.connect(one), await stage.connect(other)
        await stage.start(one, session.create("/a", b"", ephemeral=True))
        # What has left before the end arrives all the same.
        stage.start(one, session.create("/late", b""))
        await asyncio.sleep(0)
        one.kill()
        await asyncio.sleep(TIMEOUT_S / 2)
        assert await stage.start(other, watcher.children("/")) == ["a", "late"]
        await asyncio.sleep(TIMEOUT_S)
        assert await stage.start(other, watcher.children("/")) == ["late"]
        assert stage.service.session_ids_of("one") == []

    stage.run(run())


def test_a_paused_process_loses_its_session_and_hears_of_it_when_it_goes_on() -> None:
    stage = StoreStage()

    async def run() -> None:
        process = stage.process("one")
        session = await stage.connect(process)
        over: list[float] = []
        session.on_expired(lambda: over.append(stage.loop.time()))
        await stage.start(process, session.create("/a", b"", ephemeral=True))
        stage.loop.pause_process(process)
        await asyncio.sleep(10 * TIMEOUT_S)
        assert not over and stage.service.expired_count == 1
        resumed_s = stage.loop.time()
        stage.loop.resume_process(process)
        await asyncio.sleep(TIMEOUT_S)
        assert len(over) == 1 and over[0] < resumed_s + 1

    stage.run(run())


def test_a_closed_session_takes_its_nodes_with_it_at_once() -> None:
    stage = StoreStage()

    async def run() -> None:
        one, other = stage.process("one"), stage.process("other")
        session, watcher = await stage.connect(one), await stage.connect(other)
        over: list[int] = []
        session.on_expired(lambda: over.append(1))
        await stage.start(one, session.multi([Create("/a", b"", ephemeral=True)]))
        await stage.start(one, session.close())
        assert await stage.start(other, watcher.children("/")) == []
        assert not over
        with pytest.raises(SessionExpiredError):
            await stage.start(one, session.get("/a"))

    stage.run(run())


def test_the_driver_can_end_a_session_whose_client_is_well() -> None:
    stage = StoreStage()

    async def run() -> None:
        process = stage.process("one")
        session = await stage.connect(process)
        over: list[int] = []
        session.on_expired(lambda: over.append(1))
        stage.service.expire(session.session_id)
        await asyncio.sleep(TIMEOUT_S / 3)
        assert over == [1]

    stage.run(run())
