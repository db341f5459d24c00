"""The contract of a metadata store, on every implementation there is."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.cluster.store.errors import (
    BadVersionError,
    InvalidPathError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    StoreError,
)
from headwater.cluster.store.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Node,
    Operation,
    Set,
    WatchEvent,
    WatchKind,
)
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import WORLDS, OpenWorld

on_every_store = pytest.mark.parametrize("open_world", WORLDS.values(), ids=WORLDS.keys())


async def _tree(store: MetadataStore, path: str = "/") -> dict[str, tuple[bytes, int]]:
    """Data and version of every node below `path`; the store's own nodes are left out."""
    found = {}
    for name in await store.children(path):
        if name == "zookeeper":
            continue
        below = f"{path.rstrip('/')}/{name}"
        node = await store.get(below)
        found[below] = (node.data, node.version)
        found |= await _tree(store, below)
    return found


@on_every_store
@run_async
async def test_a_node_is_created_read_changed_and_deleted(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        assert await store.create("/a", b"one") == "/a"
        node = await store.get("/a")
        assert (node.data, node.version, node.ephemeral_owner) == (b"one", 0, 0)
        assert node.created_ms == node.modified_ms > 1_600_000_000_000
        assert await store.set("/a", b"two") == 1
        assert await store.set("/a", b"three", 1) == 2
        changed = await store.get("/a")
        assert (changed.data, changed.version) == (b"three", 2)
        assert changed.created_ms == node.created_ms <= changed.modified_ms
        assert changed.creation_id == node.creation_id
        await store.create("/a/b", b"")
        assert await store.children("/a") == ["b"]
        await store.delete("/a/b", 0)
        await store.delete("/a")
        assert await store.exists("/a") is None
        await store.create("/a", b"again")
        assert (await store.get("/a")).version == 0
        assert (await store.get("/a")).creation_id > node.creation_id


@on_every_store
@run_async
async def test_refusals_name_the_node(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/a", b"")
        await store.create("/a/b", b"")
        refusals: list[tuple[type[StoreError], Operation]] = [
            (NodeExistsError, Create("/a", b"")),
            (NoNodeError, Create("/x/y", b"")),
            (NoNodeError, Set("/x", b"")),
            (NoNodeError, Delete("/x")),
            (NoNodeError, Check("/x")),
            (BadVersionError, Set("/a", b"", 1)),
            (BadVersionError, Delete("/a/b", 1)),
            (BadVersionError, Check("/a", 7)),
            (NotEmptyError, Delete("/a")),
        ]
        before = await _tree(store)
        for error_class, operation in refusals:
            with pytest.raises(error_class) as caught:
                await store.multi([operation])
            assert caught.value.path == operation.path
            assert operation.path in str(caught.value)
        for read in (store.get, store.children):
            with pytest.raises(NoNodeError):
                await read("/x")
        assert await _tree(store) == before


@on_every_store
@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/.", "/a/../b", "/a\0b"])
@run_async
async def test_what_is_no_path_is_refused(open_world: OpenWorld, tmp_path: Path, path: str) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/a", b"")
        with pytest.raises(InvalidPathError):
            await store.create(path, b"")
        with pytest.raises(InvalidPathError):
            await store.exists(path)


@on_every_store
@run_async
async def test_children_are_sorted_and_many_nodes_come_in_the_order_asked(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        for name in ("b", "c", "a"):
            await store.create(f"/{name}", name.encode())
        assert [name for name in await store.children("/") if len(name) == 1] == ["a", "b", "c"]
        nodes = await store.get_many(["/c", "/missing", "/a"])
        assert [None if node is None else node.data for node in nodes] == [b"c", None, b"a"]
        assert await store.get_many([]) == []


@on_every_store
@run_async
async def test_sequence_numbers_only_grow(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/queue", b"")
        paths = [await store.create("/queue/item-", b"", sequence=True) for _ in range(3)]
        await store.delete(paths[-1])
        paths.append(await store.create("/queue/item-", b"", sequence=True))
        paths.append(await store.create("/queue/", b"", sequence=True))
        names = [path.rpartition("/")[2] for path in paths]
        assert [name[:-10] for name in names] == ["item-", "item-", "item-", "item-", ""]
        numbers = [int(name[-10:]) for name in names]
        assert numbers == sorted(set(numbers))


@on_every_store
@run_async
async def test_ephemeral_nodes_go_with_their_session(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        closed, expired, staying = [await world.connect() for _ in range(3)]
        assert len({store.session_id for store in (closed, expired, staying)}) == 3
        await staying.create("/ids", b"")
        for name, store in (("closed", closed), ("expired", expired), ("staying", staying)):
            await store.create(f"/ids/{name}", b"", ephemeral=True)
            node = await staying.get(f"/ids/{name}")
            assert node.ephemeral_owner == store.session_id
        await closed.create("/ids/for-good", b"")
        with pytest.raises(NoChildrenForEphemeralsError):
            await staying.create("/ids/staying/child", b"")
        await closed.close()
        await world.expire(expired)
        assert await staying.children("/ids") == ["for-good", "staying"]
        await staying.delete("/ids/staying")
        await staying.create("/ids/staying", b"")
        await staying.close()
        last = await world.connect()
        assert await last.children("/ids") == ["for-good", "staying"]


@on_every_store
@run_async
async def test_a_session_that_is_over_can_do_nothing(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/a", b"")
        await store.close()
        attempts = [
            store.create("/b", b""),
            store.get("/a"),
            store.get_many(["/a"]),
            store.set("/a", b""),
            store.delete("/a"),
            store.exists("/a"),
            store.children("/"),
            store.multi([Check("/a")]),
        ]
        for attempt in attempts:
            with pytest.raises(SessionExpiredError):
                await attempt
        await store.close()
        assert await (await world.connect()).exists("/a") is not None


@on_every_store
@run_async
async def test_a_multi_does_all_in_order(open_world: OpenWorld, tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/old", b"")
        results = await store.multi(
            [
                Create("/a", b"1"),
                Create("/a/b", b"2"),
                Set("/a", b"3", 0),
                Check("/a", 1),
                Delete("/old", 0),
                Create("/a/s-", b"", sequence=True),
            ]
        )
        assert results[:5] == ["/a", "/a/b", 1, None, None]
        assert str(results[5]).startswith("/a/s-00000000")
        assert set(await _tree(store)) == {"/a", "/a/b", str(results[5])}
        created = {(await store.get(path)).creation_id for path in ("/a", "/a/b")}
        assert len(created) == 1
        assert await store.multi([]) == []


@on_every_store
@pytest.mark.parametrize("place", range(4))
@run_async
async def test_a_multi_that_fails_anywhere_does_nothing(
    open_world: OpenWorld, tmp_path: Path, place: int
) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        await store.create("/a", b"1")
        await store.create("/gone", b"")
        before = await _tree(store)
        operations: list[Operation] = [
            Create("/e", b"", ephemeral=True),
            Set("/a", b"2"),
            Delete("/gone"),
        ]
        operations.insert(place, Check("/a", 99))
        fired: list[WatchEvent] = []
        await store.get("/a", fired.append)
        await store.children("/", fired.append)
        with pytest.raises(BadVersionError) as caught:
            await store.multi(operations)
        assert caught.value.path == "/a"
        assert await _tree(store) == before
        await asyncio.sleep(0)
        assert fired == []
        # The session does not believe that it owns the node that was never made.
        await store.create("/e", b"")
        await store.close()
        assert await (await world.connect()).exists("/e") is not None


async def _events(store: MetadataStore, fired: Sequence[WatchEvent], count: int) -> None:
    """Wait until so many watches were called; the answers of the store drive them."""
    for _ in range(1_000):
        if len(fired) >= count:
            return
        await store.exists("/")
        await asyncio.sleep(0)
    raise AssertionError(f"only {len(fired)} of {count} watches were called: {fired}")


@on_every_store
@run_async
async def test_watches_tell_what_happened_and_only_once(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        watcher, writer = await world.connect(), await world.connect()
        fired: list[WatchEvent] = []
        assert await watcher.exists("/a", fired.append) is None
        await writer.create("/a", b"")
        await _events(watcher, fired, 1)
        await watcher.get("/a", fired.append)
        await writer.set("/a", b"1")
        await _events(watcher, fired, 2)
        await watcher.children("/a", fired.append)
        await writer.set("/a", b"2")
        await writer.create("/a/b", b"")
        await _events(watcher, fired, 3)
        await watcher.exists("/a/b", fired.append)
        await writer.delete("/a/b")
        await _events(watcher, fired, 4)
        # None of them is left, and one on a node that does not exist was never set.
        with pytest.raises(NoNodeError):
            await watcher.get("/a/b", fired.append)
        await writer.create("/a/b", b"")
        await writer.set("/a", b"3")
        await writer.delete("/a/b")
        await writer.delete("/a")
        await asyncio.sleep(0)
        assert fired == [
            (WatchKind.CREATED, "/a"),
            (WatchKind.CHANGED, "/a"),
            (WatchKind.CHILDREN, "/a"),
            (WatchKind.DELETED, "/a/b"),
        ]


@on_every_store
@run_async
async def test_a_watch_on_children_hears_of_the_end_of_their_parent(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        watcher, writer = await world.connect(), await world.connect()
        fired: list[WatchEvent] = []
        await writer.create("/a", b"")
        await watcher.children("/a", fired.append)
        await writer.delete("/a")
        await _events(watcher, fired, 1)
        assert fired == [(WatchKind.DELETED, "/a")]


@on_every_store
@run_async
async def test_a_watch_left_twice_is_called_once_and_one_per_callable(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        watcher, writer = await world.connect(), await world.connect()
        first: list[WatchEvent] = []
        second: list[WatchEvent] = []
        await writer.create("/a", b"")
        watch = first.append
        await watcher.get("/a", watch)
        await watcher.exists("/a", watch)
        await watcher.get("/a", second.append)
        await writer.set("/a", b"")
        await _events(watcher, second, 1)
        assert first == second == [(WatchKind.CHANGED, "/a")]


@on_every_store
@run_async
async def test_the_end_of_a_session_is_seen_by_others_but_not_by_its_own_watches(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        leaving, staying = await world.connect(), await world.connect()
        await leaving.create("/leader", b"", ephemeral=True)
        own: list[WatchEvent] = []
        seen: list[WatchEvent] = []
        await leaving.get("/leader", own.append)
        await staying.exists("/leader", seen.append)
        await leaving.close()
        await _events(staying, seen, 1)
        assert seen == [(WatchKind.DELETED, "/leader")]
        await staying.create("/leader", b"")
        await asyncio.sleep(0)
        assert own == []


@on_every_store
@run_async
async def test_a_watch_comes_before_an_answer_that_shows_the_change(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        watcher, writer = await world.connect(), await world.connect()
        await writer.create("/a", b"old")
        for round_number in range(20):
            order: list[object] = []
            before = await watcher.get("/a", order.append)
            new = b"new %d" % round_number
            write = asyncio.create_task(writer.set("/a", new))
            while (node := await watcher.get("/a")).data != new:
                assert node == before
                await asyncio.sleep(0)
            order.append("answer")
            await write
            assert order == [(WatchKind.CHANGED, "/a"), "answer"]


@on_every_store
@run_async
async def test_of_many_who_change_on_condition_one_wins(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        stores = [await world.connect() for _ in range(8)]
        await stores[0].create("/counter", b"0")

        async def count_up(store: MetadataStore) -> int:
            attempts = 0
            while True:
                attempts += 1
                node = await store.get("/counter")
                try:
                    return await store.set("/counter", b"%d" % (int(node.data) + 1), node.version)
                except BadVersionError:
                    assert attempts < 100

        versions = await asyncio.gather(*(count_up(store) for store in stores))
        assert sorted(versions) == list(range(1, 9))
        assert (await stores[0].get("/counter")).data == b"8"

        async def claim(store: MetadataStore) -> bool:
            try:
                await store.create("/leader", b"", ephemeral=True)
            except NodeExistsError:
                return False
            return True

        assert (await asyncio.gather(*map(claim, stores))).count(True) == 1


@on_every_store
@run_async
async def test_operations_of_a_session_keep_their_order(
    open_world: OpenWorld, tmp_path: Path
) -> None:
    async with open_world(tmp_path) as world:
        store = await world.connect()
        answers = await asyncio.gather(
            store.create("/a", b""),
            store.exists("/a"),
            store.set("/a", b"1", 0),
            store.get("/a"),
            store.set("/a", b"2", 0),
            store.delete("/a"),
            store.exists("/a"),
            return_exceptions=True,
        )
        assert answers[0] == "/a"
        assert answers[1] is not None and answers[2] == 1
        assert isinstance(answers[3], Node) and answers[3].data == b"1"
        assert isinstance(answers[4], BadVersionError)
        assert answers[5:] == [None, None]
