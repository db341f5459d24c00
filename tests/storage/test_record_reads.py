"""What consumers get of a compacted log: its records, and no batch that compaction has emptied.

Followers get every byte all the same.
"""

from __future__ import annotations

from random import Random

from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, leader_batch, new_disk, open_log
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.compaction.record_slices import batch_without_records
from headwater.storage.log_config import LogConfig
from headwater.storage.log_reads import LogRead
from headwater.storage.partition_log import PartitionLog
from headwater.storage.truncation import truncate_to
from headwater.wire.records import (
    HEADER_SIZE,
    BatchHeader,
    Record,
    decode_batch,
    read_batch_header,
)
from tests.support.models.compaction import CompactedLog
from tests.support.models.compaction_steps import perform, random_operation
from tests.support.tiers import rounds

LARGE = 1 << 20


def whole_batches(data: bytes) -> list[tuple[BatchHeader, bytes]]:
    found, position = [], 0
    while len(data) - position >= HEADER_SIZE:
        header = read_batch_header(data, position)
        if position + header.size_bytes > len(data):
            break
        found.append((header, data[position : position + header.size_bytes]))
        position += header.size_bytes
    return found


def fetch(log: PartitionLog, offset: int, max_bytes: int, upper: int) -> LogRead:
    return log.read_records(offset, max_bytes, upper_offset=upper, min_one_batch=True)


def consume(log: PartitionLog, offset: int, max_bytes: int, upper: int) -> list[Record]:
    """Fetch up to `upper`, as any client does: the last batch of an answer says where to go on."""
    records: list[Record] = []
    while offset < upper:
        read = fetch(log, offset, max_bytes, upper)
        assert read.region is not None, f"nothing more from {offset} of {upper}"
        batches = whole_batches(read.region.read())
        next_offset = batches[-1][0].next_offset
        assert offset < next_offset <= upper
        if read.is_bare:
            assert [header.record_count for header, _ in batches] == [0]
            assert next_offset == upper and read.counted_bytes == 0
        else:
            assert all(header.record_count for header, _ in batches)
            assert read.counted_bytes == read.size
        for header, data in batches:
            found = [] if header.is_control else decode_batch(data)
            records += [record for record in found if record.offset >= offset]
        offset = next_offset
    return records


def follow(log: PartitionLog) -> bytes:
    """All that a new replica gets."""
    copied, offset = b"", 0
    while offset < log.log_end_offset:
        region = log.read(offset, LARGE, min_one_batch=True).region
        assert region is not None
        copied += region.read()
        offset = whole_batches(copied)[-1][0].next_offset
    return copied


def test_consumers_get_records_and_followers_all() -> None:
    empty_count = 0
    for seed in range(rounds(small=15, full=400)):
        rng = Random(seed)
        scenario = CompactedLog(FaultyDisk(directories=["/data"]))
        for _ in range(50):
            perform(scenario, random_operation(rng))
        perform(scenario, ("compact", 100))
        log = scenario.log
        whole = b"".join(segment.log.read_at(0, segment.size_bytes) for segment in log.segments)
        empty_count += sum(header.record_count == 0 for header, _ in whole_batches(whole))
        for upper in (log.log_end_offset, log.last_stable_offset):
            for start in (0, rng.randrange(upper + 1)):
                stored = [scenario.stored[at] for at in sorted(scenario.stored)]
                expected = [record for record in stored if start <= record.offset < upper]
                for max_bytes in (1, 300, LARGE):
                    found = consume(log, start, max_bytes, upper)
                    assert found == expected, f"seed {seed}, from {start} to {upper}"
        assert follow(log) == whole
    assert empty_count > 10


# -- single cases: `r` is a batch of a record, `-` an emptied one, `|` where a segment ends --------


def log_of(pattern: str) -> PartitionLog:
    log = open_log(new_disk(), DIRECTORY, LogConfig(cleanup_policy=frozenset({"compact"})))
    extend(log, pattern)
    return log


def extend(log: PartitionLog, pattern: str) -> None:
    for kind in pattern:
        if kind == "|":
            log.roll(NOW_MS)
            continue
        batch = leader_batch(log.log_end_offset, b"value")
        if kind == "-":
            batch = batch_without_records(read_batch_header(batch))
        log.append_as_follower(batch, now_ms=NOW_MS)


def offsets(log: PartitionLog, offset: int, upper: int | None = None) -> list[int]:
    """Of the batches in one answer."""
    read = fetch(log, offset, LARGE, log.log_end_offset if upper is None else upper)
    data = b"" if read.region is None else read.region.read()
    return [header.base_offset for header, _ in whole_batches(data)]


def test_an_answer_begins_behind_emptied_batches_and_ends_before_the_next() -> None:
    log = log_of("rr---rr-r")
    assert offsets(log, 0) == [0, 1]
    assert offsets(log, 2) == offsets(log, 4) == offsets(log, 5) == [5, 6]
    assert offsets(log, 7) == [8]


def test_the_next_segment_is_read_instead_of_the_end_of_one() -> None:
    log = log_of("rr-|--|-r|r")
    assert offsets(log, 0) == [0, 1]
    assert offsets(log, 2) == offsets(log, 4) == [6]
    assert offsets(log, 7) == [7]


def test_the_last_emptied_batch_tells_where_the_end_is() -> None:
    log = log_of("rr--|-|")
    assert offsets(log, 0) == [0, 1]
    assert offsets(log, 2) == offsets(log, 3) == offsets(log, 4) == [4]
    assert fetch(log, 2, LARGE, 5).is_bare
    assert offsets(log, 5) == []


def test_what_may_not_be_seen_yet_is_not_behind_them() -> None:
    log = log_of("r--|r")
    assert offsets(log, 1) == [3]
    assert offsets(log, 1, upper=3) == [2]
    assert offsets(log, 1, upper=2) == [1]


def test_a_large_batch_behind_them_comes_whole_or_not_at_all() -> None:
    log = log_of("-r")
    size = len(leader_batch(1, b"value"))
    read = fetch(log, 0, HEADER_SIZE, log.log_end_offset)
    assert (read.size, read.is_bare) == (size, False)


def test_a_log_that_was_cut_is_looked_through_again() -> None:
    log = log_of("rr-r")
    assert offsets(log, 0) == [0, 1]
    truncate_to(log, 1, NOW_MS)
    extend(log, "r" * 4)
    assert offsets(log, 0) == [0, 1, 2, 3, 4]
    truncate_to(log, 1, NOW_MS)
    extend(log, "-rr")
    assert offsets(log, 0) == [0]
    assert offsets(log, 1) == [2, 3]
