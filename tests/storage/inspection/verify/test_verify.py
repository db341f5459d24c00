"""What `log verify` says of sound logs, in every state that a broker can leave or have them in."""

import hashlib
import os
import struct
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directories
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, new_disk, open_log
from headwater.sim.campaigns.logs import append as append_values
from headwater.storage.checkpoints import (
    RECOVERY_POINT,
    OffsetCheckpoint,
)
from headwater.storage.directories.clean_shutdown import CleanShutdownMarker
from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.storage.inspection.verify.findings import Report
from headwater.storage.inspection.verify.verify import (
    NotALogDirectoryError,
    count_log_bytes,
    verify_directory,
    verify_into,
)
from headwater.storage.log_config import LogConfig
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_to
from headwater.wire.records import MAGIC_V1, Compression, Record, encode_legacy
from tests.support.logs.varied_log import SMALL_SEGMENTS, write_varied_log
from tests.support.logs.verification import problems, verify

LOCK = ".lock"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A broker's directory after a clean stop, with two partitions of one topic."""
    directory = tmp_path / "data"
    logs = open_directories(DiskFiles(), [str(directory)], SMALL_SEGMENTS)
    for number in range(2):
        log = logs.create(TopicPartition("orders", number), TOPIC_ID, NOW_MS)
        for value in range(40):
            append(log, b"value %d" % value)
    logs.shutdown(broker_epoch=5)
    return directory


def tear(log: Path, size: int = 20) -> None:
    """Leave only a part of the last batch, as a crash does in the middle of an append."""
    os.truncate(log, log.stat().st_size - size)


def active_log(partition: Path) -> Path:
    return max(partition.glob("*.log"))


# -- sound ---------------------------------------------------------------------------------------


def test_a_log_is_sound_at_any_moment_of_its_life(tmp_path: Path) -> None:
    files, directory = DiskFiles(), tmp_path / "topic-0"
    log = open_log(files, str(directory), SMALL_SEGMENTS)
    assert verify(directory) == []
    for number in range(200):
        append_values(log, b"value %d" % number, timestamp=NOW_MS + number % 17)
        if number % 20 == 0:
            assert verify(directory) == []
    truncate_to(log, 120, NOW_MS)
    assert problems(directory) == []
    append_values(log, b"after the truncation")
    log.raise_high_watermark(log.log_end_offset)
    delete_records_before(log, 30)
    assert problems(directory) == []
    log.close()
    reopened = open_log(files, str(directory), SMALL_SEGMENTS, is_clean=True)
    append_values(reopened, b"after a clean stop")
    assert problems(directory) == []
    recovered = open_log(files, str(directory), SMALL_SEGMENTS)
    append_values(recovered, b"after a recovery")
    assert problems(directory) == []
    recovered.close()
    reopened.close()


def test_it_reads_the_simulated_disk_too() -> None:
    disk = new_disk()
    write_varied_log(disk, DIRECTORY)
    assert verify_directory(disk, DIRECTORY, deep=True) == []
    assert verify_directory(disk, "/data", deep=True) == []


def test_a_log_of_old_messages_is_sound(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    directory.mkdir()
    records = [Record(number, NOW_MS + number, b"key", b"value") for number in range(4)]
    wrapped = [record._replace(offset=record.offset + 4) for record in records]
    (directory / f"{0:020d}.log").write_bytes(
        encode_legacy(records, magic=MAGIC_V1)
        + encode_legacy(wrapped, magic=MAGIC_V1, compression=Compression.GZIP)
    )
    for suffix in (".index", ".timeindex"):
        (directory / f"{0:020d}{suffix}").touch()
    report = Report(deep=True)
    verify_into(report, ReadOnlyFiles(), str(directory))
    assert report.findings == []
    assert (report.batch_count, report.record_count) == (5, 8)


def test_counts_and_progress(tmp_path: Path) -> None:
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    told: list[int] = []
    report = Report(on_bytes=told.append)
    verify_into(report, ReadOnlyFiles(), str(tmp_path))
    assert (report.partition_count, report.segment_count) == (1, 3)
    assert (report.batch_count, report.record_count) == (29, 78)
    assert report.size_bytes == sum(told) == size == count_log_bytes(ReadOnlyFiles(), str(tmp_path))


# -- which directory -----------------------------------------------------------------------------


def test_partition_log_directory_and_directory_of_those(data: Path) -> None:
    for directory, partition_count in ((data / "orders-1", 1), (data, 2), (data.parent, 2)):
        report = Report()
        verify_into(report, ReadOnlyFiles(), f"{directory}/")
        assert report.findings == []
        assert report.partition_count == partition_count


@pytest.mark.parametrize("name", ["nothing", "file", "empty"])
def test_a_directory_without_logs_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotALogDirectoryError, match=name):
        verify(tmp_path / name)


# -- nothing changes -----------------------------------------------------------------------------


def state_of(directory: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [directory, *directory.rglob("*")]
    }


def test_it_changes_nothing(data: Path) -> None:
    tear(active_log(data / "orders-0"))
    (data / "orders-0" / f"{0:020d}.index").unlink()
    (data / "orders-1" / f"{0:020d}.log.swap").touch()
    before = state_of(data)
    assert verify(data)
    assert state_of(data) == before


# -- clean, unclean, in use ----------------------------------------------------------------------


def test_a_torn_end_is_a_problem_after_a_clean_stop_only(data: Path) -> None:
    path = active_log(data / "orders-0")
    tear(path)
    torn = [finding for finding in problems(data) if finding.path == str(path)]
    assert len(torn) == 1
    assert "of which" in torn[0].what
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    OffsetCheckpoint(DiskFiles(), str(data / RECOVERY_POINT)).write({})
    findings = verify(data)
    assert [f.remedy for f in findings if f.path == str(path)] == ["The next start cuts it off."]
    assert not any(finding.is_problem for finding in findings)


def test_a_torn_end_in_front_of_the_recovery_point_is_a_problem(data: Path) -> None:
    tear(active_log(data / "orders-0"))
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    (found,) = problems(data)
    assert found.path == str(data / RECOVERY_POINT)
    assert "the recovery point of orders-0 is 40, but its log ends at 39" in found.what


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\0\0\0"])
def test_blank_space_behind_the_log_is_a_torn_end(data: Path, tail: bytes) -> None:
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    path = active_log(data / "orders-0")
    path.write_bytes(path.read_bytes() + tail)
    (found,) = verify(data)
    assert not found.is_problem
    assert found.path == str(path)


def test_beside_a_broker_an_end_that_is_being_written_is_no_problem(data: Path) -> None:
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    lock = DiskFiles().lock(str(data / LOCK))
    try:
        path = active_log(data / "orders-0")
        path.write_bytes(path.read_bytes() + path.read_bytes()[:70])
        (found,) = verify(data)
        assert not found.is_problem
        assert found.remedy == "The broker may be writing it just now."
    finally:
        lock.release()
    assert [finding.remedy for finding in verify(data)] == ["The next start cuts it off."]


def test_beside_a_broker_at_work(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    logs = open_directories(DiskFiles(), [str(directory)], SMALL_SEGMENTS)
    log = logs.create(TopicPartition("orders", 0), TOPIC_ID, NOW_MS)
    for number in range(60):
        append(log, b"value %d" % number)
        if number % 10 == 0:
            assert verify(directory) == []
    logs.shutdown(broker_epoch=1)
    assert verify(directory) == []


def test_beside_a_broker_whose_newest_index_entries_wait(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    logs = open_directories(DiskFiles(), [str(directory)], LogConfig())
    log = logs.create(TopicPartition("orders", 0), TOPIC_ID, NOW_MS)
    for _ in range(20):
        append(log, b"x" * 100_000)
    index = active_log(directory / "orders-0").with_suffix(".index")
    assert index.stat().st_size == 0
    assert verify(directory) == []
    logs.shutdown(broker_epoch=1)
    assert index.stat().st_size > 0
    assert verify(directory) == []


def test_indexes_that_the_next_start_rebuilds_are_only_worth_a_note(data: Path) -> None:
    sealed = data / "orders-0" / f"{0:020d}.index"
    sealed.write_bytes(struct.pack(">ii", 3, 7))
    assert [f.path for f in problems(data)] == [str(sealed)]
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    # The recovery point lies behind this segment, so the next start trusts it.
    assert [f.path for f in problems(data)] == [str(sealed)]
    OffsetCheckpoint(DiskFiles(), str(data / RECOVERY_POINT)).write({})
    (found,) = verify(data)
    assert (found.path, found.is_problem) == (str(sealed), False)
    assert found.remedy == "The next start rebuilds it from the log."


def test_preallocated_indexes_belong_to_a_segment_in_use(data: Path) -> None:
    indexes = [active_log(data / "orders-0").with_suffix(s) for s in (".index", ".timeindex")]
    for index in indexes:
        index.write_bytes(index.read_bytes() + bytes(1200))
    assert {finding.path for finding in problems(data)} == set(map(str, indexes))
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    assert verify(data) == []
