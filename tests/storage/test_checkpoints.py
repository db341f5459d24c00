import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.sim.disk.faulty_disk import FaultyDisk, PowerCut, SimulatedCrash
from headwater.storage.checkpoints import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    OffsetCheckpoint,
)
from headwater.storage.disk.files import read_bytes, write_atomically
from headwater.storage.errors import CorruptCheckpointError
from tests.support.tiers import rounds

PATH = f"/data/{RECOVERY_POINT}"

offset_tables = st.dictionaries(
    st.builds(
        TopicPartition,
        st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True),
        st.integers(0, 2**31 - 1),
    ),
    st.integers(0, 2**63 - 1),
    max_size=20,
)


def disk_with(content: bytes | None) -> FaultyDisk:
    disk = FaultyDisk(directories=["/data"])
    if content is not None:
        write_atomically(disk, PATH, content)
    return disk


def test_the_names_and_text_are_kafkas() -> None:
    assert {RECOVERY_POINT, REPLICATION, LOG_START, CLEANER} == {
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    }
    disk = disk_with(None)
    OffsetCheckpoint(disk, PATH).write({TopicPartition("t", 0): 20, TopicPartition("a.b", 7): 0})
    assert read_bytes(disk, PATH) == b"0\n2\nt 0 20\na.b 7 0\n"


@pytest.mark.parametrize("content", [None, b"", b"0\n", b"0\n0\n"])
def test_absent_and_empty_files_are_empty_tables(content: bytes | None) -> None:
    assert OffsetCheckpoint(disk_with(content), PATH).read() == {}


def test_a_missing_line_end_and_windows_line_ends_do_no_harm() -> None:
    expected = {TopicPartition("t", 0): 20}
    assert OffsetCheckpoint(disk_with(b"0\n1\nt 0 20"), PATH).read() == expected
    assert OffsetCheckpoint(disk_with(b"0\r\n1\r\nt 0 20\r\n"), PATH).read() == expected


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"zero\n0\n", "line 1 is 'zero'"),
        (b"1\n0\n", "line 1 says version 1"),
        (b"0\nmany\n", "line 2 is 'many'"),
        (b"0\n2\nt 0 20\n", "line 2 says that 2 lines follow, but there are 1"),
        (b"0\n1\nt 0 20\nt 1 20\n", "line 2 says that 1 lines follow, but there are 2"),
        (b"0\n-1\n", "line 2 says that -1 lines follow"),
        (b"0\n1\nt 0\n", "line 3 is 't 0'"),
        (b"0\n2\nt 0 20\nt one 20\n", "line 4 is 't one 20': 'one' is not a number"),
        (b"0\n1\nt 0 9223372036854775808\n", "not a number of 64 bits"),
        (b"0\n1\nt 4294967296 1\n", "not a number of 32 bits"),
        (b"0\n1\nt 0 1_0\n", "'1_0' is not a number"),
        (b"0\n1\nt 0 20\n\n", "line 4 is ''"),
        (b"\xff\n", "byte 0 is not text"),
    ],
)
def test_an_error_names_the_file_and_the_line(content: bytes, named: str) -> None:
    with pytest.raises(CorruptCheckpointError) as caught:
        OffsetCheckpoint(disk_with(content), PATH).read()
    assert str(caught.value).startswith(PATH)
    assert named in str(caught.value)


@given(offset_tables)
def test_what_is_written_is_read(offsets: dict[TopicPartition, int]) -> None:
    checkpoint = OffsetCheckpoint(disk_with(None), PATH)
    checkpoint.write(offsets)
    assert checkpoint.read() == offsets


@given(st.binary(max_size=40))
def test_no_content_does_worse_than_a_corrupt_checkpoint(content: bytes) -> None:
    try:
        offsets = OffsetCheckpoint(disk_with(content), PATH).read()
    except CorruptCheckpointError:
        return
    assert len(offsets) <= content.count(b"\n") + content.count(b"\r") + 1


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_a_crash_leaves_the_old_table_or_the_new_one(seed: int) -> None:
    old = {TopicPartition("t", 0): 20}
    new = {TopicPartition("t", partition): 10**12 for partition in range(50)}
    for cut_at in range(20):
        disk = FaultyDisk(seed, directories=["/data"])
        OffsetCheckpoint(disk, PATH).write(old)
        cut = disk.before_operation = PowerCut(cut_at)
        finished = True
        try:
            OffsetCheckpoint(disk, PATH).write(new)
        except SimulatedCrash:
            finished = False
        after = disk.crash(random.Random(seed))
        found = OffsetCheckpoint(after, PATH).read()
        assert found == new if finished else found in (old, new), f"seed {seed}, cut at {cut_at}"
        if finished:
            assert cut.count <= cut_at
            return
    pytest.fail("the write never finished")
