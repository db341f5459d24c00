"""Opening a log after an unclean stop: what is scanned, rebuilt, cut and kept."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    SMALL_SEGMENTS,
    append,
    append_numbered,
    end_transaction,
    leader_batch,
    log_of_batches,
    new_disk,
    offsets_of,
    open_log,
    path_of,
    sized_batch,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.disk.handles import HandleCache
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.snapshot import list_snapshots
from headwater.storage.recovery.loader import LogLoader
from headwater.storage.recovery.recovered_logs import RecoveredLogs
from headwater.storage.retention import apply_retention, delete_records_before
from headwater.wire.records import Record, encode_legacy


def reads_of(disk: FaultyDisk, suffix: str) -> list[str]:
    """The base offsets of the files of this kind that were read."""
    return sorted(
        {
            path[-20 - len(suffix) : -len(suffix)].lstrip("0") or "0"
            for operation, path in disk.operations
            if operation == "read" and path.endswith(suffix)
        }
    )


def test_recovery_scans_from_the_segment_of_the_recovery_point_on() -> None:
    for recovery_point, scanned in ((0, ["0", "10", "15", "5"]), (11, ["10", "15"]), (18, ["15"])):
        disk = new_disk()
        log_of_batches(disk).flush()
        disk.operations.clear()
        log = open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=recovery_point)
        assert reads_of(disk, ".log") == scanned
        assert offsets_of(log) == list(range(18))


def test_damage_in_front_of_the_recovery_point_is_not_looked_for() -> None:
    disk = new_disk()
    log_of_batches(disk).flush()
    disk.open(path_of(5, ".log")).write_at(190, b"\xff\xff")
    assert open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=11).log_end_offset == 18
    assert open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=9).log_end_offset == 6


def test_the_indexes_of_a_segment_that_ends_at_the_recovery_point_are_not_trusted() -> None:
    """They are synced only some time after it was sealed, which may be after the checkpoint."""
    disk = new_disk()
    log = log_of_batches(disk, 5)
    log.flush()
    recovery_point = log.recovery_point
    log.append_as_follower(sized_batch(5, 100), now_ms=NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    filled_bytes = disk.contents()[path_of(0, ".index")]
    disk.open(path_of(0, ".index")).write_at(0, b"\xff" * 8)
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=recovery_point)
    assert disk.contents()[path_of(0, ".index")] == filled_bytes
    assert offsets_of(log) == list(range(6))


@given(st.integers(0, 1799), st.integers(1, 255))
def test_recovery_cuts_at_the_first_batch_that_is_not_sound(place: int, flip: int) -> None:
    disk = new_disk()
    log_of_batches(disk).flush()
    offset, position = divmod(place, 100)
    # Offsets and epochs are covered by no checksum; those of a sound disk are right.
    position = 16 + position % 84
    base_offset = offset // 5 * 5
    file = disk.open(path_of(base_offset, ".log"))
    place = (offset - base_offset) * 100 + position
    file.write_at(place, bytes([file.read_at(place, 1)[0] ^ flip]))
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    assert log.log_end_offset == offset
    assert offsets_of(log) == list(range(offset))
    assert append(log, b"v").base_offset == offset


@given(st.integers(0, 300))
def test_recovery_cuts_a_torn_end(torn_bytes: int) -> None:
    disk = new_disk()
    log_of_batches(disk).flush()
    file = disk.open(path_of(15, ".log"))
    file.truncate(300 - torn_bytes)
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    assert log.log_end_offset == 18 - -(-torn_bytes // 100)
    assert file.size() == log.segments.active.size_bytes


def test_recovery_rebuilds_the_same_indexes() -> None:
    disk = new_disk()
    log = log_of_batches(disk)
    append_numbered(log, 0, b"v", transactional=True)
    end_transaction(log, 7, commit=False)
    log.flush()
    expected = disk.contents()
    suffixes = (".index", ".timeindex", ".txnindex")
    for path in expected:
        if path.endswith(suffixes):
            disk.open(path).truncate(0)
    recovered = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    for segment in recovered.segments:
        for suffix in suffixes:
            path = path_of(segment.base_offset, suffix)
            assert disk.contents().get(path) == expected.get(path), path


def test_what_recovery_found_is_durable_before_the_log_is_used() -> None:
    disk = new_disk()
    log_of_batches(
        disk
    )  # Not flushed: as after a crash of the process, it is in the page cache alone.
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    assert (log.flushed_offset, log.recovery_point) == (18, 18)
    for seed in range(5):
        after = open_log(disk.after_power_loss(random.Random(seed)), DIRECTORY, SMALL_SEGMENTS)
        assert offsets_of(after) == list(range(18))


def test_records_out_of_order_are_not_sound() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    log.append_as_follower(leader_batch(0, b"a") + leader_batch(5, b"b"), now_ms=NOW_MS)
    log.flush()
    file = disk.open(path_of(0, ".log"))
    file.write_at(file.size(), leader_batch(3, b"late"))
    assert open_log(disk, DIRECTORY).log_end_offset == 6


@pytest.mark.parametrize(
    "content", [b"\x07" * 34, bytes(34), b"\x07" * 50], ids=["noise", "zeros", "torn"]
)
def test_a_torn_transaction_index_is_rebuilt(content: bytes) -> None:
    disk = new_disk()
    log = log_of_batches(disk)
    append_numbered(log, 0, b"v", transactional=True)
    end_transaction(log, 7, commit=False)
    log.flush()
    expected = list(log.segments.active.transaction_index)
    file = disk.open(path_of(log.segments.active.base_offset, ".txnindex"))
    file.truncate(0)
    file.write_at(0, content)
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    assert list(log.segments.active.transaction_index) == expected


def test_producers_and_transactions_are_replayed() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    for sequence in range(7):
        append_numbered(log, sequence, b"v" * 40)
    append_numbered(log, 0, b"v", producer_id=8, transactional=True)
    log.flush()
    for offset in list_snapshots(disk, DIRECTORY):
        disk.remove(path_of(offset, ".snapshot"))
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=8)
    for sequence in range(2, 7):
        assert append_numbered(log, sequence, b"v" * 40).is_duplicate
    log.raise_high_watermark(8)
    assert log.last_stable_offset == 7


def test_a_snapshot_from_before_the_first_segment_is_not_used() -> None:
    """Retention removed it, and a crash brought it back: its removal was not synced."""
    disk = new_disk()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS)
    append_numbered(log, 0, b"v" * 300, transactional=True)
    log.roll(NOW_MS)
    end_transaction(log, 7, commit=True)
    log.roll(NOW_MS)
    append_numbered(log, 1, b"v" * 300)
    log.raise_high_watermark(3)
    old = disk.contents()[path_of(1, ".snapshot")]
    delete_records_before(log, 2)
    apply_retention(log, NOW_MS)
    log.flush()
    for offset in list_snapshots(disk, DIRECTORY):
        disk.remove(path_of(offset, ".snapshot"))
    disk.open(path_of(1, ".snapshot"), create=True).write_at(0, old)
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS, recovery_point=3, log_start_offset=2)
    log.raise_high_watermark(3)
    assert (log.log_end_offset, log.last_stable_offset) == (3, 3)


def test_a_log_of_old_messages_is_recovered_and_read() -> None:
    disk = FaultyDisk(directories=[DIRECTORY])
    records = [Record(number, NOW_MS + number, b"k", b"v%d" % number) for number in range(6)]
    data = encode_legacy(records[:3], magic=0) + encode_legacy(records[3:], magic=1)
    disk.open(path_of(0, ".log"), create=True).write_at(0, data)
    log = open_log(disk, DIRECTORY)
    assert log.log_end_offset == 6
    region = log.read(4, 10**6).region
    assert region is not None
    assert log.offset_for_timestamp(NOW_MS + 5) == (NOW_MS + 5, 5)
    append(log, b"new")
    assert log.log_end_offset == 7


# -- gaps ----------------------------------------------------------------------------------------


def with_gap(*, gaps_are_losses: bool, recovery_point: int) -> PartitionLog:
    """The segment at 5 lost its last batch, at a batch boundary."""
    disk = new_disk()
    log_of_batches(disk).flush()
    disk.open(path_of(5, ".log")).truncate(400)
    return LogLoader(
        PARTITION,
        DIRECTORY,
        SMALL_SEGMENTS,
        disk,
        HandleCache(disk, 16),
        now_ms=NOW_MS,
        recovery_point=recovery_point,
        gaps_are_losses=gaps_are_losses,
    ).load()


def test_what_follows_a_loss_is_not_kept() -> None:
    assert offsets_of(with_gap(gaps_are_losses=True, recovery_point=0)) == list(range(9))
    assert offsets_of(with_gap(gaps_are_losses=True, recovery_point=9)) == list(range(9))


def test_a_gap_in_front_of_the_recovery_point_is_compactions() -> None:
    log = with_gap(gaps_are_losses=True, recovery_point=10)
    assert offsets_of(log) == [*range(9), *range(10, 18)]


def test_in_a_directory_of_unknown_origin_gaps_are_kept() -> None:
    log = with_gap(gaps_are_losses=False, recovery_point=0)
    assert offsets_of(log) == [*range(9), *range(10, 18)]


def test_what_recovery_took_is_counted() -> None:
    def loader(recovery_point: int, *, is_clean: bool = False) -> LogLoader:
        return LogLoader(
            PARTITION,
            DIRECTORY,
            SMALL_SEGMENTS,
            disk,
            HandleCache(disk, 16),
            now_ms=NOW_MS,
            is_clean=is_clean,
            recovery_point=recovery_point,
        )

    disk = new_disk()
    log_of_batches(disk).close()
    recovered = RecoveredLogs()
    for opening in (loader(0, is_clean=True), loader(18), loader(11)):
        opening.load()
        recovered.add(opening.scanned_bytes, opening.cut_bytes)
    assert recovered == RecoveredLogs(3, 2, 300 + 800, 0)
    assert str(recovered) == "3 logs opened, 2 recovered from 1,100 bytes"
    # The first batch of the third segment is broken: all behind it goes.
    disk.open(path_of(10, ".log")).write_at(90, b"\xff\xff")
    broken = loader(11)
    broken.load()
    assert (broken.scanned_bytes, broken.cut_bytes) == (500, 500 + 300)
    recovered = RecoveredLogs()
    recovered.add(broken.scanned_bytes, broken.cut_bytes)
    assert str(recovered) == ("1 log opened, 1 recovered from 500 bytes, of which 800 were cut off")
