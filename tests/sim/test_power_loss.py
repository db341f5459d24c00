"""What a power loss must leave alone, and what it may take and over many seeds does take."""

import os
from random import Random

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.files import FileSystem
from tests.support.tiers import rounds

SEEDS = range(1_000)


def write(files: FileSystem, path: str, data: bytes, *, durable: bool = False) -> None:
    file = files.open(path, create=True)
    file.write_at(0, data)
    if durable:
        file.sync()
        files.sync_dir(os.path.dirname(path))


def outcomes(disk: FaultyDisk, path: str) -> set[bytes | None]:
    """What each of many power losses leaves of a file; None where it is gone."""
    return {disk.after_power_loss(Random(seed)).contents().get(path) for seed in SEEDS}


# -- what a power loss must leave alone -----------------------------------------------------------


def test_synced_data_under_a_synced_name_always_survives() -> None:
    disk = FaultyDisk(directories=["/d"])
    write(disk, "/d/f", b"precious" * 1_000, durable=True)
    assert outcomes(disk, "/d/f") == {b"precious" * 1_000}


def test_synced_changes_of_every_kind_survive() -> None:
    disk = FaultyDisk(directories=["/d"])
    for name in "abc":
        write(disk, f"/d/{name}", name.encode() * 10, durable=True)
    file = disk.open("/d/a")
    file.write_at(10, b"more")
    file.truncate(12)
    file.sync()
    disk.rename("/d/a", "/d/b")
    disk.remove("/d/c")
    disk.sync_dir("/d")
    for seed in SEEDS:
        assert disk.after_power_loss(Random(seed)).contents() == {"/d/b": b"a" * 10 + b"mo"}


def test_what_survived_one_power_loss_survives_the_next() -> None:
    for seed in SEEDS:
        disk = FaultyDisk(directories=["/d"])
        write(disk, "/d/f", b"x" * 2_000)
        disk = disk.crash(Random(seed))
        found = disk.contents()
        assert disk.crash(Random(seed + 1)).contents() == found


# -- what a power loss may take, and over many seeds does -----------------------------------------


def test_an_unsynced_write_may_be_whole_lost_or_torn_or_only_have_grown_the_file() -> None:
    disk = FaultyDisk()
    write(disk, "/f", b"old", durable=True)
    data = bytes(Random(5).randbytes(2_000))
    disk.open("/f").write_at(3, data)
    found = outcomes(disk, "/f")
    whole = b"old" + data
    assert b"old" in found
    assert whole in found
    assert b"old" + bytes(2_000) in found, "grown, but all zeros"
    tails = [content[3:] for content in found if content is not None]
    prefixes = [tail for tail in tails if 0 < len(tail) < 2_000 and data.startswith(tail)]
    assert any((3 + len(tail)) % 512 == 0 for tail in prefixes), "cut at a sector"
    assert any((3 + len(tail)) % 512 != 0 for tail in prefixes), "cut at a byte"
    grown = [tail for tail in tails if len(tail) == 2_000 and tail != data]
    assert any(tail[:100] == data[:100] and not any(tail[-400:]) for tail in grown), "zero tail"
    assert any(not any(tail[:100]) and tail[-100:] == data[-100:] for tail in grown), "hole"
    assert any(any(tail) and tail[0] != data[0] for tail in grown), "garbage"
    assert all(content is not None and content[:3] == b"old" for content in found)


def test_writes_may_arrive_out_of_order() -> None:
    disk = FaultyDisk()
    write(disk, "/f", b"....", durable=True)
    file = disk.open("/f")
    file.write_at(0, b"1")
    file.write_at(1, b"2")
    assert {b"....", b"1...", b".2..", b"12.."} <= outcomes(disk, "/f")


def test_a_torn_overwrite_mixes_old_and_new() -> None:
    disk = FaultyDisk()
    write(disk, "/f", b"o" * 1_024, durable=True)
    disk.open("/f").write_at(0, b"n" * 1_024)
    assert {b"o" * 512 + b"n" * 512, b"n" * 512 + b"o" * 512} <= outcomes(disk, "/f")


def test_a_truncation_may_be_undone_even_behind_a_later_write() -> None:
    disk = FaultyDisk()
    write(disk, "/f", b"abcdef", durable=True)
    file = disk.open("/f")
    file.truncate(2)
    assert outcomes(disk, "/f") == {b"ab", b"abcdef"}
    file.write_at(2, b"X")
    assert {b"abXdef", b"abX", b"ab", b"abcdef"} <= outcomes(disk, "/f")


def test_a_name_that_was_not_synced_may_be_lost_with_synced_data() -> None:
    disk = FaultyDisk()
    file = disk.open("/f", create=True)
    file.write_at(0, b"abc")
    file.sync()
    assert outcomes(disk, "/f") == {b"abc", None}


def test_a_directory_that_was_not_synced_takes_its_files_along() -> None:
    disk = FaultyDisk()
    disk.make_dir("/d")
    write(disk, "/d/f", b"abc", durable=True)
    assert outcomes(disk, "/d/f") == {b"abc", None}
    disk.sync_dir("/")
    assert outcomes(disk, "/d/f") == {b"abc"}


def test_a_rename_may_be_undone_but_never_halved() -> None:
    disk = FaultyDisk()
    write(disk, "/a", b"A", durable=True)
    write(disk, "/b", b"B", durable=True)
    disk.rename("/a", "/b")
    found = [disk.after_power_loss(Random(seed)).contents() for seed in SEEDS]
    before, after = {"/a": b"A", "/b": b"B"}, {"/b": b"A"}
    assert before in found and after in found
    assert all(contents in (before, after) for contents in found)


def test_a_removal_may_be_undone() -> None:
    disk = FaultyDisk()
    write(disk, "/a", b"A", durable=True)
    disk.remove("/a")
    assert outcomes(disk, "/a") == {b"A", None}
    disk.sync_dir("/")
    assert outcomes(disk, "/a") == {None}


def test_changes_of_different_names_are_independent() -> None:
    disk = FaultyDisk()
    for name in "ab":
        disk.open(f"/{name}", create=True)
    found = {frozenset(disk.after_power_loss(Random(seed)).contents()) for seed in SEEDS}
    assert found == {frozenset(), frozenset({"/a"}), frozenset({"/b"}), frozenset({"/a", "/b"})}


def test_changes_of_one_name_arrive_in_order() -> None:
    disk = FaultyDisk()
    for content in (b"1", b"2", b"3"):
        write(disk, "/new", content)
        disk.open("/new").sync()
        disk.rename("/new", "/f")
    assert outcomes(disk, "/f") == {None, b"1", b"2", b"3"}
    for seed in SEEDS:
        contents = disk.after_power_loss(Random(seed)).contents()
        # Renamed or not, a file has one name, and an older one never comes after a newer.
        assert len(contents) < 2 or contents["/f"] < contents["/new"]


def test_a_move_between_directories_needs_both_synced_and_is_never_halved() -> None:
    disk = FaultyDisk(directories=["/x", "/y"])
    write(disk, "/x/f", b"f", durable=True)
    disk.rename("/x/f", "/y/f")
    disk.sync_dir("/y")
    names = {tuple(disk.after_power_loss(Random(seed)).contents()) for seed in SEEDS}
    assert names == {("/x/f",), ("/y/f",)}
    disk.sync_dir("/x")
    assert outcomes(disk, "/y/f") == {b"f"}


def test_a_file_moved_to_or_from_a_directory_that_comes_or_goes_is_never_lost() -> None:
    disk = FaultyDisk(directories=["/old"])
    write(disk, "/old/f", b"f", durable=True)
    write(disk, "/g", b"g", durable=True)
    disk.make_dir("/new/deep")
    disk.rename("/g", "/new/deep/g")
    disk.rename("/old/f", "/f")
    disk.remove_tree("/old")
    for seed in SEEDS:
        assert sorted(disk.after_power_loss(Random(seed)).contents().values()) == [b"f", b"g"]


def test_directories_that_swap_places_are_never_lost() -> None:
    disk = FaultyDisk(directories=["/a/b"])
    write(disk, "/a/b/f", b"f", durable=True)
    write(disk, "/a/g", b"g", durable=True)
    disk.rename("/a/b", "/b")
    disk.rename("/a", "/b/a")
    for seed in SEEDS:
        assert sorted(disk.after_power_loss(Random(seed)).contents().values()) == [b"f", b"g"]


def directories_below(disk: FaultyDisk, path: str) -> list[str]:
    found = [f"{path}/{name}" for name in disk.list_dir(path or "/")]
    found = [below for below in found if disk.is_dir(below)]
    return found + [deeper for below in found for deeper in directories_below(disk, below)]


def test_no_mix_of_moves_and_syncs_loses_or_doubles_a_file() -> None:
    for seed in range(rounds(100, 500)):
        rng = Random(seed)
        disk = FaultyDisk(directories=["/0/1/2", "/3"])
        for number in range(5):
            place = rng.choice(directories_below(disk, ""))
            write(disk, f"{place}/f{number}", b"%d" % number, durable=True)
        for step in range(rng.randrange(1, 25)):
            directories = directories_below(disk, "")
            source = rng.choice([*disk.contents(), *directories])
            target = f"{rng.choice([*directories, ''])}/n{step}"
            action = rng.choice(("move", "move", "make", "sync", "tidy"))
            if action == "move" and not target.startswith(source + "/"):
                disk.rename(source, target)
            elif action == "make":
                disk.make_dir(target)
            elif action == "sync":
                disk.sync_dir(rng.choice([*directories, "/"]))
            elif action == "tidy":
                for directory in directories:
                    if not disk.list_dir(directory):
                        disk.remove_tree(directory)
        for loss in range(10):
            found = disk.after_power_loss(Random(loss)).contents()
            assert sorted(found.values()) == [b"0", b"1", b"2", b"3", b"4"], f"seed {seed}"


def test_removed_directories_leave_nothing_behind_in_memory() -> None:
    disk = FaultyDisk()
    for number in range(50):
        disk.make_dir(f"/{number}")
        write(disk, f"/{number}/f", b"x")
        disk.remove_tree(f"/{number}")
        disk.sync_dir("/")
    assert disk._tree._pending == []
