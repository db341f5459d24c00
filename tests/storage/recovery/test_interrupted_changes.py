"""What a start makes of a directory in which a change was under way, told by names alone."""

import random

import pytest

from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, leader_batch, open_log, read_records
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.recovery.interrupted_changes import finish_interrupted_changes
from headwater.storage.segments.segment import LogSegment
from headwater.storage.segments.segment_files import (
    CLEANED,
    DELETED,
    HIDDEN_INDEX,
    OFFSET_INDEX,
    SWAP,
    TRANSACTION_INDEX,
    segment_path,
)
from headwater.wire.records import iter_batch_headers
from tests.support.models.hidden_log import delayed_batch
from tests.support.tiers import rounds


def write_segment(
    disk: FaultyDisk, base_offset: int, batches: list[bytes], stage: str = ""
) -> None:
    """A segment's files under any stage, all of it durable."""
    segment = LogSegment(
        disk,
        HandleCache(disk, 8),
        DIRECTORY,
        base_offset,
        LogConfig(index_interval_bytes=0),
        created_ms=NOW_MS,
        stage=stage,
    )
    for batch in batches:
        segment.append(batch, [header for _, header in iter_batch_headers(batch)])
    segment.seal()
    segment.sync()
    segment.close()
    disk.sync_dir(DIRECTORY)


def new_directory(seed: int = 0) -> FaultyDisk:
    """Segments at 0, 10 and 20, the last one active, each with offsets 10n to 10n + 4."""
    disk = FaultyDisk(seed, directories=[DIRECTORY])
    for base_offset in (0, 10, 20):
        write_segment(disk, base_offset, old_batches(base_offset))
    return disk


def old_batches(base_offset: int) -> list[bytes]:
    return [leader_batch(base_offset + number, b"old") for number in range(5)]


def cleaned_batches() -> list[bytes]:
    """What compaction made of the segments at 0 and 10."""
    return [leader_batch(offset, b"cleaned") for offset in (3, 11, 14)]


def names(disk: FaultyDisk) -> list[str]:
    return disk.list_dir(DIRECTORY)


def base_offsets(disk: FaultyDisk) -> set[int]:
    return {int(name[:20]) for name in names(disk) if name.endswith(".log")}


def contents_of(disk: FaultyDisk) -> list[tuple[int, bytes | None]]:
    log = open_log(disk, DIRECTORY, recovery_point=20)
    return [(record.offset, record.value) for record in read_records(log, 0)]


BEFORE = [(base + number, b"old") for base in (0, 10, 20) for number in range(5)]
AFTER = [(3, b"cleaned"), (11, b"cleaned"), (14, b"cleaned"), *BEFORE[10:]]


def test_a_sound_directory_is_left_as_it_is() -> None:
    disk = new_directory()
    before = disk.contents()
    disk.operations.clear()
    finish_interrupted_changes(disk, DIRECTORY)
    assert disk.contents() == before
    assert {operation for operation, _ in disk.operations} == {"list_dir"}


def test_what_was_cleaned_but_not_named_swap_is_thrown_away() -> None:
    disk = new_directory()
    write_segment(disk, 0, cleaned_batches(), CLEANED)
    finish_interrupted_changes(disk, DIRECTORY)
    assert not any(name.endswith(CLEANED) for name in names(disk))
    assert contents_of(disk) == BEFORE


@pytest.mark.parametrize("renamed", [HIDDEN_INDEX, OFFSET_INDEX, None])
def test_a_swap_never_loses_what_hides_batches(renamed: str | None) -> None:
    """Of several renames a crash may keep any one, that of the hidden index alone too."""
    disk = FaultyDisk(directories=[DIRECTORY])
    write_segment(disk, 20, old_batches(20))
    hidden = (14).to_bytes(8, "big") + delayed_batch(b"hidden")[8:]
    write_segment(disk, 0, [leader_batch(3, b"cleaned"), hidden], SWAP)
    disk.open(segment_path(DIRECTORY, 0, TRANSACTION_INDEX, SWAP), create=True)
    if renamed is not None:
        path = segment_path(DIRECTORY, 0, renamed)
        disk.rename(path + SWAP, path)
    log = open_log(disk, DIRECTORY, recovery_point=21)
    first = log.segments[0]
    assert first.hidden is not None
    assert [each.first_offset for each in first.hidden] == [14]
    assert not any(name.endswith(SWAP) for name in names(disk))


def test_what_was_deleted_or_temporary_is_removed() -> None:
    disk = new_directory()
    write_segment(disk, 5, old_batches(5), DELETED)
    for name in (
        "leader-epoch-checkpoint.tmp",
        f"{30:020}.snapshot.tmp",
        f"{9:020}.snapshot.deleted",
    ):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    finish_interrupted_changes(disk, DIRECTORY)
    assert base_offsets(disk) == {0, 10, 20}
    assert len(names(disk)) == 9


def test_foreign_files_are_left_alone() -> None:
    disk = new_directory()
    for name in ("partition.metadata", "README", "0.log.deleted"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    finish_interrupted_changes(disk, DIRECTORY)
    assert {"partition.metadata", "README", "0.log.deleted"} <= set(names(disk))


def test_a_swap_takes_the_place_of_all_that_it_covers() -> None:
    disk = new_directory()
    write_segment(disk, 0, cleaned_batches(), SWAP)
    finish_interrupted_changes(disk, DIRECTORY)
    assert base_offsets(disk) == {0, 20}
    assert not any(name.endswith(SWAP) for name in names(disk))
    assert contents_of(disk) == AFTER


def test_a_damaged_swap_is_finished_with_what_can_be_read_of_it() -> None:
    disk = new_directory()
    write_segment(disk, 0, cleaned_batches(), SWAP)
    file = disk.open(f"{DIRECTORY}/{0:020}.log{SWAP}")
    file.truncate(file.size() - 1)
    finish_interrupted_changes(disk, DIRECTORY)
    # It reached to offset 11 at least, so it covers the segment at 10.
    assert base_offsets(disk) == {0, 20}


def test_two_swaps_are_both_finished() -> None:
    disk = new_directory()
    write_segment(disk, 0, [leader_batch(4, b"cleaned")], SWAP)
    write_segment(disk, 10, [leader_batch(12, b"cleaned")], SWAP)
    finish_interrupted_changes(disk, DIRECTORY)
    assert contents_of(disk)[:2] == [(4, b"cleaned"), (12, b"cleaned")]
    assert base_offsets(disk) == {0, 10, 20}


@pytest.mark.parametrize("moved", [(), (".txnindex",), (".timeindex", ".index")])
def test_a_swap_of_which_some_names_are_live_already_is_finished(moved: tuple[str, ...]) -> None:
    disk = new_directory()
    write_segment(disk, 0, cleaned_batches(), SWAP)
    for suffix in moved:
        if disk.exists(f"{DIRECTORY}/{0:020}{suffix}{SWAP}"):
            disk.rename(f"{DIRECTORY}/{0:020}{suffix}{SWAP}", f"{DIRECTORY}/{0:020}{suffix}")
    finish_interrupted_changes(disk, DIRECTORY)
    assert contents_of(disk) == AFTER


def test_a_swap_whose_log_is_live_already_gets_its_indexes() -> None:
    """As the disk may bring it back: renames may arrive in any order since the last sync."""
    disk = new_directory()
    write_segment(disk, 0, cleaned_batches(), SWAP)
    for base_offset in (0, 10):
        for suffix in (".log", ".index", ".timeindex"):
            disk.remove(f"{DIRECTORY}/{base_offset:020}{suffix}")
    disk.rename(f"{DIRECTORY}/{0:020}.log.swap", f"{DIRECTORY}/{0:020}.log")
    finish_interrupted_changes(disk, DIRECTORY)
    assert contents_of(disk) == AFTER


def test_indexes_without_a_log_are_removed_and_snapshots_are_not() -> None:
    disk = new_directory()
    disk.remove(f"{DIRECTORY}/{10:020}.log")
    disk.open(f"{DIRECTORY}/{10:020}.snapshot", create=True)
    disk.open(f"{DIRECTORY}/{40:020}.txnindex", create=True)
    finish_interrupted_changes(disk, DIRECTORY)
    left = [name for name in names(disk) if int(name[:20]) in (10, 40)]
    assert left == [f"{10:020}.snapshot"]


def test_the_power_may_go_at_any_moment_of_finishing() -> None:
    for seed in range(rounds(small=3, full=30)):
        change_count = 0
        while True:
            disk = new_directory(seed)
            write_segment(disk, 0, cleaned_batches(), SWAP)
            disk.before_operation = PowerCut(change_count)
            try:
                finish_interrupted_changes(disk, DIRECTORY)
            except SimulatedCrash:
                change_count += 1
                assert contents_of(disk.crash(random.Random(seed + change_count))) == AFTER
            else:
                break
        assert change_count > 8
