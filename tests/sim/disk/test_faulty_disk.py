"""The simulated disk as an instrument: the errors it is asked for, and how it is driven."""

import errno
import os
from collections.abc import Callable
from random import Random

import pytest

from headwater.base.checks import InvariantError
from headwater.base.clocks import ManualClock
from headwater.sim.disk.faults import SYNCS
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.files import (
    FileSystem,
    read_bytes,
    write_atomically,
)


def write(files: FileSystem, path: str, data: bytes, *, durable: bool = False) -> None:
    file = files.open(path, create=True)
    file.write_at(0, data)
    if durable:
        file.sync()
        files.sync_dir(os.path.dirname(path))


# -- errors without a power loss ------------------------------------------------------------------


def test_a_full_disk_takes_what_fits_and_then_refuses() -> None:
    written: set[int] = set()
    for seed in range(50):
        disk = FaultyDisk(seed)
        file = disk.open("/f", create=True)
        file.write_at(0, b"x" * 100)
        disk.capacity_bytes = disk.used_bytes + 10
        with pytest.raises(OSError) as caught:
            file.write_at(100, b"y" * 50)
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == "/f"
        written.add(file.size() - 100)
        file.truncate(100)
        assert disk.free_bytes("/") == 10
        # Overwriting needs no room, and removing gives it back.
        file.write_at(50, b"z" * 60)
        assert disk.free_bytes("/") == 0
        disk.remove("/f")
        assert disk.free_bytes("/") == 110
    assert {0, 10} < written <= set(range(11))


def test_a_failing_directory_fails_alone() -> None:
    disk = FaultyDisk(directories=["/good", "/bad", "/bad-not"])
    for name in ("good", "bad", "bad-not"):
        write(disk, f"/{name}/f", b"abc", durable=True)
    file = disk.open("/bad/f")
    disk.faults.append(Fault(under="/bad"))
    actions: list[Callable[[], object]] = [
        lambda: disk.open("/bad/f"),
        lambda: disk.open("/bad/new", create=True),
        lambda: disk.list_dir("/bad"),
        lambda: disk.rename("/good/f", "/bad/f"),
        lambda: disk.sync_dir("/bad"),
        lambda: disk.map("/bad/f"),
        lambda: file.read_at(0, 1),
        lambda: file.write_at(0, b"x"),
        lambda: file.truncate(0),
        lambda: file.size(),
        file.sync,
    ]
    for action in actions:
        with pytest.raises(OSError) as caught:
            action()
        assert caught.value.errno == errno.EIO
    assert read_bytes(disk, "/good/f") == read_bytes(disk, "/bad-not/f") == b"abc"
    disk.faults.clear()
    assert file.read_at(0, 10) == b"abc"


def test_faults_of_one_kind_start_and_end_when_told() -> None:
    disk = FaultyDisk()
    file = disk.open("/f", create=True)
    disk.faults.append(Fault(operations={"write"}, skip_count=1, hit_count_max=1))
    file.write_at(0, b"a")
    assert file.read_at(0, 1) == b"a"
    with pytest.raises(OSError):
        file.write_at(1, b"b")
    assert file.size() == 1
    file.write_at(1, b"c")
    assert file.read_at(0, 10) == b"ac"


def test_a_torn_write_leaves_a_part_behind() -> None:
    sizes: set[int] = set()
    for seed in range(50):
        disk = FaultyDisk(seed)
        file = disk.open("/f", create=True)
        disk.faults.append(Fault(operations={"write"}, torn=True))
        with pytest.raises(OSError):
            file.write_at(0, b"0123456789")
        assert b"0123456789".startswith(file.read_at(0, 10))
        sizes.add(file.size())
    assert len(sizes) > 5


def test_after_a_failed_sync_a_good_one_proves_nothing() -> None:
    lost = kept = 0
    for seed in range(50):
        disk = FaultyDisk(seed)
        write(disk, "/f", b"old", durable=True)
        file = disk.open("/f")
        file.write_at(0, b"new")
        disk.faults.append(Fault(operations=SYNCS, hit_count_max=1))
        with pytest.raises(OSError):
            file.sync()
        file.sync()
        assert file.read_at(0, 10) == b"new", "the page cache still has it"
        content = disk.crash(Random(seed)).contents()["/f"]
        lost += content == b"old"
        kept += content == b"new"
    assert lost and kept and lost + kept == 50


# -- the instrument itself ------------------------------------------------------------------------


def test_a_crashed_disk_and_its_files_are_dead() -> None:
    disk = FaultyDisk()
    file = disk.open("/f", create=True)
    mapping = disk.map("/f")
    lock = disk.lock("/.lock")
    disk.sync_dir("/")
    found = disk.crash(Random(1))
    uses: list[Callable[[], object]] = [
        lambda: file.read_at(0, 1),
        lambda: file.write_at(0, b"x"),
        file.sync,
        lambda: mapping.view,
        lambda: disk.exists("/f"),
        lambda: disk.make_dir("/"),
        lambda: disk.remove_tree("/"),
        lambda: disk.list_dir("/"),
    ]
    for use in uses:
        with pytest.raises(SimulatedCrash):
            use()
    file.close()
    mapping.close()
    lock.release()
    assert found.list_dir("/") == [".lock", "f"]
    found.lock("/.lock")


def test_the_power_stays_off_for_code_that_carries_on() -> None:
    disk = FaultyDisk()
    disk.before_operation = PowerCut(at=1)
    file = disk.open("/f", create=True)
    with pytest.raises(SimulatedCrash):
        file.write_at(0, b"x")
    disk.before_operation = None
    with pytest.raises(SimulatedCrash):
        file.write_at(0, b"x")
    assert disk.contents() == {"/f": b""}


def test_power_cuts_count_changes_only() -> None:
    disk = FaultyDisk()
    cut = disk.before_operation = PowerCut(at=99)
    write_atomically(disk, "/f", b"abc")
    assert read_bytes(disk, "/f") == b"abc"
    assert cut.count == 6
    changes = [operation for operation, _ in disk.operations if operation not in ("open", "stat")]
    assert changes == ["create", "truncate", "write", "sync", "rename", "sync_dir", "read"]
    assert disk.sync_count == disk.sync_dir_count == 1


def test_truncating_below_a_mapping_is_noticed() -> None:
    disk = FaultyDisk()
    write(disk, "/f", b"abcdef")
    mapping = disk.map("/f")
    disk.open("/f").truncate(3)
    with pytest.raises(InvariantError, match="SIGBUS"):
        _ = mapping.view


def test_modified_time_of_the_simulated_disk() -> None:
    clock = ManualClock(wall_ms=5_000)
    files = FaultyDisk(clock=clock)
    file = files.open("/f", create=True)
    clock.advance(10)
    file.write_at(0, b"x")
    clock.advance(10)
    assert files.modified_ms("/f") == 5_010


def test_the_same_seed_gives_the_same_disk() -> None:
    def run() -> list[dict[str, bytes]]:
        found = []
        disk = FaultyDisk(7, directories=["/d"])
        rng = Random(11)
        for step in range(200):
            name = f"/d/{rng.randrange(6)}"
            file = disk.open(name, create=True)
            file.write_at(rng.randrange(2_000), rng.randbytes(rng.randrange(1_500)))
            if rng.random() < 0.2:
                file.sync()
            if rng.random() < 0.2:
                disk.sync_dir("/d")
            if rng.random() < 0.2:
                disk.rename(name, f"/d/{rng.randrange(6)}")
            if step % 40 == 39:
                disk = disk.crash(rng)
                found.append(disk.contents())
        return found

    first = run()
    assert first == run()
    assert len(first) == 5 and any(first)


def test_the_end_of_a_process_loses_nothing_but_its_files_and_locks() -> None:
    disk = FaultyDisk(1, directories=["/data"])
    disk.lock("/data/.lock")
    file = disk.open("/data/log", create=True)
    file.write_at(0, b"not synced")
    after = disk.after_process_end()
    with pytest.raises(SimulatedCrash):
        file.write_at(0, b"from the grave")
    after.lock("/data/.lock")
    assert after.contents()["/data/log"] == b"not synced"
