"""What `log dump` shows of indexes, and of those that contradict their log."""

import struct
from pathlib import Path

import pytest

from headwater.storage.disk.files import DiskFiles
from headwater.storage.inspection.dump.dump import DumpOptions
from tests.support.logs.dumps import text_of
from tests.support.logs.varied_log import write_varied_log
from tests.support.logs.verification import overwrite

# -- indexes -------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A partition's directory with something of everything."""
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    return tmp_path / "topic-0"


def entries(path: Path, fmt: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(fmt, path.read_bytes()))


def test_indexes_are_shown_with_absolute_offsets(log: Path) -> None:
    index, time_index = log / f"{26:020d}.index", log / f"{26:020d}.timeindex"
    lines, complaints = text_of(index)
    assert lines == [f"offset: {26 + o} position: {p}" for o, p in entries(index, ">ii")]
    assert lines and complaints == []
    lines, complaints = text_of(time_index)
    assert lines == [f"timestamp: {t} offset: {26 + o}" for t, o in entries(time_index, ">qi")]
    assert lines and complaints == []


def test_indexes_can_be_checked_without_being_shown(log: Path) -> None:
    for suffix in (".index", ".timeindex"):
        path = log / f"{26:020d}{suffix}"
        assert text_of(path, options=DumpOptions(verify_index_only=True)) == ([], [])
        sane = text_of(path, options=DumpOptions(index_sanity_check=True))
        assert sane == ([f"{path} passed sanity check."], [])


def test_an_index_that_contradicts_its_log(log: Path) -> None:
    path = log / f"{26:020d}.index"
    first, second, *_ = entries(path, ">ii")
    overwrite(path, 0, struct.pack(">ii", first[0] - 1, first[1]))
    overwrite(path, 8, struct.pack(">ii", second[0], second[1] + 1))
    lines, complaints = text_of(path, options=DumpOptions(verify_index_only=True))
    assert lines == []
    assert complaints[:2] == [
        f"Mismatches in :{path}",
        f"  Index offset: {26 + first[0] - 1}, log offset: {26 + first[0]}",
    ]
    assert complaints[2].startswith(f"{path}: position 8: no batch starts at position")


def test_a_time_index_that_contradicts_its_log(log: Path) -> None:
    path = log / f"{26:020d}.timeindex"
    rows = entries(path, ">qi")
    overwrite(path, 0, struct.pack(">qi", rows[0][0] + 1, rows[0][1]))
    overwrite(path, 12, struct.pack(">qi", rows[0][0], rows[1][1]))
    overwrite(path, 24, struct.pack(">qi", rows[2][0], rows[2][1] - 1))
    _, complaints = text_of(path)
    assert complaints == [
        f"Found timestamp mismatch in :{path}",
        f"  Index timestamp: {rows[0][0] + 1}, log timestamp: {rows[0][0]}",
        f"  Index timestamp: {rows[0][0]}, log timestamp: {rows[1][0]}",
        f"Found out of order timestamp in :{path}",
        f"  Index timestamp: {rows[0][0]}, Previously indexed timestamp: {rows[0][0] + 1}",
        "The following indexed offsets are not found in the log.",
        f"Indexed offset: {26 + rows[2][1] - 1}, found log offset: {26 + rows[2][1]}",
    ]


def test_an_index_beyond_its_log(log: Path) -> None:
    path = log / f"{26:020d}.timeindex"
    overwrite(path, 0, struct.pack(">qi", 5, 2**31 - 1))
    _, complaints = text_of(path)
    assert f"Indexed offset: {26 + 2**31 - 1}, found log offset: -1" in complaints


@pytest.mark.parametrize(("suffix", "size"), [(".index", 8), (".timeindex", 12)])
def test_blank_space_in_an_index_is_not_shown(log: Path, suffix: str, size: int) -> None:
    path = log / f"{26:020d}{suffix}"
    content = path.read_bytes()
    path.write_bytes(content + bytes(100 * size))
    lines, complaints = text_of(path)
    assert len(lines) == len(content) // size
    assert complaints == []
    path.write_bytes(bytes(100 * size))
    lines, complaints = text_of(path)
    assert lines == ([f"{path} is empty."] if suffix == ".index" else [])
    assert complaints == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_a_part_of_an_entry_is_told(log: Path, suffix: str) -> None:
    path = log / f"{0:020d}{suffix}"
    content = path.read_bytes()
    path.write_bytes(content + b"\x01\x02\x03")
    _, complaints = text_of(path)
    assert any(line.startswith(f"{path}: position {len(content)}: ") for line in complaints)


def test_an_index_that_a_starting_broker_rebuilds(log: Path) -> None:
    path = log / f"{26:020d}.index"
    path.write_bytes(path.read_bytes() + b"\x01")
    lines, (complaint,) = text_of(path, options=DumpOptions(index_sanity_check=True))
    assert lines == []
    assert complaint.startswith(f"{path}: ")


def test_an_index_without_its_log_is_still_shown(log: Path) -> None:
    (log / f"{26:020d}.log").unlink()
    for suffix in (".index", ".timeindex"):
        lines, complaints = text_of(log / f"{26:020d}{suffix}")
        assert lines
        assert len(complaints) == 1
        assert "there is no log beside this index" in complaints[0]


def test_files_on_their_way_out_are_shown_too(log: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = log / f"{26:020d}{suffix}"
        before = text_of(path)
        moved = path.rename(path.with_name(path.name + ".deleted"))
        if suffix == ".log":
            assert text_of(moved) == before
    lines, complaints = text_of(log / f"{26:020d}.index.deleted")
    assert lines and complaints == []
