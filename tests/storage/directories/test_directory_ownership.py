import random
import uuid
from pathlib import Path

import pytest

from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.directories.broker_metadata import BrokerMetadata, read_broker_metadata
from headwater.storage.directories.clean_shutdown import CLEAN_SHUTDOWN_MARKER
from headwater.storage.directories.directory_ownership import (
    IN_USE_MARKER,
    DirectoryOwnership,
    LogDirectoryInUseError,
)
from headwater.storage.disk.files import DiskFiles, FileSystem
from headwater.storage.errors import CorruptMetadataError, InconsistentBrokerMetadataError

NEW_ID = uuid.UUID(int=7)


def taken(
    files: FileSystem, path: str, *, cluster_id: str = "c", node_id: int = 1
) -> DirectoryOwnership:
    ownership = DirectoryOwnership(files, path)
    ownership.take(cluster_id=cluster_id, node_id=node_id, new_directory_id=NEW_ID)
    return ownership


def test_a_new_directory_is_made_and_gets_its_identity_durably() -> None:
    disk = FaultyDisk()
    assert taken(disk, "/var/lib/data").directory_id == NEW_ID
    found = disk.crash(random.Random(1))
    assert read_broker_metadata(found, "/var/lib/data") == BrokerMetadata("c", 1, NEW_ID)


def test_a_known_directory_keeps_its_id() -> None:
    disk = FaultyDisk(directories=["/data"])
    taken(disk, "/data").release()
    again = DirectoryOwnership(disk, "/data")
    again.take(cluster_id="c", node_id=1, new_directory_id=uuid.UUID(int=8))
    assert again.directory_id == NEW_ID


def test_metadata_of_an_old_version_is_completed() -> None:
    disk = FaultyDisk(directories=["/data"])
    disk.open("/data/meta.properties", create=True).write_at(0, b"version=0\nbroker.id=1\n")
    taken(disk, "/data")
    assert read_broker_metadata(disk, "/data") == BrokerMetadata("c", 1, NEW_ID)


@pytest.mark.parametrize(("cluster_id", "node_id"), [("other", 1), ("c", 2)])
def test_somebody_elses_directory_is_refused_and_unchanged(cluster_id: str, node_id: int) -> None:
    disk = FaultyDisk(directories=["/data"])
    taken(disk, "/data").release()
    before = disk.contents()
    with pytest.raises(InconsistentBrokerMetadataError, match="/data belongs to"):
        taken(disk, "/data", cluster_id=cluster_id, node_id=node_id)
    assert disk.contents() == before


def test_unreadable_metadata_is_refused() -> None:
    disk = FaultyDisk(directories=["/data"])
    disk.open("/data/meta.properties", create=True).write_at(0, b"version=9\n")
    with pytest.raises(CorruptMetadataError):
        taken(disk, "/data")


def test_one_broker_at_a_time(tmp_path: Path) -> None:
    first = taken(DiskFiles(), str(tmp_path))
    with pytest.raises(LogDirectoryInUseError, match="in use by another broker"):
        taken(DiskFiles(), str(tmp_path))
    first.release()
    taken(DiskFiles(), str(tmp_path)).release()


def test_the_marker_tells_of_the_last_stop() -> None:
    disk = FaultyDisk(directories=["/data"])
    first = taken(disk, "/data")
    assert first.clean_broker_epoch is None and not first.was_in_use
    first.mark_in_use()
    first.mark_clean(41)
    first.release()
    second = taken(disk, "/data")
    assert second.clean_broker_epoch == 41 and not second.was_in_use
    second.begin_changes()
    second.mark_in_use()
    second.release()
    third = taken(disk, "/data")
    assert third.clean_broker_epoch is None and third.was_in_use


@pytest.mark.parametrize("seed", range(8))
def test_markers_survive_a_power_loss(seed: int) -> None:
    disk = FaultyDisk(seed, directories=["/data"])
    ownership = taken(disk, "/data")
    ownership.mark_in_use()
    disk = disk.crash(random.Random(seed))
    assert disk.exists(f"/data/{IN_USE_MARKER}")
    ownership = taken(disk, "/data")
    ownership.mark_clean(1)
    disk = disk.crash(random.Random(seed))
    assert disk.exists(f"/data/{CLEAN_SHUTDOWN_MARKER}")
    assert not disk.exists(f"/data/{IN_USE_MARKER}")
    taken(disk, "/data").begin_changes()
    disk = disk.crash(random.Random(seed))
    assert not disk.exists(f"/data/{CLEAN_SHUTDOWN_MARKER}")
