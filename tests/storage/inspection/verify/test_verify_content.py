"""What `log verify` finds where every checksum is right."""

from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import NOW_MS, open_log
from headwater.storage.disk.files import DiskFiles
from headwater.wire.records import (
    Record,
    encode_batch,
    iter_batch_headers,
    patch_batch,
)
from headwater.wire.records.batch_header import write_crc
from tests.support.logs.varied_log import write_varied_log
from tests.support.logs.verification import problems, verify

LAST = f"{66:020d}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A sound log that a test may damage."""
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    return tmp_path / "topic-0"


def test_records_that_do_not_fit_their_header_are_found_when_looking_deep(log: Path) -> None:
    path = log / f"{LAST}.log"
    content = bytearray(path.read_bytes())
    position, header = next(iter_batch_headers(content))
    content[position + 57 : position + 61] = (header.record_count - 1).to_bytes(4, "big")
    write_crc(content, position, header.size_bytes)
    path.write_bytes(content)
    assert not any(f.path == str(path) for f in problems(log, deep=False))
    (found,) = [f for f in problems(log, deep=True) if f.path == str(path)]
    assert found.position == position
    assert "records cannot be read" in found.what


def test_a_producer_that_lies_about_its_timestamps_is_worth_a_note(tmp_path: Path) -> None:
    log = open_log(DiskFiles(), str(tmp_path / "topic-0"))
    batch = encode_batch([Record(0, NOW_MS, None, b"x")], max_timestamp=NOW_MS + 1)
    log.append_as_follower(batch, now_ms=NOW_MS)  # A leader would have corrected it.
    log.close()
    (found,) = verify(tmp_path / "topic-0", deep=True)
    assert not found.is_problem
    assert f"its largest timestamp is {NOW_MS}, not {NOW_MS + 1}" in found.what


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (b"0\n2\n0 0\n1 51\n", "is of leader epoch 1, but leader-epoch-checkpoint has 0 there"),
        (b"0\n1\n0 0\n", "is of leader epoch 1, but leader-epoch-checkpoint has 0 there"),
        (b"0\n2\n1 50\n0 0\n", "(0, 0) does not follow (1, 50)"),
        (b"0\n2\n0 0\n", "line 2 says that 2 lines follow"),
        (b"zero", "line 1 is 'zero'"),
        (b"0\n1\n0\n", "line 3 is '0'"),
    ],
)
def test_wrong_leader_epochs_are_found(log: Path, table: bytes, sentence: str) -> None:
    (log / "leader-epoch-checkpoint").write_bytes(table)
    found = problems(log)
    assert any(sentence in finding.what for finding in found), found
    assert all(finding.remedy for finding in found)


def test_an_epoch_behind_the_end_is_worth_a_note(log: Path) -> None:
    (log / "leader-epoch-checkpoint").write_bytes(b"0\n3\n0 0\n1 50\n2 500\n")
    (found,) = verify(log)
    assert not found.is_problem
    assert found.what == "epoch 2 starts at offset 500, but the log ends at 78"


def test_a_missing_leader_epoch_checkpoint_is_found(log: Path) -> None:
    (log / "leader-epoch-checkpoint").unlink()
    (found,) = problems(log)
    assert found.what == "it is missing, but the log has leader epochs up to 1"


def test_leader_epochs_that_fall_are_found(log: Path) -> None:
    path = log / f"{LAST}.log"
    content = bytearray(path.read_bytes())
    position = [position for position, _ in iter_batch_headers(content)][-1]
    patch_batch(content, position, leader_epoch=0)
    path.write_bytes(content)
    assert next((f.position, f.what) for f in problems(log)) == (
        position,
        "leader epoch 0 follows leader epoch 1",
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (f"{78:020d}.snapshot", b"", "too few for its header"),
        (f"{78:020d}.snapshot", b"\0\1" + bytes(8), "checksum"),
        ("partition.metadata", b"version: 0\n", "a line with a version and one with a topic id"),
    ],
)
def test_damaged_small_files_are_found(log: Path, name: str, content: bytes, sentence: str) -> None:
    (log / name).write_bytes(content)
    (found,) = problems(log)
    assert (found.path, found.position) == (str(log / name), None)
    assert sentence in found.what


def test_an_older_snapshot_may_have_been_torn_by_a_crash(log: Path) -> None:
    (log / f"{LAST}.snapshot").write_bytes(b"")
    (found,) = verify(log)
    assert not found.is_problem
    assert found.remedy == "A start uses an older one and reads the log from there."


def test_a_snapshot_of_another_offset_is_found(log: Path) -> None:
    (log / f"{LAST}.snapshot").rename(log / f"{5:020d}.snapshot")
    (found,) = problems(log)
    assert "has an offset at or behind 5" in found.what
