"""The contract of `File` and `FileSystem`, on the real disk, the simulated one, and the cache."""

import errno
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import (
    DiskFiles,
    File,
    FileRegion,
    FileSystem,
    Mapping,
    read_bytes,
    write_atomically,
)
from headwater.storage.disk.handles import HandleCache

KINDS = ("disk", "faulty", "cached disk", "cached faulty")


@dataclass
class World:
    """A file system, a directory in it that exists, and the way in which files are opened."""

    files: FileSystem
    root: str
    cache: HandleCache | None

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def create(self, name: str, content: bytes = b"") -> File:
        opener = self.files if self.cache is None else self.cache
        file = opener.open(self.path(name), create=True)
        if content:
            file.write_at(0, content)
        return file

    def open(self, name: str) -> File:
        opener = self.files if self.cache is None else self.cache
        return opener.open(self.path(name))

    def map(self, name: str) -> Mapping:
        opener = self.files if self.cache is None else self.cache
        return opener.map(self.path(name))


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    kind: str = request.param
    root = str(tmp_path) if "disk" in kind else "/data"
    files: FileSystem = DiskFiles() if "disk" in kind else FaultyDisk(directories=[root])
    # Room for one: whenever a second file is used, the first has to be reopened.
    return World(files, root, HandleCache(files, capacity=1) if "cached" in kind else None)


def error_of(operation: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as caught:
        operation()
    return caught.value.errno


def test_reads_what_was_written(world: World) -> None:
    file = world.create("f")
    file.write_at(0, b"hello")
    file.write_at(5, bytearray(b" wor"))
    file.write_at(9, memoryview(b"ld!")[:2])
    assert file.read_at(0, 100) == b"hello world"
    assert file.read_at(6, 3) == b"wor"
    assert file.size() == 11
    assert file.path == world.path("f")


def test_reads_are_short_only_at_the_end(world: World) -> None:
    file = world.create("f", b"0123456789")
    assert file.read_at(8, 5) == b"89"
    assert file.read_at(10, 5) == b""
    assert file.read_at(99, 5) == b""
    assert file.read_at(3, 0) == b""


def test_a_gap_reads_as_zeros(world: World) -> None:
    file = world.create("f", b"ab")
    file.write_at(5, b"c")
    assert file.read_at(0, 10) == b"ab\0\0\0c"


def test_writing_nothing_beyond_the_end_changes_nothing(world: World) -> None:
    file = world.create("f", b"ab")
    file.write_at(50, b"")
    assert file.size() == 2


def test_truncate_cuts_and_extends(world: World) -> None:
    file = world.create("f", b"abcdef")
    file.truncate(3)
    assert file.read_at(0, 10) == b"abc"
    file.truncate(5)
    assert file.read_at(0, 10) == b"abc\0\0"


def test_a_view_of_wider_items_is_written_as_its_bytes(world: World) -> None:
    file = world.create("f")
    file.write_at(0, memoryview(bytes(range(16))).cast("Q"))
    assert file.read_at(0, 100) == bytes(range(16))


def test_negative_numbers_are_refused(world: World) -> None:
    file = world.create("f", b"abc")
    assert error_of(lambda: file.write_at(-1, b"x")) == errno.EINVAL
    assert error_of(lambda: file.read_at(-1, 1)) == errno.EINVAL
    assert error_of(lambda: file.truncate(-1)) == errno.EINVAL
    assert file.read_at(0, 10) == b"abc"


def test_open_does_not_create_unless_asked(world: World) -> None:
    with pytest.raises(FileNotFoundError):
        world.open("absent")
    with pytest.raises(FileNotFoundError):
        world.create("no-such-directory/f")
    world.create("f", b"kept").close()
    assert world.create("f").read_at(0, 10) == b"kept"


def test_a_closed_file_is_of_no_use_and_closing_twice_is_fine(world: World) -> None:
    file = world.create("f", b"abc")
    file.close()
    file.close()
    assert error_of(lambda: file.read_at(0, 1)) == errno.EBADF
    assert error_of(lambda: file.write_at(0, b"x")) == errno.EBADF
    assert error_of(file.sync) == errno.EBADF
    assert error_of(file.size) == errno.EBADF
    with pytest.raises(OSError):
        file.fileno()


def test_only_real_files_have_a_descriptor(world: World) -> None:
    file = world.create("f", b"abc")
    if isinstance(world.files, DiskFiles):
        assert os.pread(file.fileno(), 3, 0) == b"abc"
    else:
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()


def test_several_handles_see_one_file(world: World) -> None:
    first, second = world.create("f"), world.create("f")
    first.write_at(0, b"one")
    second.write_at(3, b"two")
    first.sync()
    assert first.read_at(0, 10) == second.read_at(0, 10) == b"onetwo"


def test_mapping_has_the_length_of_its_moment(world: World) -> None:
    file = world.create("f", b"abc")
    mapping = world.map("f")
    assert bytes(mapping.view) == b"abc"
    assert mapping.view.readonly
    file.write_at(1, b"X")
    assert bytes(mapping.view) == b"aXc"
    mapping.close()
    mapping.close()
    assert error_of(lambda: mapping.view) == errno.EBADF


def test_mapping_an_empty_and_an_absent_file(world: World) -> None:
    world.create("empty")
    assert bytes(world.map("empty").view) == b""
    with pytest.raises(FileNotFoundError):
        _ = world.map("absent").view


def test_names(world: World) -> None:
    files = world.files
    files.make_dir(world.path("d/e"))
    files.make_dir(world.path("d/e"))
    world.create("d/z", b"12345").close()
    world.create("d/a").close()
    assert files.list_dir(world.path("d")) == ["a", "e", "z"]
    assert files.exists(world.path("d/a")) and files.exists(world.path("d"))
    assert files.is_dir(world.path("d/e")) and not files.is_dir(world.path("d/a"))
    assert not files.exists(world.path("d/a/below")) and not files.is_dir(world.path("x"))
    assert files.size(world.path("d/z")) == 5
    files.remove(world.path("d/a"))
    assert files.list_dir(world.path("d")) == ["e", "z"]
    files.remove_tree(world.path("d"))
    assert files.list_dir(world.root) == []


def test_wrong_uses_of_names_are_refused(world: World) -> None:
    files, path = world.files, world.path
    files.make_dir(path("d"))
    files.make_dir(path("full/sub"))
    world.create("f").close()
    assert error_of(lambda: files.remove(path("d"))) == errno.EISDIR
    assert error_of(lambda: files.remove(path("absent"))) == errno.ENOENT
    assert error_of(lambda: files.remove_tree(path("absent"))) == errno.ENOENT
    assert error_of(lambda: files.remove_tree(path("f"))) == errno.ENOTDIR
    assert error_of(lambda: files.list_dir(path("f"))) == errno.ENOTDIR
    assert error_of(lambda: files.sync_dir(path("absent"))) == errno.ENOENT
    assert error_of(lambda: files.open(path("d"))) == errno.EISDIR
    assert error_of(lambda: files.make_dir(path("f"))) == errno.EEXIST
    assert error_of(lambda: files.make_dir(path("f/below"))) == errno.ENOTDIR
    assert error_of(lambda: files.rename(path("absent"), path("f"))) == errno.ENOENT
    assert error_of(lambda: files.rename(path("f"), path("d"))) == errno.EISDIR
    assert error_of(lambda: files.rename(path("d"), path("f"))) == errno.ENOTDIR
    assert error_of(lambda: files.rename(path("d"), path("full"))) == errno.ENOTEMPTY
    assert error_of(lambda: files.rename(path("d"), path("d/e"))) == errno.EINVAL
    assert files.list_dir(world.root) == ["d", "f", "full"]


def test_rename_replaces_and_open_files_follow(world: World) -> None:
    files = world.files
    first, second = files.open(world.path("a"), create=True), world.create("b", b"B")
    first.write_at(0, b"A")
    files.rename(world.path("a"), world.path("b"))
    assert read_bytes(files, world.path("b")) == b"A"
    first.write_at(1, b"+")
    assert read_bytes(files, world.path("b")) == b"A+"
    assert files.list_dir(world.root) == ["b"]
    second.close()


def test_rename_of_a_directory_takes_its_files_along(world: World) -> None:
    files = world.files
    files.make_dir(world.path("t-0"))
    world.create("t-0/f", b"x").close()
    files.rename(world.path("t-0"), world.path("t-0.delete"))
    assert read_bytes(files, world.path("t-0.delete/f")) == b"x"
    assert not files.exists(world.path("t-0"))


def test_a_removed_file_lives_on_while_it_is_open(world: World) -> None:
    file = world.files.open(world.path("f"), create=True)
    file.write_at(0, b"abc")
    world.files.remove(world.path("f"))
    assert file.read_at(0, 10) == b"abc"
    assert not world.files.exists(world.path("f"))


def test_locks_exclude_each_other_until_released(world: World) -> None:
    path = world.path(".lock")
    lock = world.files.lock(path)
    with pytest.raises(BlockingIOError):
        world.files.lock(path)
    # The failed attempt must not have loosened the lock that is held.
    with pytest.raises(BlockingIOError):
        world.files.lock(path)
    lock.release()
    second = world.files.lock(path)
    lock.release()
    with pytest.raises(BlockingIOError):
        world.files.lock(path)
    second.release()


def test_free_bytes_is_known(world: World) -> None:
    assert 0 < world.files.free_bytes(world.root) <= world.files.total_bytes(world.root)


def test_region_reads_its_stretch_of_the_file(world: World) -> None:
    file = world.create("f", b"0123456789")
    region = FileRegion(file, 3, 4)
    assert region.read() == b"3456"
    file.truncate(5)
    assert region.read() == b"34"


def test_write_atomically_replaces_and_leaves_nothing_else(world: World) -> None:
    path = world.path("checkpoint")
    write_atomically(world.files, path, b"first version")
    write_atomically(world.files, path, b"second")
    assert read_bytes(world.files, path) == b"second"
    assert world.files.list_dir(world.root) == ["checkpoint"]


def test_write_atomically_ignores_what_a_failed_one_left(world: World) -> None:
    world.create("checkpoint.tmp", b"a long leftover of an earlier attempt").close()
    write_atomically(world.files, world.path("checkpoint"), b"new")
    assert read_bytes(world.files, world.path("checkpoint")) == b"new"
