import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import topic_id_from_text
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.directories.broker_metadata import (
    BrokerMetadata,
    read_broker_metadata,
    write_broker_metadata,
)
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.errors import CorruptMetadataError, InconsistentBrokerMetadataError

PATH = "/data/meta.properties"
DIRECTORY_ID = topic_id_from_text("IhEr6Hy4qgAG1TF1vBEc0w")

# Written by Apache Kafka 4.1.2.
KAFKAS_TEXT = b"""#
#Sun Nov 15 20:57:53 UTC 2026
node.id=1
directory.id=IhEr6Hy4qgAG1TF1vBEc0w
version=1
cluster.id=3iZEgHGmT3u2kmyK9XjHNA
"""
KAFKAS_METADATA = BrokerMetadata("3iZEgHGmT3u2kmyK9XjHNA", 1, DIRECTORY_ID)


def disk_with(content: bytes | None) -> FaultyDisk:
    disk = FaultyDisk(directories=["/data"])
    if content is not None:
        write_atomically(disk, PATH, content)
    return disk


def test_kafkas_file_is_read() -> None:
    assert read_broker_metadata(disk_with(KAFKAS_TEXT), "/data") == KAFKAS_METADATA
    assert read_broker_metadata(disk_with(None), "/data") is None


def test_ours_has_the_same_lines_without_the_date() -> None:
    disk = disk_with(None)
    write_broker_metadata(disk, "/data", KAFKAS_METADATA)
    lines = KAFKAS_TEXT.splitlines()
    assert read_bytes(disk, PATH).splitlines() == [lines[0], *lines[2:]]


def test_version_0_names_a_broker_and_may_say_less() -> None:
    disk = disk_with(b"version=0\nbroker.id=7\n")
    assert read_broker_metadata(disk, "/data") == BrokerMetadata(None, 7, None, 0)
    disk = disk_with(b"cluster.id=c\n")
    assert read_broker_metadata(disk, "/data") == BrokerMetadata("c", None, None, 0)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"version=2\nnode.id=1\ncluster.id=c\n", "version 2 is not known"),
        (b"version=one\n", "'one' is not a number"),
        (b"version=1\ncluster.id=c\n", "node.id is missing"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=c\nnode.id=x\n", "'x' is not a number"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=short\n", "'short' is not"),
        (b"version=\\u12\n", "Line 1"),
        (b"version=\xff\n", "decode"),
    ],
)
def test_an_unreadable_file_is_named_with_the_reason(content: bytes, named: str) -> None:
    with pytest.raises(CorruptMetadataError) as caught:
        read_broker_metadata(disk_with(content), "/data")
    sentence = str(caught.value)
    assert sentence.startswith(PATH)
    assert named in sentence
    assert sentence.endswith(".")
    assert not sentence.endswith("..")


def test_another_brokers_directory_is_refused_in_a_sentence() -> None:
    metadata = BrokerMetadata("mine", 1, DIRECTORY_ID)
    metadata.check_owner("/data", cluster_id="mine", node_id=1)
    with pytest.raises(InconsistentBrokerMetadataError, match=r"/data belongs to broker 1, .* 2:"):
        metadata.check_owner("/data", cluster_id="mine", node_id=2)
    with pytest.raises(InconsistentBrokerMetadataError, match=r"to cluster mine, .* yours:"):
        metadata.check_owner("/data", cluster_id="yours", node_id=1)
    BrokerMetadata(None, None, None, 0).check_owner("/data", cluster_id="yours", node_id=2)


@given(
    st.builds(
        BrokerMetadata,
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.integers(-1, 2**31 - 1),
        st.none() | st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1)),
        st.sampled_from([0, 1]),
    )
)
def test_what_is_written_is_read(metadata: BrokerMetadata) -> None:
    disk = disk_with(None)
    write_broker_metadata(disk, "/data", metadata)
    assert read_broker_metadata(disk, "/data") == metadata


def test_a_crash_leaves_the_old_file_or_the_new_one() -> None:
    newer = KAFKAS_METADATA._replace(directory_id=uuid.UUID(int=5))
    for cut_at in range(10):
        disk = disk_with(KAFKAS_TEXT)
        disk.before_operation = PowerCut(cut_at)
        try:
            write_broker_metadata(disk, "/data", newer)
        except SimulatedCrash:
            allowed = [KAFKAS_METADATA, newer]
        else:
            allowed = [newer]
        after = disk.crash(random.Random(cut_at))
        assert read_broker_metadata(after, "/data") in allowed
