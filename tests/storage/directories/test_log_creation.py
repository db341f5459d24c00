import errno
import random
import uuid

import pytest

from headwater.base.checks import InvariantError
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import TOPIC_ID, append, open_directory, orders
from headwater.sim.campaigns.logs import NOW_MS, read_records
from headwater.sim.disk.faulty_disk import Fault, FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.checkpoints import OffsetCheckpoint
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.log_creation import LogCreation, LogDeletion, set_aside
from headwater.storage.directories.partition_metadata import read_topic_id
from headwater.storage.errors import LogStorageError
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog

DATA = "/data"


def created(disk: FaultyDisk) -> PartitionLog:
    creation = LogCreation.begin(open_directory(disk, DATA), orders(0), TOPIC_ID, NOW_MS)
    creation.run()
    return creation.complete()


def test_a_log_is_part_of_the_directory_when_it_is_complete() -> None:
    directory = open_directory(FaultyDisk(directories=[DATA]), DATA)
    creation = LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)
    creation.run()
    assert not directory.logs
    log = creation.complete()
    assert directory.logs == {orders(0): log}
    assert directory.topic_ids == {orders(0): TOPIC_ID}
    append(log, b"a")
    with pytest.raises(InvariantError):
        LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)


def test_a_created_log_survives_a_power_loss() -> None:
    for seed in range(10):
        disk = FaultyDisk(seed, directories=[DATA])
        created(disk)
        found = disk.crash(random.Random(seed))
        assert read_topic_id(found, f"{DATA}/orders-0") == TOPIC_ID
        assert list(open_directory(found, DATA).logs) == [orders(0)]


def test_a_crash_while_a_log_is_made_leaves_nothing_or_an_empty_log() -> None:
    cut = PowerCut(-1)
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    disk.before_operation = cut
    LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS).run()
    assert cut.count > 5
    for at in range(cut.count):
        disk = FaultyDisk(at, directories=[DATA])
        creation = LogCreation.begin(open_directory(disk, DATA), orders(0), TOPIC_ID, NOW_MS)
        disk.before_operation = PowerCut(at)
        with pytest.raises(SimulatedCrash):
            creation.run()
        directory = open_directory(disk.crash(random.Random(at)), DATA)
        assert directory.is_online and not directory.unreadable
        for log in directory.logs.values():
            assert (log.partition, log.log_end_offset) == (orders(0), 0)
            assert directory.topic_ids.get(orders(0)) in (None, TOPIC_ID)


def test_a_new_log_inherits_nothing_from_a_deleted_one() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    for table in directory.checkpoints:
        table.keep({orders(0): 1000})
    creation = LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)
    creation.run()
    log = creation.complete()
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 0, 0)
    append(log, b"a")
    log.flush()
    found = open_directory(disk.crash(random.Random(3)), DATA).logs[orders(0)]
    assert [record.value for record in read_records(found, 0)] == [b"a"]


def test_an_offline_directory_takes_no_new_log() -> None:
    directory = open_directory(FaultyDisk(directories=[DATA]), DATA)
    directory.go_offline("for this test")
    with pytest.raises(LogStorageError):
        LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)


def test_a_deleted_log_is_renamed_durably_and_refuses_writes() -> None:
    disk = FaultyDisk(directories=[DATA])
    config = LogConfig(file_delete_delay_ms=500)
    directory = open_directory(disk, DATA, config)
    creation = LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)
    creation.run()
    log = creation.complete()
    append(log, b"a")
    region = log.read(0, 1000).region
    LogDeletion.begin(directory, [orders(0)], NOW_MS).run()
    assert not directory.logs and not directory.topic_ids
    with pytest.raises(LogStorageError):
        append(log, b"b")
    assert region is not None
    directory.environment.handles._evict_down_to(0)
    assert len(region.read()) == region.size, "who reads it can finish"
    [removal] = directory.removals
    assert removal.due_ms == NOW_MS + 500
    for seed in range(5):
        entries = list_entries(disk.after_power_loss(random.Random(seed)), DATA)
        assert [entry.kind for entry in entries] == [EntryKind.DELETED]
        assert entries[0].partition == orders(0)


def test_a_log_that_could_not_be_read_can_be_deleted() -> None:
    disk = FaultyDisk(directories=[f"{DATA}/orders-0"])
    disk.open(f"{DATA}/orders-0/partition.metadata", create=True).write_at(0, b"nonsense")
    directory = open_directory(disk, DATA)
    LogDeletion.begin(directory, {orders(0), orders(1)}, NOW_MS).run()
    assert not directory.unreadable and len(directory.removals) == 1
    assert [entry.kind for entry in list_entries(disk, DATA)] == [EntryKind.DELETED]


def test_a_log_set_aside_is_kept_whole() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    creation = LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS)
    creation.run()
    log = creation.complete()
    append(log, b"a")
    before = disk.contents()[f"{DATA}/orders-0/{0:020}.log"]
    path = set_aside(directory, log)
    assert path.endswith("-stray") and not directory.logs and not directory.removals
    assert disk.contents()[f"{path}/{0:020}.log"] == before
    assert not open_directory(disk.crash(random.Random(0)), DATA).logs


def test_a_disk_that_fails_during_deletion_takes_the_directory_offline() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    creation = LogCreation.begin(directory, orders(0), uuid.UUID(int=5), NOW_MS)
    creation.run()
    creation.complete()
    disk.faults.append(Fault({"rename"}, DATA, errno.EIO))
    with pytest.raises(LogStorageError):
        LogDeletion.begin(directory, [orders(0)], NOW_MS)
    assert not directory.is_online and list(directory.logs) == [orders(0)]


def test_the_offsets_of_others_survive_a_creation() -> None:
    disk = FaultyDisk(directories=[DATA])
    directory = open_directory(disk, DATA)
    directory.checkpoints.recovery_points.keep({orders(0): 9, orders(1): 5})
    LogCreation.begin(directory, orders(0), TOPIC_ID, NOW_MS).run()
    table = OffsetCheckpoint(disk, f"{DATA}/recovery-point-offset-checkpoint")
    assert table.read() == {orders(1): 5}


@pytest.mark.parametrize("is_future", [False, True])
@pytest.mark.parametrize("topic", ["../x", "..", "/x", "a/b", "", "__cluster_metadata", "a\nb"])
def test_no_log_is_made_outside_of_its_directory(topic: str, is_future: bool) -> None:
    directory = open_directory(FaultyDisk(directories=[DATA]), DATA)
    partition = TopicPartition(topic, 0)
    with pytest.raises(KafkaError) as caught:
        LogCreation.begin(directory, partition, TOPIC_ID, NOW_MS, is_future=is_future)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
