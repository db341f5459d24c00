import errno
import random
from pathlib import Path

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import (
    CLUSTER_ID,
    NODE_ID,
    append,
    environment_of,
    open_directory,
    orders,
)
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk, SimulatedCrash
from headwater.storage.checkpoints import (
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.directories.clean_shutdown import CLEAN_SHUTDOWN_MARKER
from headwater.storage.directories.log_directory import LoadProgress, LogDirectory
from headwater.storage.disk.files import DiskFiles, FileSystem
from headwater.storage.errors import LogStorageError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.retention import delete_records_before
from headwater.storage.truncation import truncate_to

DATA = "/data"


def make_log(directory: LogDirectory, partition: TopicPartition) -> PartitionLog:
    log = directory.loader(partition, f"{directory.path}/{partition}", NOW_MS).load()
    directory.adopt(log, None, is_future=False)
    return log


def close(directory: LogDirectory, broker_epoch: int = 1) -> None:
    for log in directory.all_logs():
        directory.close_log(log)
    directory.close(broker_epoch)


def values_of(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in read_records(log, log.log_start_offset)]


@pytest.mark.parametrize("kind", ["real", "simulated"])
def test_logs_and_their_offsets_come_back_after_a_clean_stop(kind: str, tmp_path: Path) -> None:
    files: FileSystem = DiskFiles() if kind == "real" else FaultyDisk(directories=[DATA])
    path = str(tmp_path) if kind == "real" else DATA
    directory = open_directory(files, path)
    for number in range(3):
        log = make_log(directory, orders(number))
        append(log, b"a", b"b", b"c")
        log.raise_high_watermark(2)
    delete_records_before(directory.logs[orders(1)], 1)
    close(directory, broker_epoch=9)

    again = open_directory(files, path)
    assert again.ownership.clean_broker_epoch == 9
    assert sorted(again.logs) == [orders(0), orders(1), orders(2)]
    for number, log in enumerate(again.logs.values()):
        assert values_of(log) == ([b"b", b"c"] if number == 1 else [b"a", b"b", b"c"])
        assert (log.high_watermark, log.recovery_point) == (2, 3)
    close(again)


def test_the_marker_is_gone_before_anything_changes() -> None:
    disk = FaultyDisk(directories=[DATA])
    close(open_directory(disk, DATA))
    assert disk.exists(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}")
    directory = LogDirectory(DATA, environment_of(disk))
    directory.open(cluster_id=CLUSTER_ID, node_id=NODE_ID)
    assert directory.was_clean
    assert not disk.crash(random.Random(0)).exists(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}")


def test_progress_names_each_log_before_its_turn() -> None:
    disk = FaultyDisk(directories=[DATA, "/data/a-0", "/data/b-1"])
    directory = LogDirectory(DATA, environment_of(disk))
    directory.open(cluster_id=CLUSTER_ID, node_id=NODE_ID)
    assert directory.to_load_count == 2
    steps = directory.load(NOW_MS)
    assert next(steps) == LoadProgress(0, 2, TopicPartition("a", 0), True)
    assert not directory.logs
    assert next(steps) == LoadProgress(1, 2, TopicPartition("b", 1), True)
    assert list(directory.logs) == [TopicPartition("a", 0)]
    assert next(steps, None) is None
    assert directory.is_loaded and len(directory.logs) == 2


def test_a_load_that_was_broken_off_leaves_no_marker_and_keeps_the_tables() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    for number in range(3):
        append(make_log(directory, orders(number)), b"a")
    close(directory)
    table = OffsetCheckpoint(disk, f"{DATA}/{RECOVERY_POINT}")
    assert len(table.read()) == 3

    again = LogDirectory(DATA, environment_of(disk))
    again.open(cluster_id=CLUSTER_ID, node_id=NODE_ID)
    steps = again.load(NOW_MS)
    next(steps), next(steps)
    close(again)
    assert not disk.exists(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}")
    assert len(table.read()) == 3


def test_what_is_no_log_of_ours_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    hex_id = "e8ba51a616254b8e8844373883664930"
    foreign = ["lost+found", "__cluster_metadata-0", f"a-0.{hex_id}-stray", "a-0.backup"]
    disk = FaultyDisk(directories=[f"{DATA}/{name}" for name in foreign])
    for name in [*foreign, "."]:
        disk.open(f"{DATA}/{name}/precious", create=True).write_at(0, b"data")
    before = {path: data for path, data in disk.contents().items() if path.endswith("precious")}
    directory = open_directory(disk, DATA)
    assert not directory.logs
    close(directory)
    after = {path: data for path, data in disk.contents().items() if path.endswith("precious")}
    assert after == before and len(before) == 5
    for name in ("lost+found", "a-0.backup", f"a-0.{hex_id}-stray"):
        assert f"{DATA}/{name} is" in caplog.text


def test_deleted_logs_are_not_loaded_but_due_for_removal() -> None:
    name = "orders-0.e8ba51a616254b8e8844373883664930-delete"
    disk = FaultyDisk(directories=[f"{DATA}/{name}"])
    directory = open_directory(disk, DATA)
    assert not directory.logs
    assert [(each.path, each.due_ms <= NOW_MS) for each in directory.removals] == [
        (f"{DATA}/{name}", True)
    ]


def test_future_logs_are_loaded_apart() -> None:
    name = "orders-0.e8ba51a616254b8e8844373883664930-future"
    disk = FaultyDisk(directories=[f"{DATA}/{name}", f"{DATA}/orders-1"])
    directory = open_directory(disk, DATA)
    assert list(directory.logs) == [orders(1)]
    assert list(directory.future_logs) == [orders(0)]
    assert directory.future_logs[orders(0)].directory == f"{DATA}/{name}"


@pytest.mark.parametrize("name", [RECOVERY_POINT, REPLICATION, LOG_START])
def test_a_damaged_checkpoint_costs_only_what_it_held(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    log = make_log(directory, orders(0))
    append(log, b"a", b"b")
    append(log, b"c")
    log.raise_high_watermark(3)
    delete_records_before(log, 2)
    close(directory)
    disk.open(f"{DATA}/{name}").write_at(0, b"x")
    disk.remove(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}")

    found = open_directory(disk, DATA).logs[orders(0)]
    assert "taken for absent" in caplog.text
    start = 0 if name == LOG_START else 2
    assert (found.log_start_offset, found.log_end_offset) == (start, 3)
    assert found.high_watermark == (2 if name == REPLICATION else 3)


def test_a_high_watermark_is_brought_within_the_log() -> None:
    disk = FaultyDisk(directories=[f"{DATA}/orders-0", f"{DATA}/orders-1"])
    OffsetCheckpoint(disk, f"{DATA}/{REPLICATION}").write({orders(0): 77, orders(1): 0})
    OffsetCheckpoint(disk, f"{DATA}/{LOG_START}").write({orders(1): 5})
    directory = open_directory(disk, DATA)
    assert directory.logs[orders(0)].high_watermark == 0
    assert directory.logs[orders(1)].high_watermark == 5


def test_a_truncation_is_on_record_before_it_happens() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA, LogConfig(segment_bytes=200))
    log = make_log(directory, orders(0))
    for _ in range(4):
        append(log, bytes(100))
    log.flush()
    plan = directory.plan_recovery_points()
    assert plan is not None
    plan.run()
    table = OffsetCheckpoint(disk, f"{DATA}/{RECOVERY_POINT}")
    assert table.read() == {orders(0): 4}

    seen: list[int] = []

    def stop_at_first_removal(operation: str, path: str) -> None:
        if operation == "rename" and path.endswith(".log"):
            seen.append(
                OffsetCheckpoint(disk.after_power_loss(random.Random(0)), table.path).read()[
                    orders(0)
                ]
            )
            raise SimulatedCrash

    disk.before_operation = stop_at_first_removal
    with pytest.raises(SimulatedCrash):
        truncate_to(log, 2, NOW_MS)
    assert seen == [2]


def test_a_failing_disk_takes_the_directory_and_its_logs_offline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    log, other = make_log(directory, orders(0)), make_log(directory, orders(1))
    append(log, b"a")
    append(other, b"b")
    disk.faults.append(Fault({"sync"}, DATA, errno.EIO))
    with pytest.raises(LogStorageError):
        log.flush()
    append(other, b"b")
    directory.notice_failures()
    assert not directory.is_online and "goes offline" in caplog.text
    for each in (log, other):
        with pytest.raises(LogStorageError, match=r"takes no more writes|is offline"):
            append(each, b"c")
    disk.faults.clear()
    close(directory)
    assert not disk.exists(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}"), "what it holds is not known"
    assert open_directory(disk, DATA).is_online, "after a restart it is tried again"


@pytest.mark.parametrize("operation", ["write", "sync", "rename", "create"])
def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline(operation: str) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    log = make_log(directory, orders(0))
    disk.faults.append(Fault({operation}, f"{DATA}/{RECOVERY_POINT}.tmp", errno.ENOSPC))
    with pytest.raises(LogStorageError, match="No space left"):
        log.keep_recovery_point(0)
    assert not directory.is_online and log.failure is not None


def test_running_out_of_descriptors_is_not_a_failure_of_the_disk() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    disk.faults.append(Fault({"create"}, DATA, errno.EMFILE, hit_count_max=1))
    with pytest.raises(LogStorageError, match="just now"), directory.guarding():
        disk.open(f"{DATA}/x", create=True)
    assert directory.is_online


@pytest.mark.parametrize(
    ("number", "is_online"),
    [(errno.EMFILE, True), (errno.ENFILE, True), (errno.ENOMEM, True), (errno.EIO, False)],
)
def test_a_log_whose_change_was_interrupted_takes_its_directory_along_if_the_disk_failed(
    number: int, is_online: bool
) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    log, other = make_log(directory, orders(0)), make_log(directory, orders(1))
    append(log, b"a")
    disk.faults.append(Fault({"sync_dir"}, log.directory, number, hit_count_max=1))
    with pytest.raises(LogStorageError):
        log.flush()
    assert log.failure is not None
    directory.notice_failures()
    assert directory.is_online == is_online
    assert (other.failure is None) == is_online


@pytest.mark.parametrize("operation", ["read", "open", "list_dir", "create", "sync"])
def test_a_disk_that_fails_during_start_is_offline(operation: str) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    append(make_log(directory, orders(0)), b"a")
    directory.ownership.release()
    disk.faults.append(Fault({operation}, DATA, errno.EIO))
    failing = LogDirectory(DATA, environment_of(disk))
    with pytest.raises(LogStorageError):
        failing.open(cluster_id=CLUSTER_ID, node_id=NODE_ID)
        for _ in failing.load(NOW_MS):
            continue
    assert not failing.is_online


def test_a_log_that_cannot_be_read_does_not_keep_the_others_from_serving(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    for number in range(2):
        append(make_log(directory, orders(number)), b"a")
    close(directory)
    disk.open(f"{DATA}/orders-0/partition.metadata", create=True).write_at(0, b"nonsense")
    before = {p: d for p, d in disk.contents().items() if "/orders-0/" in p}
    directory = open_directory(disk, DATA)
    assert list(directory.logs) == [orders(1)] and list(directory.unreadable) == [orders(0)]
    assert "cannot be opened and is left alone" in caplog.text
    close(directory)
    assert {p: d for p, d in disk.contents().items() if "/orders-0/" in p} == before
    assert OffsetCheckpoint(disk, f"{DATA}/{RECOVERY_POINT}").read()[orders(0)] == 1
    assert not disk.exists(f"{DATA}/{CLEAN_SHUTDOWN_MARKER}"), "that log may need recovery"
