"""What `log verify` says of a log directory: what is in it, and the files at its top."""

from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directories
from headwater.sim.campaigns.logs import NOW_MS, PARTITION
from headwater.storage.checkpoints import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.directories.clean_shutdown import CleanShutdownMarker
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.storage.inspection.verify.findings import Report
from headwater.storage.inspection.verify.verify import (
    verify_into,
)
from headwater.storage.log_config import LogConfig
from tests.support.logs.varied_log import SMALL_SEGMENTS, write_varied_log
from tests.support.logs.verification import problems, verify


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


# -- leftovers and strangers ---------------------------------------------------------------------


def test_leftovers_are_named(data: Path) -> None:
    partition = data / "orders-0"
    for stage in (".cleaned", ".swap", ".deleted"):
        for suffix in (".log", ".index", ".timeindex"):
            (partition / f"{7:020d}{suffix}{stage}").touch()
    (partition / "leader-epoch-checkpoint.tmp").touch()
    (data / "meta.properties.tmp").touch()
    findings = verify(data)
    assert not any(finding.is_problem for finding in findings)
    assert {Path(finding.path).name for finding in findings} == {
        f"{7:020d}.log.cleaned",
        f"{7:020d}.log.swap",
        f"{7:020d}.log.deleted",
        "leader-epoch-checkpoint.tmp",
        "meta.properties.tmp",
    }


def test_strangers_are_named_and_left_alone(data: Path) -> None:
    identifier = "0" * 32
    (data / "lost+found").mkdir()
    (data / "orders-0" / "notes.txt").touch()
    (data / f"gone-0.{identifier}-delete").mkdir()
    (data / f"gone-0.{identifier}-delete" / f"{0:020d}.log").write_bytes(b"rubbish")
    write_varied_log(DiskFiles(), str(data / f"other-0.{identifier}-stray"))
    findings = verify(data)
    assert not any(finding.is_problem for finding in findings)
    assert [Path(finding.path).name for finding in findings] == [
        f"gone-0.{identifier}-delete",
        "lost+found",
        "notes.txt",
        f"other-0.{identifier}-stray",
    ]


def test_a_partition_is_checked_by_any_name_if_it_is_asked_for(data: Path) -> None:
    (data / "orders-0").rename(data / "copy of orders")
    report = Report()
    verify_into(report, ReadOnlyFiles(), str(data / "copy of orders"))
    assert (report.partition_count, report.findings) == (1, [])


# -- the directory's own files -------------------------------------------------------------------


@pytest.mark.parametrize("name", [RECOVERY_POINT, REPLICATION, LOG_START, CLEANER])
def test_a_checkpoint_behind_the_end_of_its_log_is_found(data: Path, name: str) -> None:
    table = OffsetCheckpoint(DiskFiles(), str(data / name))
    table.write({TopicPartition("orders", 0): 40, TopicPartition("orders", 1): 41})
    (found,) = problems(data)
    assert found.path == str(data / name)
    assert "of orders-1 is 41, but its log ends at 40" in found.what


def test_a_high_watermark_may_outlive_a_power_failure(data: Path) -> None:
    CleanShutdownMarker(DiskFiles(), str(data)).remove()
    table = OffsetCheckpoint(DiskFiles(), str(data / REPLICATION))
    table.write({TopicPartition("orders", 0): 41})
    (found,) = verify(data)
    assert not found.is_problem


def test_a_checkpoint_of_a_partition_that_is_not_there_is_worth_a_note(data: Path) -> None:
    table = OffsetCheckpoint(DiskFiles(), str(data / CLEANER))
    table.write({TopicPartition("elsewhere", 3): 10})
    (found,) = verify(data)
    assert not found.is_problem
    assert "elsewhere-3 is not in this directory" in found.what
    assert verify(data / "orders-0") == []


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (RECOVERY_POINT, b"0\n1\norders zero 40\n", "line 3 is 'orders zero 40'"),
        (REPLICATION, b"9\n0\n", "line 1 says version 9"),
        ("meta.properties", b"version=1\n", "cluster.id is missing"),
    ],
)
def test_unreadable_tables_are_found(data: Path, name: str, content: bytes, sentence: str) -> None:
    (data / name).write_bytes(content)
    (found,) = problems(data)
    assert found.path == str(data / name)
    assert sentence in found.what


def test_missing_metadata_is_found(data: Path) -> None:
    (data / "meta.properties").unlink()
    (found,) = problems(data)
    assert (found.path, found.what) == (str(data / "meta.properties"), "it is missing")


def test_partitions_of_one_name_and_two_topics_are_found(data: Path) -> None:
    (data / "orders-1" / "partition.metadata").unlink()
    write_topic_id(DiskFiles(), str(data / "orders-1"), TOPIC_ID.__class__(int=7))
    (found,) = problems(data)
    assert found.path == str(data / "orders-1" / "partition.metadata")


@pytest.mark.parametrize(("table", "start_offset"), [(b"0\n1\n0 3\n", 3), (b"0\n0\n", 40)])
def test_where_the_log_starts_decides_which_epochs_are_needed(
    data: Path, table: bytes, start_offset: int
) -> None:
    (data / "orders-0" / "leader-epoch-checkpoint").write_bytes(table)
    assert problems(data)
    for found in problems(data):
        assert "leader-epoch-checkpoint has none there" in found.what
    log_starts = OffsetCheckpoint(DiskFiles(), str(data / LOG_START))
    log_starts.write({TopicPartition("orders", 0): start_offset})
    assert verify(data) == []


def test_gaps_are_worth_a_note_unless_the_log_is_compacted(data: Path) -> None:
    partition = data / "orders-0"
    bases = sorted(partition.glob("*.log"))
    for path in partition.glob(f"{bases[1].stem}.*"):
        if path.suffix != ".snapshot":
            path.unlink()
    (found,) = verify(data)
    assert (found.path, found.is_problem) == (str(partition), False)
    assert "are not there" in found.what
    OffsetCheckpoint(DiskFiles(), str(data / CLEANER)).write({TopicPartition("orders", 0): 0})
    assert verify(data) == []


def test_a_file_that_cannot_be_read_is_found(data: Path) -> None:
    path = data / "orders-0" / f"{0:020d}.log"
    path.unlink()
    path.mkdir()
    found = problems(data)
    assert any(f.path == str(path) and "cannot be read" in f.what for f in found)


def test_a_partition_of_a_topic_with_its_own_settings(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=1)
    write_varied_log(DiskFiles(), str(tmp_path / str(PARTITION)), config)
    assert verify(tmp_path) == []
