import asyncio
import errno
import os
import random
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import (
    CLUSTER_ID,
    NODE_ID,
    TOPIC_ID,
    append,
    open_directories,
    orders,
    run_inline,
)
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.directory_ownership import LogDirectoryInUseError
from headwater.storage.directories.log_creation import LogCreation
from headwater.storage.directories.log_directories import LogDirectories, NoLogDirectoryError
from headwater.storage.directories.log_directory import LoadProgress
from headwater.storage.directories.log_environment import LogEnvironment
from headwater.storage.directories.partition_metadata import read_topic_id
from headwater.storage.disk.files import DiskFiles
from headwater.storage.disk.handles import HandleCache
from headwater.storage.errors import (
    InconsistentBrokerMetadataError,
    InconsistentTopicIdError,
    LogStorageError,
)
from headwater.storage.log_config import LogConfig
from tests.support.tiers import rounds

T = TypeVar("T")

PATHS = ["/a", "/b"]


def two_directories() -> tuple[FaultyDisk, LogDirectories]:
    disk = FaultyDisk(directories=PATHS)
    return disk, open_directories(disk, PATHS)


# -- opening -------------------------------------------------------------------------------------


def test_a_directory_in_use_is_refused_and_the_others_are_let_go() -> None:
    disk, first = two_directories()
    first.directories[0].ownership.release()
    with pytest.raises(LogDirectoryInUseError, match="/b"):
        open_directories(disk, PATHS)
    first.directories[1].ownership.release()
    open_directories(disk, PATHS)


def test_a_copied_directory_is_refused(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    open_directories(DiskFiles(), [first]).shutdown(1)
    shutil.copytree(first, second)
    with pytest.raises(InconsistentBrokerMetadataError, match="one must be a copy"):
        open_directories(DiskFiles(), [first, second])


def test_one_bad_disk_of_two_does_not_keep_a_broker_from_starting() -> None:
    disk = FaultyDisk(directories=PATHS)
    open_directories(disk, PATHS).shutdown(1)
    disk.faults.append(Fault(under="/b", error=errno.EIO))
    directories = open_directories(disk, PATHS)
    assert [each.path for each in directories.online()] == ["/a"]
    assert directories.create(orders(0), TOPIC_ID, NOW_MS).directory == "/a/orders-0"
    with pytest.raises(LogStorageError, match="/b, which is offline"):
        directories.create(orders(1), TOPIC_ID, NOW_MS, is_new=False)


def test_without_any_directory_there_is_no_broker() -> None:
    disk = FaultyDisk(directories=PATHS)
    disk.faults.append(Fault(error=errno.EIO))
    with pytest.raises(NoLogDirectoryError, match=r"no log directory left.*/a .*/b "):
        open_directories(disk, PATHS)


# -- loading -------------------------------------------------------------------------------------


def filled(disk: FaultyDisk) -> None:
    directories = open_directories(disk, PATHS)
    for number in range(5):
        append(directories.create(orders(number), TOPIC_ID, NOW_MS), b"%d" % number)
    directories.shutdown(1)


def test_progress_counts_over_all_directories() -> None:
    disk = FaultyDisk(directories=PATHS)
    filled(disk)
    directories = open_directories(disk, PATHS, load=False)
    progress = list(directories.load(NOW_MS))
    assert [(step.done, step.total) for step in progress] == [(n, 5) for n in range(5)]
    assert {step.partition for step in progress} == {orders(n) for n in range(5)}
    assert not any(step.is_recovering for step in progress)
    assert len(list(directories)) == 5


@pytest.mark.parametrize("is_clean", [True, False])
def test_loading_beside_an_event_loop(is_clean: bool) -> None:
    disk = FaultyDisk(directories=PATHS)
    filled(disk)
    if not is_clean:
        for path in PATHS:
            disk.remove(f"{path}/.kafka_cleanshutdown")
    directories = open_directories(disk, PATHS, load=False)
    seen: list[LoadProgress] = []
    hops = 0

    async def run_in_thread(work: Callable[[], T]) -> T:
        nonlocal hops
        hops += 1
        return work()

    asyncio.run(directories.load_in_thread(NOW_MS, run_in_thread, seen.append))
    assert len(seen) == 5 and len(list(directories)) == 5
    assert hops == (3 if is_clean else 6), "recovery may be long, so each is a step of its own"


def test_a_disk_that_fails_while_loading_takes_only_its_directory() -> None:
    disk = FaultyDisk(directories=PATHS)
    filled(disk)
    disk.faults.append(Fault({"read"}, f"/a/orders-2/{0:020}.log"))
    directories = open_directories(disk, PATHS)
    assert [each.path for each in directories.online()] == ["/b"]
    assert {log.partition for log in directories} == {orders(1), orders(3)}


def test_many_small_logs_within_few_descriptors(tmp_path: Path) -> None:
    count = rounds(small=150, full=2_000)
    files = DiskFiles()
    handles = HandleCache(files, 64)
    environment = LogEnvironment(
        files, handles, random.Random(0), lambda _: LogConfig(), close_thread_count=2
    )
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]

    def opened() -> LogDirectories:
        found = LogDirectories.open(paths, environment, cluster_id=CLUSTER_ID, node_id=NODE_ID)
        assert sum(1 for _ in found.load(NOW_MS)) in (0, count)
        return found

    before = len(os.listdir("/proc/self/fd"))
    directories = opened()
    for number in range(count):
        append(directories.create(orders(number), TOPIC_ID, NOW_MS), b"a")
    assert len(os.listdir("/proc/self/fd")) <= before + 64 + 3
    directories.shutdown(1)
    assert len(os.listdir("/proc/self/fd")) == before
    directories = opened()
    assert len(os.listdir("/proc/self/fd")) <= before + 64 + 3
    assert all(log.log_end_offset == 1 for log in directories)
    assert [len(each.logs) for each in directories.directories] == [count / 2, count / 2]
    directories.shutdown(2)
    assert len(os.listdir("/proc/self/fd")) == before


# -- making and finding --------------------------------------------------------------------------


def test_logs_go_where_there_are_fewest() -> None:
    _, directories = two_directories()
    directories.create(orders(0), TOPIC_ID, NOW_MS, path="/b")
    directories.create(orders(1), TOPIC_ID, NOW_MS, path="/b")
    made = [directories.create(orders(n), TOPIC_ID, NOW_MS).directory for n in range(2, 6)]
    assert made == ["/a/orders-2", "/a/orders-3", "/a/orders-4", "/b/orders-5"]
    with pytest.raises(KafkaError) as refused:
        directories.create(orders(9), TOPIC_ID, NOW_MS, path="/c")
    assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND


def test_a_cordoned_directory_gets_no_new_logs() -> None:
    _, directories = two_directories()
    cordoned = {"/a"}
    directories.directories[0].environment.cordoned_paths = lambda: cordoned
    made = [directories.create(orders(n), TOPIC_ID, NOW_MS).directory for n in range(2)]
    assert made == ["/b/orders-0", "/b/orders-1"]
    # What must be somewhere goes where it can.
    cordoned.add("/b")
    assert directories.create(orders(2), TOPIC_ID, NOW_MS).directory == "/a/orders-2"
    cordoned.clear()
    assert [each.is_cordoned for each in directories.directories] == [False, False]


def test_logs_that_are_made_together_are_spread_too() -> None:
    _, directories = two_directories()
    directories.create(orders(0), TOPIC_ID, NOW_MS, path="/b")
    creations: list[LogCreation] = []
    for number in range(1, 6):
        creations.append(
            directories.begin_creation(orders(number), TOPIC_ID, NOW_MS, begun=creations)
        )
    assert [each.directory.path for each in creations] == ["/a", "/a", "/b", "/a", "/b"]


def test_a_log_is_found_or_not() -> None:
    _, directories = two_directories()
    assert directories.find(orders(0)) is None
    log = directories.create(orders(0), TOPIC_ID, NOW_MS)
    assert directories.find(orders(0)) is log
    assert directories.create(orders(0), TOPIC_ID, NOW_MS) is log
    assert list(directories) == [log]


def test_another_topics_log_of_the_same_name_is_refused() -> None:
    disk, directories = two_directories()
    directories.create(orders(0), TOPIC_ID, NOW_MS)
    with pytest.raises(InconsistentTopicIdError):
        directories.create(orders(0), uuid.UUID(int=9), NOW_MS)
    directories.shutdown(1)
    with pytest.raises(InconsistentTopicIdError):
        open_directories(disk, PATHS).create(orders(0), uuid.UUID(int=9), NOW_MS)


def test_a_log_without_an_id_gets_one() -> None:
    disk, directories = two_directories()
    directories.create(orders(0), None, NOW_MS)
    directories.create(orders(0), TOPIC_ID, NOW_MS)
    assert read_topic_id(disk.crash(random.Random(0)), "/a/orders-0") == TOPIC_ID


def test_a_topic_has_its_own_settings() -> None:
    disk = FaultyDisk(directories=PATHS)
    configs = {"small": LogConfig(segment_bytes=200), "large": LogConfig()}
    environment = LogEnvironment(disk, HandleCache(disk, 9), random.Random(0), configs.__getitem__)
    directories = LogDirectories.open(PATHS, environment, cluster_id="c", node_id=1)
    for topic, config in configs.items():
        assert directories.create(TopicPartition(topic, 0), None, NOW_MS).config is config


# -- deleting ------------------------------------------------------------------------------------


def test_deleted_logs_do_not_come_back() -> None:
    for seed in range(10):
        disk, directories = two_directories()
        for number in range(4):
            append(directories.create(orders(number), TOPIC_ID, NOW_MS), b"a")
        directories.delete([orders(0), orders(1), orders(7)], NOW_MS)
        assert directories.find(orders(0)) is None
        found = open_directories(disk.crash(random.Random(seed)), PATHS)
        assert {log.partition for log in found} == {orders(2), orders(3)}


def test_many_logs_are_deleted_with_one_sync_for_each_directory() -> None:
    disk, directories = two_directories()
    for number in range(20):
        directories.create(orders(number), TOPIC_ID, NOW_MS)
    before = disk.sync_dir_count
    directories.delete([orders(number) for number in range(20)], NOW_MS)
    assert disk.sync_dir_count == before + 2


def test_a_log_in_an_offline_directory_is_not_reported_deleted() -> None:
    _, directories = two_directories()
    for number in range(2):
        directories.create(orders(number), TOPIC_ID, NOW_MS)
    directories.directories[0].go_offline("for this test")
    with pytest.raises(LogStorageError):
        directories.delete([orders(0), orders(1)], NOW_MS)
    assert directories.find(orders(1)) is not None


def test_a_topic_can_be_made_again_at_once() -> None:
    disk, directories = two_directories()
    log = directories.create(orders(0), TOPIC_ID, NOW_MS)
    append(log, b"old")
    log.flush()
    directories.delete([orders(0)], NOW_MS)
    again = directories.create(orders(0), uuid.UUID(int=5), NOW_MS)
    append(again, b"new")
    again.flush()
    found = open_directories(disk.crash(random.Random(0)), PATHS).find(orders(0))
    assert found is not None
    assert [record.value for record in read_records(found, 0)] == [b"new"]


# -- compaction ----------------------------------------------------------------------------------


def test_how_far_logs_are_clean_is_kept() -> None:
    disk, directories = two_directories()
    logs = [directories.create(orders(number), TOPIC_ID, NOW_MS) for number in range(3)]
    for number, log in enumerate(logs):
        asyncio.run(directories.save_cleaner_offset(log, 5 + number, run_inline))
    assert directories.cleaner_offsets() == {orders(0): 5, orders(1): 6, orders(2): 7}
    directories.delete([orders(0)], NOW_MS)
    asyncio.run(directories.save_cleaner_offset(logs[0], 99, run_inline))
    assert directories.cleaner_offsets() == {orders(1): 6, orders(2): 7}
    found = open_directories(disk.crash(random.Random(0)), PATHS)
    assert found.cleaner_offsets() == {orders(1): 6, orders(2): 7}
    tables = [each.checkpoints.cleaner_offsets.offsets for each in found.directories]
    assert tables == [{orders(2): 7}, {orders(1): 6}], "nothing is left of the deleted one"


def test_a_disk_that_fails_to_keep_it_goes_offline() -> None:
    disk, directories = two_directories()
    log = directories.create(orders(0), TOPIC_ID, NOW_MS)
    disk.faults.append(Fault({"sync"}, "/a"))
    with pytest.raises(LogStorageError):
        asyncio.run(directories.save_cleaner_offset(log, 5, run_inline))
    assert [each.path for each in directories.online()] == ["/b"]


# -- failing -------------------------------------------------------------------------------------


def test_a_failing_disk_takes_one_directory_offline_only() -> None:
    disk, directories = two_directories()
    lost, kept = (directories.create(orders(n), TOPIC_ID, NOW_MS) for n in range(2))
    append(lost, b"a")
    append(kept, b"b")
    disk.faults.append(Fault({"sync", "write"}, "/a"))
    with pytest.raises(LogStorageError):
        lost.flush()
    with pytest.raises(LogStorageError):
        directories.find(orders(0))
    assert [each.path for each in directories.online()] == ["/b"]
    assert list(directories) == [kept]
    append(kept, b"c")
    directories.shutdown(1)
    disk.faults.clear()
    found = open_directories(disk, PATHS)
    assert [each.was_clean for each in found.directories] == [False, True]


def test_when_the_last_directory_goes_the_broker_is_told() -> None:
    disk, directories = two_directories()
    log = directories.create(orders(0), TOPIC_ID, NOW_MS)
    append(log, b"a")
    directories.directories[1].go_offline("for this test")
    disk.faults.append(Fault({"sync"}, "/a"))
    with pytest.raises(LogStorageError):
        log.flush()
    with pytest.raises(NoLogDirectoryError):
        directories.find(orders(0))


def test_a_log_that_could_not_be_opened_says_why() -> None:
    disk = FaultyDisk(directories=["/a/orders-0", "/b"])
    disk.open("/a/orders-0/partition.metadata", create=True).write_at(0, b"nonsense")
    directories = open_directories(disk, PATHS)
    with pytest.raises(LogStorageError, match=r"partition\.metadata"):
        directories.find(orders(0))
    with pytest.raises(LogStorageError, match=r"partition\.metadata"):
        directories.create(orders(0), TOPIC_ID, NOW_MS)


def test_closing_writes_the_marker_last() -> None:
    disk, directories = two_directories()
    append(directories.create(orders(0), TOPIC_ID, NOW_MS), b"a")
    disk.operations.clear()
    directories.shutdown(1)
    changed = [path for name, path in disk.operations if name in ("rename", "sync")]
    marker = changed.index("/a/.kafka_cleanshutdown.tmp")
    behind = [path for path in changed[marker:] if path.startswith("/a/")]
    assert set(behind) == {"/a/.kafka_cleanshutdown.tmp"}


def test_entries_are_what_they_should_be_after_all_that() -> None:
    disk, directories = two_directories()
    for number in range(3):
        directories.create(orders(number), TOPIC_ID, NOW_MS)
    directories.delete([orders(0)], NOW_MS)
    kinds = [entry.kind for path in PATHS for entry in list_entries(disk, path)]
    assert kinds == [EntryKind.DELETED, EntryKind.LOG, EntryKind.LOG]
