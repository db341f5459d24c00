import contextlib
import random

import pytest

from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directories, orders
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.partition_metadata import read_topic_id
from headwater.storage.errors import LogStorageError
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_to
from tests.support.logs.moving_logs import (
    CONFIG,
    PATHS,
    copy_all,
    directories_with_log,
    started,
    values_of,
)
from tests.support.tiers import rounds


def test_a_log_moves_with_all_it_holds() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, log = directories_with_log(disk)
    expected = values_of(log)
    move = started(directories)
    assert move.log.directory.startswith("/b/orders-0.") and move.lag == 20
    copy_all(move)
    append(log, b"last")
    told: list[PartitionLog] = []
    directories.moves.on_moved = told.append
    moved = directories.moves.complete(move, NOW_MS)
    assert told == [moved] and directories.find(orders(0)) is moved
    assert moved.directory == "/b/orders-0" and values_of(moved) == [*expected, b"last"]
    assert moved.high_watermark == 20 and moved.flushed_offset == 21
    assert moved.leader_epochs.entries == log.leader_epochs.entries
    assert not directories.moves
    append(moved, b"more")
    with pytest.raises(LogStorageError):
        append(log, b"to the old one")
    assert [entry.kind for entry in list_entries(disk, "/a")] == [EntryKind.DELETED]
    assert read_topic_id(disk, "/b/orders-0") == TOPIC_ID
    directories.shutdown(1)
    found = open_directories(disk, PATHS, CONFIG).find(orders(0))
    assert found is not None and values_of(found) == [*expected, b"last", b"more"]


def test_the_copy_follows_no_further_than_the_high_watermark() -> None:
    directories, _ = directories_with_log(FaultyDisk(directories=PATHS), high_watermark=6)
    move = started(directories)
    copy_all(move)
    assert move.copy(NOW_MS) == 0
    assert move.log.log_end_offset == 6


def test_a_truncation_below_the_high_watermark_is_followed() -> None:
    directories, log = directories_with_log(FaultyDisk(directories=PATHS))
    move = started(directories)
    copy_all(move)
    truncate_to(log, 8, NOW_MS)
    append(log, b"of another leader", leader_epoch=5)
    for _ in range(12):
        append(log, b"x", leader_epoch=5)
    log.raise_high_watermark(log.log_end_offset)
    moved = directories.moves.complete(move, NOW_MS)
    assert values_of(moved)[7:10] == [b"3+", b"of another leader", b"x"]
    assert values_of(moved) == values_of(log)


def test_deleted_records_stay_deleted_also_within_a_batch() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, log = directories_with_log(disk)
    delete_records_before(log, 7)
    move = started(directories)
    copy_all(move)
    moved = directories.moves.complete(move, NOW_MS)
    assert moved.log_start_offset == 7 and moved.log_end_offset == 20
    assert values_of(moved) == values_of(log)
    found = open_directories(disk.crash(random.Random(0)), PATHS, CONFIG).find(orders(0))
    assert found is not None and found.log_start_offset == 7


def test_records_deleted_ahead_of_the_copy_are_skipped() -> None:
    directories, log = directories_with_log(FaultyDisk(directories=PATHS))
    move = started(directories)
    move.copy(NOW_MS, max_bytes=100)
    delete_records_before(log, 13)
    copy_all(move)
    moved = directories.moves.complete(move, NOW_MS)
    assert moved.log_start_offset == 13 and values_of(moved) == values_of(log)


def test_an_emptied_log_moves_too() -> None:
    directories, log = directories_with_log(FaultyDisk(directories=PATHS))
    delete_records_before(log, 20)
    moved = directories.moves.complete(started(directories), NOW_MS)
    assert (moved.log_start_offset, moved.log_end_offset) == (20, 20)
    append(moved, b"a")
    assert values_of(moved) == [b"a"]


def test_when_the_old_disk_fails_at_the_last_moment_the_copy_serves() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, log = directories_with_log(disk)
    expected = values_of(log)
    move = started(directories)
    copy_all(move)
    disk.faults.append(Fault({"rename"}, "/a"))
    moved = directories.moves.complete(move, NOW_MS)
    assert directories.find(orders(0)) is moved and values_of(moved) == expected
    assert [each.path for each in directories.online()] == ["/b"]
    append(moved, b"more")
    directories.shutdown(1)
    disk.faults.clear()
    again = open_directories(disk, PATHS, CONFIG)
    found = again.find(orders(0))
    assert found is not None and found.directory == "/b/orders-0"
    assert values_of(found) == [*expected, b"more"]
    assert [entry.kind for entry in list_entries(disk, "/a")] == [EntryKind.STRAY]


def test_a_power_loss_at_any_moment_of_the_take_over_loses_nothing() -> None:
    cut = PowerCut(-1)
    disk = FaultyDisk(directories=PATHS)
    directories, _ = directories_with_log(disk)
    move = started(directories)
    copy_all(move)
    disk.before_operation = cut
    directories.moves.complete(move, NOW_MS)
    assert cut.count > 10
    outcomes = set()
    for at in range(cut.count + 1):
        for seed in range(rounds(small=3, full=30)):
            disk = FaultyDisk(seed, directories=PATHS)
            directories, log = directories_with_log(disk)
            log.flush()
            expected = values_of(log)
            move = started(directories)
            copy_all(move)
            disk.before_operation = PowerCut(at)
            with contextlib.suppress(SimulatedCrash):
                directories.moves.complete(move, NOW_MS)
                assert at == cut.count
            after = open_directories(disk.crash(random.Random(seed)), PATHS, CONFIG)
            found = after.find(orders(0))
            assert found is not None, f"cut before change {at}, seed {seed}"
            assert values_of(found) == expected, f"cut before change {at}, seed {seed}"
            outcomes.add((found.directory, len(after.moves) > 0))
    assert outcomes == {("/a/orders-0", True), ("/a/orders-0", False), ("/b/orders-0", False)}
