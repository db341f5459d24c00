"""With the power on, the simulated disk does what a real one does."""

import shutil
import tempfile
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import DiskFiles, File, FileSystem, Lock


class SameAsARealDisk(RuleBasedStateMachine):
    """Does everything on both disks and compares results and errors."""

    paths = st.sampled_from(
        ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "d/e/f/a", "g/h", "./a"]
    )
    which = st.integers(0, 7)

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp()
        self.faulty = FaultyDisk(directories=[self.root])
        self.real = DiskFiles()
        self.open_files: list[tuple[File, File]] = []
        self.locks: list[tuple[Lock, Lock]] = []

    def teardown(self) -> None:
        for pair in self.open_files:
            for file in pair:
                file.close()
        for locks in self.locks:
            for lock in locks:
                lock.release()
        shutil.rmtree(self.root)

    def both(self, action: Callable[[FileSystem], object]) -> tuple[object, object] | None:
        """The results on both; None if both raised, and then the same error."""
        results: list[object] = []
        errors: list[tuple[type, int | None] | None] = []
        for files in (self.real, self.faulty):
            try:
                results.append(action(files))
                errors.append(None)
            except OSError as error:
                errors.append((type(error), error.errno))
        assert errors[0] == errors[1]
        return (results[0], results[1]) if errors[0] is None else None

    def same(self, action: Callable[[FileSystem], object]) -> None:
        results = self.both(action)
        assert results is None or results[0] == results[1]

    def same_file(self, which: int, action: Callable[[File], object]) -> None:
        if self.open_files:
            real, faulty = self.open_files[which % len(self.open_files)]
            self.same(lambda files: action(real if files is self.real else faulty))

    @rule(path=paths, create=st.booleans())
    def open(self, path: str, create: bool) -> None:
        results = self.both(lambda files: files.open(f"{self.root}/{path}", create=create))
        if results is not None:
            self.open_files.append(results)  # type: ignore[arg-type]

    @rule(which=which, position=st.integers(-1, 2_000), data=st.binary(max_size=1_200))
    def write(self, which: int, position: int, data: bytes) -> None:
        self.same_file(which, lambda file: file.write_at(position, data))

    @rule(which=which, position=st.integers(-1, 4_000), size=st.integers(0, 3_000))
    def read(self, which: int, position: int, size: int) -> None:
        self.same_file(which, lambda file: file.read_at(position, size))

    @rule(which=which, size=st.integers(-1, 3_000))
    def truncate(self, which: int, size: int) -> None:
        self.same_file(which, lambda file: file.truncate(size))

    @rule(which=which)
    def size_of_open(self, which: int) -> None:
        self.same_file(which, lambda file: file.size())

    @rule(which=which)
    def close(self, which: int) -> None:
        self.same_file(which, lambda file: file.close())

    @rule(which=which)
    def sync(self, which: int) -> None:
        self.same_file(which, lambda file: file.sync())

    @rule(path=paths)
    def look(self, path: str) -> None:
        full = f"{self.root}/{path}"
        self.same(lambda files: files.exists(full))
        self.same(lambda files: files.is_dir(full))
        self.same(lambda files: files.list_dir(full))
        if not self.real.is_dir(full):
            # The size of a directory means nothing, and nobody maps one.
            self.same(lambda files: files.size(full))
            self.same(lambda files: bytes(files.map(full).view))

    @rule(path=paths)
    def make_dir(self, path: str) -> None:
        self.same(lambda files: files.make_dir(f"{self.root}/{path}"))

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        self.same(lambda files: files.rename(f"{self.root}/{old}", f"{self.root}/{new}"))

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self.same(lambda files: files.remove(f"{self.root}/{path}"))

    @rule(path=paths)
    def remove_tree(self, path: str) -> None:
        self.same(lambda files: files.remove_tree(f"{self.root}/{path}"))

    @rule(path=paths)
    def sync_dir(self, path: str) -> None:
        self.same(lambda files: files.sync_dir(f"{self.root}/{path}"))

    @rule(path=paths)
    def lock(self, path: str) -> None:
        results = self.both(lambda files: files.lock(f"{self.root}/{path}"))
        if results is not None:
            self.locks.append(results)  # type: ignore[arg-type]

    @rule()
    def release(self) -> None:
        if self.locks:
            for lock in self.locks.pop():
                lock.release()


SameAsARealDisk.TestCase.settings = settings(stateful_step_count=60)
test_same_as_a_real_disk = SameAsARealDisk.TestCase
