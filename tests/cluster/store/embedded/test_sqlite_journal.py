"""The embedded store's file: what it keeps, and what it says when it cannot be used."""

import asyncio
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE
from headwater.cluster.store.errors import StoreFileError, StoreWriteError
from headwater.cluster.store.metadata_store import Create, Delete
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import open_sqlite


@run_async
async def test_a_reopened_store_is_as_it_was(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    session = store.connect()
    await session.create("/a", b"\0\xff")
    await session.multi([Create("/a/b", b""), Create("/a/b/c", b"deep"), Create("/a/d", b"")])
    await session.set("/a/b/c", b"changed")
    await session.delete("/a/d")
    await session.create("/gone", b"", ephemeral=True)
    await session.create("/a/s-", b"", sequence=True)
    paths = ["/a", "/a/b", "/a/b/c", "/a/s-0000000002"]
    before = await session.get_many(paths)
    assert None not in before
    await store.close()
    for _ in range(2):
        store = await open_sqlite(tmp_path)
        session = store.connect()
        assert await session.get_many(paths) == before
        assert await session.children("/") == ["a"]
        assert await session.children("/a") == ["b", "s-0000000002"]
        await store.close()
    assert os.listdir(tmp_path) == [METADATA_FILE]
    store = await open_sqlite(tmp_path)
    assert await store.connect().create("/a/s-", b"", sequence=True) == "/a/s-0000000003"
    await store.close()


@run_async
async def test_what_is_implied_by_a_child_is_there_again_and_can_lose_the_child(
    tmp_path: Path,
) -> None:
    creations = [Create("/t", b""), Create("/t/0", b""), Create("/t/0/state", b"{}")]
    store = await open_sqlite(tmp_path)
    await store.connect().multi(creations)
    await store.close()
    store = await open_sqlite(tmp_path)
    await store.connect().multi([Delete("/t/0/state")])
    await store.close()
    store = await open_sqlite(tmp_path)
    session = store.connect()
    assert await session.children("/t") == ["0"]
    assert await session.children("/t/0") == []
    await session.multi([Delete("/t/0"), Delete("/t")])
    await store.close()
    store = await open_sqlite(tmp_path)
    assert await store.connect().children("/") == []
    await store.close()


@run_async
async def test_a_file_in_use_is_refused_with_a_sentence(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    with pytest.raises(StoreFileError, match=r"metadata\.sqlite is in use by another process\.$"):
        await open_sqlite(tmp_path)
    await store.connect().create("/still", b"works")
    await store.close()
    store = await open_sqlite(tmp_path)
    assert (await store.connect().get("/still")).data == b"works"
    await store.close()


async def _fill(directory: Path) -> Path:
    store = await open_sqlite(directory)
    session = store.connect()
    await session.create("/a", b"")
    await session.multi([Create(f"/a/{number}", b"x" * 100) for number in range(1_000)])
    await store.close()
    return directory / METADATA_FILE


async def _refusal(directory: Path) -> str:
    with pytest.raises(StoreFileError) as caught:
        await open_sqlite(directory)
    message = str(caught.value)
    assert str(directory / METADATA_FILE) in message
    assert message.endswith(".") and "\n" not in message
    return message


@run_async
async def test_a_directory_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = await _refusal(tmp_path / "file")
    assert told.endswith(f"cannot be opened: {tmp_path}/file is not a directory.")


@run_async
async def test_a_directory_that_may_not_be_written_to_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        # Root may write everywhere, so no file can be made there for another reason.
        (tmp_path / "metadata.sqlite").mkdir()
        monkeypatch.setattr(os, "access", lambda *_: False)
    tmp_path.chmod(0o500)
    told = await _refusal(tmp_path)
    assert told.endswith(f"cannot be opened: this user may not write to {tmp_path}.")


@run_async
async def test_a_damaged_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = await _fill(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(b"this is no database, however long one looks at it" * 100)
    assert "damaged" in await _refusal(tmp_path)
    file.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in await _refusal(tmp_path)
    file.write_bytes(whole[:8192] + b"\x55" * 4096 + whole[12288:])
    assert "damaged" in await _refusal(tmp_path)
    file.write_bytes(whole)
    store = await open_sqlite(tmp_path)
    assert len(await store.connect().children("/a")) == 1_000
    await store.close()


@run_async
async def test_another_programs_file_or_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / METADATA_FILE)
    connection.execute("CREATE TABLE theirs (column)")
    connection.close()
    content = (tmp_path / METADATA_FILE).read_bytes()
    assert "not one that this version" in await _refusal(tmp_path)
    assert (tmp_path / METADATA_FILE).read_bytes() == content
    (tmp_path / METADATA_FILE).unlink()
    await _fill(tmp_path)
    connection = sqlite3.connect(tmp_path / METADATA_FILE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "not one that this version" in await _refusal(tmp_path)


@run_async
async def test_a_missing_directory_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert "cannot be opened" in await _refusal(tmp_path / "missing")


@contextmanager
def _largest_file(size_bytes: int) -> Iterator[None]:
    """While this lasts, no file of this process can grow beyond `size_bytes`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@run_async
async def test_a_full_disk_refuses_changes_until_there_is_room_again(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    session = store.connect()
    await session.create("/a", b"before")
    room = (tmp_path / f"{METADATA_FILE}-wal").stat().st_size + 50_000
    with _largest_file(room):
        with pytest.raises(StoreWriteError, match="cannot be written"):
            await session.create("/large", b"x" * 200_000)
        assert await session.exists("/large") is None
        assert (await session.get("/a")).data == b"before"
        await session.set("/a", b"small enough")
    await session.create("/large", b"x" * 200_000)
    await store.close()
    store = await open_sqlite(tmp_path)
    session = store.connect()
    assert (await session.get("/a")).data == b"small enough"
    assert len((await session.get("/large")).data) == 200_000
    await store.close()


@run_async
async def test_a_closed_store_takes_no_more_changes(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    await store.close()
    with pytest.raises(StoreWriteError, match="closed"):
        await store.connect().create("/a", b"")


@run_async
async def test_many_writers_share_commits(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path)
    sessions = [store.connect() for _ in range(20)]

    async def write(number: int) -> None:
        for again in range(10):
            await sessions[number].create(f"/{number}-{again}", b"")

    await asyncio.gather(*map(write, range(20)))
    assert store.commit_count <= 20
    await store.close()
    store = await open_sqlite(tmp_path)
    assert len(await store.connect().children("/")) == 200
    await store.close()
