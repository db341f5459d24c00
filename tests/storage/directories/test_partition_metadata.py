import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.base.ids import ZERO_TOPIC_ID, topic_id_from_text
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.directories.partition_metadata import read_topic_id, write_topic_id
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.errors import CorruptMetadataError, InconsistentTopicIdError

DIRECTORY = "/data/t-0"
PATH = f"{DIRECTORY}/partition.metadata"
# As Apache Kafka 4.1.2 has written it.
KAFKAS_TEXT = b"version: 0\ntopic_id: ZE34UcYAQGuCXuKkQ4ZdAg"
KAFKAS_ID = topic_id_from_text("ZE34UcYAQGuCXuKkQ4ZdAg")


def disk_with(content: bytes | None) -> FaultyDisk:
    disk = FaultyDisk(directories=[DIRECTORY])
    if content is not None:
        write_atomically(disk, PATH, content)
    return disk


def test_the_text_is_kafkas() -> None:
    disk = disk_with(None)
    assert read_topic_id(disk, DIRECTORY) is None
    write_topic_id(disk, DIRECTORY, KAFKAS_ID)
    assert read_bytes(disk, PATH) == KAFKAS_TEXT
    assert read_topic_id(disk, DIRECTORY) == KAFKAS_ID


def test_a_line_break_at_the_end_does_no_harm() -> None:
    assert read_topic_id(disk_with(KAFKAS_TEXT + b"\n"), DIRECTORY) == KAFKAS_ID


@given(st.integers(1, 2**128 - 1))
def test_what_is_written_is_read(number: int) -> None:
    disk = disk_with(None)
    write_topic_id(disk, DIRECTORY, uuid.UUID(int=number))
    assert read_topic_id(disk, DIRECTORY) == uuid.UUID(int=number)


def test_a_directory_keeps_its_topic() -> None:
    disk = disk_with(KAFKAS_TEXT)
    syncs = disk.sync_count
    write_topic_id(disk, DIRECTORY, KAFKAS_ID)
    assert disk.sync_count == syncs
    with pytest.raises(InconsistentTopicIdError, match="ZE34UcYAQGuCXuKkQ4ZdAg"):
        write_topic_id(disk, DIRECTORY, uuid.UUID(int=7))
    with pytest.raises(InvariantError):
        write_topic_id(disk_with(None), DIRECTORY, ZERO_TOPIC_ID)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0",
        b"version: 0\n",
        b"version: 1\ntopic_id: ZE34UcYAQGuCXuKkQ4ZdAg",
        b"version: x\ntopic_id: ZE34UcYAQGuCXuKkQ4ZdAg",
        b"version: 0\ntopic_id: ZE34",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id:ZE34UcYAQGuCXuKkQ4ZdAg",
        b"\xff\n\xff",
    ],
)
def test_a_malformed_file_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(CorruptMetadataError, match=PATH):
        read_topic_id(disk_with(content), DIRECTORY)


@pytest.mark.parametrize("cut_at", range(8))
def test_a_crash_leaves_the_whole_file_or_none(cut_at: int) -> None:
    disk = disk_with(None)
    disk.before_operation = PowerCut(cut_at)
    try:
        write_topic_id(disk, DIRECTORY, KAFKAS_ID)
    except SimulatedCrash:
        allowed = [None, KAFKAS_ID]
    else:
        allowed = [KAFKAS_ID]
    assert read_topic_id(disk.crash(random.Random(cut_at)), DIRECTORY) in allowed
