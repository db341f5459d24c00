"""Finding emptied batches: each stretch is looked through once, and a bounded stretch at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from headwater.sim.campaigns.logs import leader_batch
from headwater.storage.compaction.record_slices import batch_without_records
from headwater.storage.segments import empty_batches
from headwater.storage.segments.empty_batches import EmptyBatches, EmptyRun
from headwater.wire.records import HEADER_SIZE, CorruptRecordError, read_batch_header


@dataclass
class CountedFile:
    """A log file that counts how often it is read."""

    data: bytes
    path: str = "orders-0/00.log"
    read_count: int = 0

    def read_at(self, position: int, size: int) -> bytes:
        self.read_count += 1
        return self.data[position : position + size]

    def write_at(self, position: int, data: object) -> None:
        raise io.UnsupportedOperation

    def truncate(self, size: int) -> None:
        raise io.UnsupportedOperation

    def reserve(self, size: int) -> None:
        raise io.UnsupportedOperation

    def size(self) -> int:
        return len(self.data)

    def sync(self) -> None:
        raise io.UnsupportedOperation

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    def close(self) -> None:
        pass


def log_of(pattern: str, value: bytes = b"value") -> tuple[CountedFile, list[int]]:
    """A batch of one record for each `r`, an emptied one for each `-`; and where each starts."""
    positions, data = [], b""
    for offset, kind in enumerate(pattern):
        positions.append(len(data))
        batch = leader_batch(offset, value)
        data += batch if kind == "r" else batch_without_records(read_batch_header(batch))
    return CountedFile(data), [*positions, len(data)]


def test_batches_in_a_row_are_one_run() -> None:
    file, at = log_of("rr--r---")
    batches = EmptyBatches(file)
    first = EmptyRun(at[2], at[4], at[3], 4)
    second = EmptyRun(at[5], at[8], at[7], 8)
    assert batches.look(0, at[8]) == (at[8], first)
    assert batches.look(at[3], at[8]) == (at[8], EmptyRun(at[3], at[4], at[3], 4))
    assert batches.look(at[4], at[8]) == (at[8], second)
    assert batches.look(0, at[2]) == (at[2], None)
    assert at[4] - at[3] == HEADER_SIZE


def test_a_run_ends_where_the_look_does() -> None:
    file, at = log_of("r---r")
    batches = EmptyBatches(file)
    batches.look(0, at[5])
    assert batches.look(0, at[3])[1] == EmptyRun(at[1], at[3], at[2], 3)
    assert batches.look(at[1], at[3] + 5)[1] == EmptyRun(at[1], at[3], at[2], 3)


def test_what_is_known_is_not_read_again() -> None:
    file, at = log_of("rr-r")
    batches = EmptyBatches(file)
    batches.look(0, at[4])
    read_count = file.read_count
    for start in range(4):
        batches.look(at[start], at[4])
    assert file.read_count == read_count


def test_an_append_goes_on_where_the_last_look_ended() -> None:
    file, at = log_of("r-")
    batches = EmptyBatches(file)
    assert batches.look(0, at[2])[1] == EmptyRun(at[1], at[2], at[1], 2)
    file.data, at = log_of("r--r")[0].data, log_of("r--r")[1]
    assert batches.look(at[1], at[4]) == (at[4], EmptyRun(at[1], at[3], at[2], 3))


def test_who_reads_elsewhere_gets_the_same() -> None:
    file, at = log_of("r-r-r-")
    batches = EmptyBatches(file)
    assert batches.look(at[4], at[6])[1] == EmptyRun(at[5], at[6], at[5], 6)
    assert batches.look(at[0], at[2])[1] == EmptyRun(at[1], at[2], at[1], 2)
    assert batches.look(at[2], at[6])[1] == EmptyRun(at[3], at[4], at[3], 4)
    assert batches.look(at[4], at[6])[1] == EmptyRun(at[5], at[6], at[5], 6)


def test_one_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_batches, "LOOK_BYTES_MAX", 10_000)
    file, at = log_of("rrr-rr", b"x" * 6_000)
    batches = EmptyBatches(file)
    assert batches.look(0, at[6]) == (at[2], None)
    assert batches.look(at[2], at[6]) == (at[5], EmptyRun(at[3], at[4], at[3], 4))
    assert batches.look(0, at[6]) == (at[6], EmptyRun(at[3], at[4], at[3], 4))


def test_a_region_may_end_within_a_batch() -> None:
    file, at = log_of("r-rr")
    assert EmptyBatches(file).look(at[2], at[3] + 5) == (at[3] + 5, None)
    assert EmptyBatches(file).look(at[0], at[1] + 5)[1] == EmptyRun(at[1], at[2], at[1], 2)
    assert EmptyBatches(file).look(at[0], at[1]) == (at[1], None)


@pytest.mark.parametrize(("position_in_header", "byte"), [(8, 0x80), (23, 0x80)])
def test_a_header_that_cannot_be_stops_the_look_and_nothing_else(
    position_in_header: int, byte: int
) -> None:
    """A length, or for an emptied batch a last offset, from before the batch begins.

    What stands in front of it is still read; a look that went on there might never end.
    """
    file, positions = log_of("rr-r")
    data = bytearray(file.data)
    data[positions[2] + position_in_header] = byte
    batches = EmptyBatches(CountedFile(bytes(data)))
    assert batches.look(0, positions[4]) == (positions[2], None)
    with pytest.raises(CorruptRecordError, match=f"position {positions[2]}"):
        batches.look(positions[2], positions[4])
