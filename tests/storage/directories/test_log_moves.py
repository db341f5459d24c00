import uuid

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.sim.campaigns.broker_logs import TOPIC_ID, open_directories, orders
from headwater.sim.campaigns.logs import NOW_MS
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.directory_entries import EntryKind, list_entries
from headwater.storage.directories.partition_metadata import write_topic_id
from headwater.storage.errors import LogStorageError
from tests.support.logs.moving_logs import (
    CONFIG,
    PATHS,
    copy_all,
    directories_with_log,
    started,
    values_of,
)


def test_a_move_is_carried_on_after_a_restart() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, log = directories_with_log(disk)
    move = started(directories)
    move.copy(NOW_MS, max_bytes=300)
    expected = values_of(log)
    directories.shutdown(1)
    again = open_directories(disk, PATHS, CONFIG)
    resumed = again.moves.get(orders(0))
    assert resumed is not None
    move = resumed
    assert move.current.directory == "/a/orders-0" and move.lag < 20
    copy_all(move)
    assert values_of(again.moves.complete(move, NOW_MS)) == expected


def test_a_copy_of_another_topics_log_is_set_aside() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, _ = directories_with_log(disk)
    name = f"orders-0.{uuid.UUID(int=1).hex}-future"
    directories.shutdown(1)
    disk.make_dir(f"/b/{name}")
    write_topic_id(disk, f"/b/{name}", uuid.UUID(int=99))
    again = open_directories(disk, PATHS, CONFIG)
    assert len(again.moves) == 0 and not again.directories[1].future_logs
    assert [entry.kind for entry in list_entries(disk, "/b")] == [EntryKind.STRAY]
    started(again)


def test_moving_where_it_is_or_is_going_already() -> None:
    directories, _ = directories_with_log(FaultyDisk(directories=PATHS))
    assert directories.moves.start(orders(0), "/a", NOW_MS) is None
    move = started(directories)
    assert started(directories) is move
    assert directories.moves.start(orders(0), "/a", NOW_MS) is None, "which gives the move up"
    assert not directories.moves
    assert not directories.directories[1].future_logs
    assert len(directories.directories[1].removals) == 1
    with pytest.raises(KafkaError):
        directories.moves.start(orders(0), "/c", NOW_MS)
    with pytest.raises(LogStorageError):
        directories.moves.start(orders(5), "/b", NOW_MS)


def test_deleting_a_log_deletes_its_copy() -> None:
    disk = FaultyDisk(directories=PATHS)
    directories, _ = directories_with_log(disk)
    started(directories)
    directories.delete([orders(0)], NOW_MS)
    assert not directories.moves
    for path in PATHS:
        assert [entry.kind for entry in list_entries(disk, path)] == [EntryKind.DELETED]


def test_a_name_too_long_for_a_copy_is_refused_and_harms_nothing() -> None:
    directories = open_directories(FaultyDisk(directories=PATHS), PATHS)
    partition = TopicPartition("x" * 249, 0)
    directories.create(partition, TOPIC_ID, NOW_MS, path="/a")
    with pytest.raises(KafkaError, match="file systems allow 255"):
        directories.moves.start(partition, "/b", NOW_MS)
    assert len(directories.online()) == 2
