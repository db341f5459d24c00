"""The sender: order, queueing, and the two ways of a region, on a fake transport and on sockets."""

import asyncio
import io
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.threads import RunInThread
from headwater.net import region_transfer
from headwater.net.region import Part
from headwater.net.sender import READ_SIZE_MAX, Sender
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import DiskFiles, File, FileRegion
from headwater.storage.disk.handles import HandleCache
from tests.support.fakes.peers.transports import RUNNERS, FakeTransport, turns
from tests.support.tiers import rounds

T = TypeVar("T")

CONTENT = os.urandom(1 << 20) * 5


@pytest.fixture(scope="module")
def blob(tmp_path_factory: pytest.TempPathFactory) -> Iterator[File]:
    path = tmp_path_factory.mktemp("sender") / "blob"
    path.write_bytes(CONTENT)
    file = DiskFiles().open(str(path))
    yield file
    file.close()


class _Owner(asyncio.BufferedProtocol):
    """As much of a connection as a sender needs."""

    def __init__(self, run_in_thread: RunInThread | None = None) -> None:
        self.run_in_thread = run_in_thread
        self.busy: list[bool] = []
        self.failures: list[str] = []
        self.sender: Sender

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.sender = Sender(
            asyncio.get_running_loop(),
            self.transport,
            run_in_thread=self.run_in_thread,
            set_busy=self.busy.append,
            fail=self.fail,
        )

    def fail(self, reason: str) -> None:
        self.failures.append(reason)
        self.sender.close()
        self.transport.abort()

    def connection_lost(self, exception: Exception | None) -> None:
        self.sender.close()

    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(100)

    def pause_writing(self) -> None:
        self.sender.pause_writing()

    def resume_writing(self) -> None:
        self.sender.resume_writing()


def _expected(parts: Sequence[Part]) -> bytes:
    return b"".join(part.read() if isinstance(part, FileRegion) else bytes(part) for part in parts)  # type: ignore[arg-type]


async def _send_over_socket(
    answers: Sequence[Sequence[Part]], owner: _Owner, *, reader_pause_s: float = 0.0
) -> bytes:
    """What arrives at a peer that may be slow."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 30_000)
        theirs.setblocking(False)
        await loop.create_connection(lambda: owner, sock=ours)
        for parts in answers:
            owner.sender.send(parts)
        size = sum(len(_expected(parts)) for parts in answers)
        received = bytearray()
        while len(received) < size:
            data = await loop.sock_recv(theirs, 1 << 18)
            if not data:
                break
            received += data
            await asyncio.sleep(reader_pause_s)
        if len(received) == size:
            assert owner.sender.bytes_out == size
            async with asyncio.timeout(5):
                while not owner.sender.is_empty:
                    await asyncio.sleep(0)
        owner.transport.abort()
        await turns()
        return bytes(received)


_PARTS = st.lists(
    st.one_of(
        st.binary(max_size=50),
        st.integers(1, 200_000).map(lambda size: memoryview(CONTENT)[:size]),
        st.tuples(
            st.integers(0, 3_000_000),
            st.one_of(st.integers(0, 100), st.integers(0, 100_000), st.integers(0, 2_000_000)),
        ),
    ),
    min_size=1,
    max_size=8,
)


def _with_regions(file: File, parts: Sequence[object]) -> list[Part]:
    return [FileRegion(file, *part) if isinstance(part, tuple) else part for part in parts]  # type: ignore[misc]


@pytest.mark.parametrize("loop", RUNNERS)
def test_sockets_get_exactly_the_bytes_in_order(loop: str, blob: File) -> None:
    @given(answers=st.lists(_PARTS, min_size=1, max_size=4))
    def check(answers: list[list[object]]) -> None:
        async def run() -> None:
            sent = [_with_regions(blob, parts) for parts in answers]
            owner = _Owner()
            received = await _send_over_socket(sent, owner)
            assert received == b"".join(map(_expected, sent))
            assert owner.failures == []
            assert owner.busy[-1:] in ([], [False])

        RUNNERS[loop](run())

    check()


@given(answers=st.lists(_PARTS, min_size=1, max_size=4), rooms=st.lists(st.integers(1, 300_000)))
def test_without_a_socket_regions_are_written_piece_by_piece(
    blob: File, answers: list[list[object]], rooms: list[int]
) -> None:
    async def run() -> None:
        sent = [_with_regions(blob, parts) for parts in answers]
        owner = _Owner()
        transport = FakeTransport(room=0)
        transport.connect(owner)
        for parts in sent:
            owner.sender.send(parts)
        for room in rooms:
            # However large the region, only a piece of it is in memory.
            assert transport.get_write_buffer_size() <= 64 * 1024 + 300_000 + sum(
                0 if isinstance(part, FileRegion) else len(_expected([part]))
                for parts in sent
                for part in parts
            )
            transport.make_room(room)
            await turns(1)
        transport.make_room(2**60)
        async with asyncio.timeout(10):
            while not owner.sender.is_empty:
                await asyncio.sleep(0)
        assert bytes(transport.delivered) == b"".join(map(_expected, sent))

    asyncio.run(run())


def test_a_file_without_a_descriptor_is_read() -> None:
    disk = FaultyDisk()
    file = disk.open("/file", create=True)
    file.write_at(0, CONTENT[:1_000_000])
    with pytest.raises(io.UnsupportedOperation):
        file.fileno()

    async def run() -> None:
        parts: list[Part] = [b"head", FileRegion(file, 5, 900_000), b"tail", FileRegion(file, 0, 3)]
        assert await _send_over_socket([parts], _Owner()) == _expected(parts)

    asyncio.run(run())


@pytest.mark.parametrize("loop", RUNNERS)
@pytest.mark.parametrize("size", [READ_SIZE_MAX, 3_000_000])
def test_a_file_that_was_cut_short_ends_the_connection(
    loop: str, size: int, tmp_path: Path
) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * (size - 1))
    file = DiskFiles().open(str(path))

    async def run() -> None:
        owner = _Owner()
        received = await _send_over_socket(
            [[b"head", FileRegion(file, 0, size)], [b"must not follow"]], owner
        )
        assert len(owner.failures) == 1
        assert "shorter" in owner.failures[0]
        assert b"head".startswith(received[:4])
        assert received[4:] == b"x" * len(received[4:])

    RUNNERS[loop](run())
    file.close()


def test_a_file_that_is_gone_ends_the_connection(tmp_path: Path) -> None:
    (tmp_path / "gone").write_bytes(b"x" * 100_000)
    file = HandleCache(DiskFiles(), 10).open(str(tmp_path / "gone"))
    region = FileRegion(file, 0, 100_000)
    file.close()

    async def run() -> None:
        owner = _Owner()
        transport = FakeTransport()
        transport.connect(owner)
        owner.sender.send([b"head", region])
        assert len(owner.failures) == 1
        assert "could not be sent" in owner.failures[0]

    asyncio.run(run())


@pytest.mark.parametrize("loop", RUNNERS)
def test_a_file_is_pinned_while_it_is_sent_and_not_longer(loop: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    (tmp_path / "b").write_bytes(b"")
    cache = HandleCache(DiskFiles(), 1)
    file = cache.open(str(tmp_path / "a"))

    async def run() -> None:
        owner = _Owner()
        ours, theirs = socket.socketpair()
        with theirs:
            await asyncio.get_running_loop().create_connection(lambda: owner, sock=ours)
            owner.sender.send([b"head", FileRegion(file, 0, 4_000_000)])
            assert owner.busy == [True]
            other = cache.open(str(tmp_path / "b"))
            assert file.is_open, "the cache must not close what is being sent"
            other.read_at(0, 1)
            owner.transport.abort()
            await turns()
            cache.open(str(tmp_path / "b"))
            assert not file.is_open

    RUNNERS[loop](run())


class _Thread:
    """Threads that do their work when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    async def __call__(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.waiting.append((work, future))
        return await future

    def finish_one(self) -> None:
        work, future = self.waiting.pop(0)
        future.set_result(work())


@pytest.mark.parametrize("size", [1000, 3_000_000])
def test_a_cold_region_waits_for_a_thread_and_later_answers_for_it(
    size: int, blob: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = [True]
    monkeypatch.setattr(region_transfer, "is_cached", lambda *_: not cold[0])

    async def run() -> None:
        thread = _Thread()
        owner = _Owner(thread)
        transport = FakeTransport()
        transport.connect(owner)
        region = FileRegion(blob, 100, size)
        owner.sender.send([b"head", region, b"tail"])
        owner.sender.send([b"later"])
        await turns()
        assert bytes(transport.delivered) == b"head"
        assert owner.busy == [True]
        while thread.waiting:
            thread.finish_one()
            await turns()
        assert bytes(transport.delivered) == b"head" + region.read() + b"tail" + b"later"
        assert (owner.busy[0], owner.busy[-1]) == (True, False)
        assert owner.sender.is_empty

    asyncio.run(run())


def test_a_connection_that_is_lost_while_a_thread_reads_keeps_the_file_until_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_transfer, "is_cached", lambda *_: False)
    (tmp_path / "a").write_bytes(CONTENT)
    cache = HandleCache(DiskFiles(), 1)
    file = cache.open(str(tmp_path / "a"))

    async def run() -> None:
        thread = _Thread()
        owner = _Owner(thread)
        transport = FakeTransport()
        transport.connect(owner)
        owner.sender.send([FileRegion(file, 0, 1_000_000)])
        await turns()
        transport.lose()
        file.close()
        thread.finish_one()
        assert file.is_open, "it is pinned until the thread is done"
        await turns()
        assert not file.is_open
        assert owner.failures == []

    asyncio.run(run())


def test_a_disk_that_fails_in_the_thread_ends_the_connection(
    blob: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_transfer, "is_cached", lambda *_: False)

    async def fail(_: object) -> NoReturn:
        raise OSError("the disk is broken")

    async def run() -> None:
        owner = _Owner(fail)
        transport = FakeTransport()
        transport.connect(owner)
        owner.sender.send([FileRegion(blob, 0, 1_000_000)])
        await turns()
        assert owner.failures == ["a file could not be read: the disk is broken"]

    asyncio.run(run())


def test_a_large_region_gives_others_their_turn(blob: File) -> None:
    async def run() -> None:
        owner = _Owner()
        transport = FakeTransport()
        transport.connect(owner)
        size = 5_000_000
        owner.sender.send([FileRegion(blob, 0, size)])
        seen = [len(transport.delivered)]
        while seen[-1] < size:
            await asyncio.sleep(0)
            seen.append(len(transport.delivered))
        assert len(seen) >= 4
        assert max(b - a for a, b in pairwise(seen)) <= 1_500_000

    asyncio.run(run())


@pytest.mark.parametrize("loop", RUNNERS)
def test_a_slow_reader_gets_everything(loop: str, blob: File) -> None:
    async def run() -> None:
        parts: list[Part] = [b"head", FileRegion(blob, 1, rounds(2_000_000, 5_000_000)), b"tail"]
        received = await _send_over_socket([parts] * 2, owner := _Owner(), reader_pause_s=0.0001)
        assert received == _expected(parts) * 2
        assert owner.busy[0]

    RUNNERS[loop](run())
