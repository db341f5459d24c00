"""Rounds, failing commits and sessions of the embedded store."""

import asyncio
from collections.abc import Callable

import pytest

from headwater.base.checks import InvariantError
from headwater.base.clocks import ManualClock
from headwater.cluster.store.embedded.journal import Changes
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import NodeExistsError, SessionExpiredError, StoreWriteError
from headwater.cluster.store.metadata_store import Create, WatchEvent, WatchKind
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import DictJournal


class GatedJournal(DictJournal):
    """Commits only when it is let, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.commits: list[Changes] = []

    async def commit(self, changes: Changes, transaction_id: int) -> None:
        self.commits.append(changes)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        await super().commit(changes, transaction_id)


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


async def _open() -> tuple[EmbeddedStore, GatedJournal]:
    journal = GatedJournal()
    return await EmbeddedStore.open(journal, ManualClock(wall_ms=77)), journal


@run_async
async def test_changes_that_wait_together_share_one_commit() -> None:
    store, journal = await _open()
    sessions = [store.connect() for _ in range(4)]
    journal.gate.clear()
    first = asyncio.create_task(sessions[0].create("/first", b""))
    await _until(lambda: len(journal.commits) == 1)
    rest = [
        asyncio.create_task(session.create(f"/{number}-{again}", b""))
        for number, session in enumerate(sessions)
        for again in range(5)
    ]
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done() and not any(task.done() for task in rest)
    assert len(journal.commits) == 1
    journal.gate.set()
    await asyncio.gather(first, *rest)
    assert len(journal.commits) == 2
    # Twenty nodes, and the root that counts its children.
    assert len(journal.commits[1]) == 21
    assert len(await sessions[0].children("/")) == 21
    assert (await sessions[0].get("/first")).created_ms == 77


@run_async
async def test_nobody_sees_a_change_before_it_is_durable() -> None:
    store, journal = await _open()
    writer, reader = store.connect(), store.connect()
    await writer.create("/a", b"old")
    journal.gate.clear()
    write = asyncio.create_task(writer.set("/a", b"new"))
    await _until(lambda: len(journal.commits) == 2)
    read = asyncio.create_task(reader.get("/a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not read.done()
    journal.failure = StoreWriteError("The disk is full.")
    journal.gate.set()
    assert (await read).data == b"old"
    with pytest.raises(StoreWriteError):
        await write


@run_async
async def test_a_commit_that_fails_is_undone_and_the_store_goes_on() -> None:
    store, journal = await _open()
    session = store.connect()
    await session.create("/a", b"1")
    watched: list[WatchEvent] = []
    await session.get("/a", watched.append)
    journal.failure = StoreWriteError("The disk is full.")
    outcomes = await asyncio.gather(
        session.set("/a", b"2"),
        session.create("/b", b"", ephemeral=True),
        session.create("/b", b""),
        session.multi([Create("/c", b""), Create("/c/d", b"")]),
        return_exceptions=True,
    )
    # The third was refused because of the second, which never happened.
    assert [type(outcome) for outcome in outcomes] == [StoreWriteError] * 4
    assert watched == []
    assert await session.children("/") == ["a"]
    journal.failure = None
    assert await session.set("/a", b"3", 0) == 1
    await session.create("/b", b"")
    with pytest.raises(NodeExistsError):
        await session.create("/b", b"")
    assert watched == [(WatchKind.CHANGED, "/a")]
    reopened = (await EmbeddedStore.open(journal, ManualClock())).connect()
    assert [(await reopened.get(path)).data for path in ("/a", "/b")] == [b"3", b""]


@run_async
async def test_an_error_of_the_program_reaches_who_waits_and_not_only_the_log() -> None:
    store, journal = await _open()
    session = store.connect()
    journal.failure = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        await session.create("/a", b"")
    journal.failure = None
    await session.create("/a", b"")


@run_async
async def test_after_a_fault_of_the_program_the_store_answers_nothing_but_that() -> None:
    store, journal = await _open()
    session = store.connect()
    await session.create("/a", b"")
    journal.failure = StoreWriteError("The disk is full.")
    journal.gate.clear()
    write = asyncio.create_task(session.create("/b", b""))
    await _until(lambda: len(journal.commits) == 2)
    read = asyncio.create_task(session.get("/a"))
    await asyncio.sleep(0)
    store.tree.transaction_id += 1  # So that what is to be undone is not the newest any more.
    journal.gate.set()
    for attempt in (write, read, session.get("/a"), session.create("/c", b"")):
        with pytest.raises(InvariantError):
            await attempt


@run_async
async def test_a_caller_that_goes_away_leaves_its_change_and_disturbs_nobody() -> None:
    store, journal = await _open()
    session = store.connect()
    journal.gate.clear()
    impatient = asyncio.create_task(session.create("/a", b""))
    await _until(lambda: len(journal.commits) == 1)
    patient = asyncio.create_task(session.create("/b", b""))
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    journal.gate.set()
    assert await patient == "/b"
    assert await session.children("/") == ["a", "b"]


@run_async
async def test_closing_waits_for_what_was_asked_before() -> None:
    store, journal = await _open()
    session, other = store.connect(), store.connect()
    journal.gate.clear()
    write = asyncio.create_task(session.create("/a", b""))
    await _until(lambda: len(journal.commits) == 1)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    journal.gate.set()
    await closing
    assert write.done() and await write == "/a"
    assert "/a" in journal.rows
    for each in (session, other):
        with pytest.raises(SessionExpiredError):
            await each.get("/a")


@run_async
async def test_the_end_of_a_session_costs_no_commit() -> None:
    store, _ = await _open()
    session, other = store.connect(), store.connect()
    await session.create("/e", b"", ephemeral=True)
    count = store.commit_count
    await session.close()
    assert store.commit_count == count
    assert await other.exists("/e") is None


@run_async
async def test_a_session_ends_also_while_nothing_can_be_written() -> None:
    store, journal = await _open()
    leaving, staying = store.connect(), store.connect()
    await leaving.create("/e", b"", ephemeral=True)
    seen: list[WatchEvent] = []
    await staying.get("/e", seen.append)
    journal.failure = StoreWriteError("The disk is full.")
    outcomes = await asyncio.gather(
        staying.create("/a", b""),
        leaving.close(),
        staying.create("/b", b""),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [StoreWriteError, type(None), StoreWriteError]
    assert await staying.children("/") == []
    assert seen == [(WatchKind.DELETED, "/e")]


@run_async
async def test_numbers_never_come_again_after_a_restart() -> None:
    store, journal = await _open()
    session = store.connect()
    await session.create("/ids", b"")
    await session.create("/ids/0", b"", ephemeral=True)
    epoch = (await session.get("/ids/0")).creation_id
    first = await session.create("/ids/", b"", sequence=True, ephemeral=True)
    await store.close()
    again = (await EmbeddedStore.open(journal, ManualClock())).connect()
    assert await again.children("/ids") == []
    assert await again.create("/ids/", b"", sequence=True) > first
    await again.create("/ids/0", b"", ephemeral=True)
    assert (await again.get("/ids/0")).creation_id > epoch
