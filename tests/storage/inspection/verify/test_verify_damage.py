"""Whatever is done to the files of a sound log must be found."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.sim.campaigns.logs import append, open_log
from headwater.storage.disk.files import DiskFiles
from headwater.wire.records import (
    iter_batch_headers,
)
from tests.support.logs.varied_log import write_varied_log
from tests.support.logs.verification import overwrite, problems, verify
from tests.support.tiers import full_tier

FIRST, SECOND, LAST = (f"{base_offset:020d}" for base_offset in (0, 26, 66))
#: What a log file's header fields are, by their place; the rest is covered by the checksum.
FIELDS = {
    "base offset": 7,
    "batch length": 11,
    "leader epoch": 15,
    "magic": 16,
    "crc": 20,
    "attributes": 22,
    "last offset delta": 26,
    "base timestamp": 34,
    "max timestamp": 42,
    "producer id": 50,
    "producer epoch": 52,
    "base sequence": 56,
    "record count": 60,
    "record": 61,
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A sound log that a test may damage."""
    write_varied_log(DiskFiles(), str(tmp_path / "topic-0"))
    return tmp_path / "topic-0"


def files_of(directory: Path) -> Iterator[Path]:
    return iter(sorted(directory.iterdir()))


def test_nothing_is_wrong_before(log: Path) -> None:
    assert {path.stem for path in log.glob("*.log")} == {FIRST, SECOND, LAST}
    suffixes = {path.suffix for path in files_of(log)}
    assert suffixes >= {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    assert verify(log) == verify(log, deep=False) == []


# -- every byte ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_is_found(log: Path, mask: int) -> None:
    log_step, step = (1, 1) if full_tier() else (17, 5)
    unnoticed = []
    for path in files_of(log):
        if path.name == "leader-epoch-checkpoint":
            continue  # Text, where a line break may become another one; see below.
        content = path.read_bytes()
        for position in range(0, len(content), log_step if path.suffix == ".log" else step):
            overwrite(path, position, bytes([content[position] ^ mask]))
            if not any(Path(finding.path).stem == path.stem for finding in verify(log, deep=False)):
                unnoticed.append((path.name, position))
            path.write_bytes(content)
    assert unnoticed == []


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("stem", [FIRST, LAST])
def test_a_flipped_header_field_is_found_where_it_is(log: Path, stem: str, field: str) -> None:
    path = log / f"{stem}.log"
    content = path.read_bytes()
    batches = [position for position, _ in iter_batch_headers(content)]
    position = batches[1]
    overwrite(path, position + FIELDS[field], bytes([content[position + FIELDS[field]] ^ 0x40]))
    found = [finding for finding in problems(log) if finding.path == str(path)]
    # A wrong offset may show only where the next batch does not follow.
    assert found[0].position in (position, batches[2])
    assert found[0].remedy


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
def test_a_file_cut_short_is_found(log: Path, suffix: str) -> None:
    stems = {".txnindex": FIRST, ".snapshot": f"{78:020d}"}
    path = log / f"{stems.get(suffix, SECOND)}{suffix}"
    content = path.read_bytes()
    unnoticed = []
    step = 17 if suffix == ".log" and not full_tier() else 1
    for size in range(0, len(content), step):
        path.write_bytes(content[:size])
        if not problems(log, deep=False):
            unnoticed.append(size)
    # An offset index that lacks its last entries is sound, and only makes searches longer. A log
    # that lacks its last batches is a log with a gap behind it, unless an index leads there.
    boundaries: set[int] = set()
    if suffix == ".index":
        boundaries = set(range(0, len(content), 8))
    elif suffix == ".log":
        boundaries = {position for position, _ in iter_batch_headers(content)}
        assert len(unnoticed) < 3
    assert boundaries.issuperset(unnoticed)


def test_a_log_that_lost_whole_batches_is_found_by_its_indexes(log: Path) -> None:
    path = log / f"{LAST}.log"
    content = path.read_bytes()
    last_position = [position for position, _ in iter_batch_headers(content)][-1]
    path.write_bytes(content[:last_position])
    found = {Path(finding.path).suffix for finding in problems(log)}
    # The time index of a closed log ends with its last batch, and so does the last snapshot.
    assert found >= {".snapshot"}


# -- exchanged and renamed files -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".log"])
def test_exchanged_files_are_found(log: Path, suffix: str) -> None:
    first, second = log / f"{FIRST}{suffix}", log / f"{SECOND}{suffix}"
    first_content, second_content = first.read_bytes(), second.read_bytes()
    first.write_bytes(second_content)
    second.write_bytes(first_content)
    assert {Path(finding.path).stem for finding in problems(log)} >= {FIRST, SECOND}


@pytest.mark.parametrize("base_offset", [1, 25, 27, 65])
def test_a_renamed_segment_is_found(log: Path, base_offset: int) -> None:
    for path in files_of(log):
        if path.stem == SECOND and path.suffix != ".snapshot":
            path.rename(log / f"{base_offset:020d}{path.suffix}")
    assert problems(log)


def test_a_segment_that_is_there_twice_is_found(log: Path) -> None:
    for path in files_of(log):
        if path.stem == SECOND:
            shutil.copy(path, log / f"{30:020d}{path.suffix}")
    assert any("reaches to offset 65" in finding.what for finding in problems(log))


def test_a_missing_segment_leaves_a_gap_and_orphans(log: Path) -> None:
    (log / f"{SECOND}.log").unlink()
    findings = verify(log)
    orphans = {Path(f.path).name for f in findings if "no log to this index" in f.what}
    assert orphans == {f"{SECOND}.index", f"{SECOND}.timeindex"}
    assert any(f.what == "offsets 26 to 65 are not there" for f in findings)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_found(log: Path, suffix: str) -> None:
    path = log / f"{SECOND}{suffix}"
    path.unlink()
    assert [(f.path, f.what) for f in problems(log)][:1] == [(str(path), "it is missing")]


def test_a_missing_transaction_index_is_found(log: Path) -> None:
    path = log / f"{FIRST}.txnindex"
    path.unlink()
    found = problems(log)
    assert {f.path for f in found} == {str(path)}
    assert len(found) == 3
    assert "no entry for the abort at offset" in found[0].what


# -- damage does not hide what comes after it ----------------------------------------------------


@pytest.mark.parametrize("field", ["magic", "record"])
def test_the_walk_goes_on_behind_damage(log: Path, field: str) -> None:
    path = log / f"{FIRST}.log"
    content = path.read_bytes()
    batches = [position for position, _ in iter_batch_headers(content)]
    for position in (batches[1], batches[5]):
        overwrite(path, position + FIELDS[field], b"\x55")
    assert [finding.position for finding in problems(log)] == [batches[1], batches[5]]


def test_a_file_damaged_throughout_makes_a_bounded_report(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    log = open_log(DiskFiles(), str(directory))
    for _ in range(150):
        append(log, b"x")
    log.close()
    path = directory / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    for position, _ in iter_batch_headers(bytes(content)):
        content[position + FIELDS["crc"]] ^= 1
    path.write_bytes(content)
    found = problems(directory)
    assert len(found) == 100
    assert found[-1].what == "there is more, which is not listed"


def test_an_index_is_not_blamed_for_damage_of_its_log(log: Path) -> None:
    path = log / f"{FIRST}.log"
    overwrite(path, FIELDS["record"], b"\x55")
    assert {finding.path for finding in problems(log)} == {str(path)}


# -- what older brokers wrote --------------------------------------------------------------------


def rewrite_entries(path: Path, entry_size: int, change: Callable[[bytes], bytes]) -> None:
    content = path.read_bytes()
    entries = [content[at : at + entry_size] for at in range(0, len(content), entry_size)]
    path.write_bytes(b"".join([change(entries[0]), *entries[1:]]))


def test_an_index_entry_for_several_batches_is_only_worth_a_note(log: Path) -> None:
    headers = [header for _, header in iter_batch_headers((log / f"{FIRST}.log").read_bytes())]
    later = {header.last_offset for header in headers}

    def span(entry: bytes) -> bytes:
        offset = int.from_bytes(entry[:4], "big")
        following = min(other for other in later if other > offset)
        return following.to_bytes(4, "big") + entry[4:]

    rewrite_entries(log / f"{FIRST}.index", 8, span)
    (found,) = verify(log)
    assert not found.is_problem
    assert "1 entries stand for several batches each" in found.what


def test_a_time_index_entry_of_a_record_is_only_worth_a_note(log: Path) -> None:
    def within(entry: bytes) -> bytes:
        return entry[:8] + (int.from_bytes(entry[8:], "big") - 1).to_bytes(4, "big")

    rewrite_entries(log / f"{SECOND}.timeindex", 12, within)
    (found,) = verify(log)
    assert not found.is_problem
    assert "1 entries have an offset within a batch" in found.what


def test_a_long_stretch_without_index_entries_is_worth_a_note(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    log = open_log(DiskFiles(), str(directory))
    for _ in range(12):
        append(log, b"x" * 100_000)
    log.close()
    assert verify(directory) == []
    (directory / f"{0:020d}.index").write_bytes(b"")
    (found,) = verify(directory)
    assert not found.is_problem
    assert "bytes of the log have no entry" in found.what
