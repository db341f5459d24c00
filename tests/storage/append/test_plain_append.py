"""The short way of an append: it does what the long way does, or leaves it alone."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    SMALL_SEGMENTS,
    batch_of,
    new_disk,
    open_log,
)
from headwater.storage.append.plain import append_plain_batch
from headwater.storage.errors import LogStorageError, OutOfOrderSequenceError
from headwater.storage.log_config import LogConfig, RecordsValidation
from headwater.storage.partition_log import PartitionLog
from headwater.wire.records import Compression, Record, TimestampType, encode_batch
from headwater.wire.records.batch_header import write_crc

CONFIGS = {
    "ordinary": SMALL_SEGMENTS,
    "append time": dataclasses.replace(
        SMALL_SEGMENTS, message_timestamp_type=TimestampType.LOG_APPEND_TIME
    ),
    "recompressing": dataclasses.replace(SMALL_SEGMENTS, compression=Compression.LZ4),
    "small messages": dataclasses.replace(SMALL_SEGMENTS, max_message_bytes=150),
    "bounded times": dataclasses.replace(SMALL_SEGMENTS, message_timestamp_before_max_ms=1_000),
    "headers only": dataclasses.replace(
        SMALL_SEGMENTS, records_validation=RecordsValidation.HEADER
    ),
    "full validation": dataclasses.replace(
        SMALL_SEGMENTS, records_validation=RecordsValidation.FULL
    ),
}


class Change(NamedTuple):
    """A byte of a batch that is not what its producer wrote, with a right checksum or not."""

    position: int
    byte: int
    mended: bool


class Step(NamedTuple):
    sizes: tuple[int, ...]
    compression: Compression
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    timestamp: int
    leader_epoch: int
    change: Change | None
    surplus: bytes

    def batch(self) -> bytearray:
        has_producer = self.producer_id >= 0
        batch = bytearray(
            batch_of(
                *map(bytes, self.sizes),
                timestamp=self.timestamp,
                compression=self.compression,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch if has_producer else -1,
                base_sequence=self.base_sequence if has_producer else -1,
                transactional=self.transactional and has_producer,
            )
        )
        if self.change is not None:
            batch[min(self.change.position, len(batch) - 1)] = self.change.byte
            if self.change.mended:
                write_crc(batch, 0, len(batch))
        return batch + self.surplus


steps = st.builds(
    Step,
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=3).map(tuple),
    compression=st.sampled_from([Compression.NONE, Compression.NONE, Compression.GZIP]),
    producer_id=st.sampled_from([-1, 7, 7, 7]),
    producer_epoch=st.sampled_from([0, 0, 0, 1]),
    base_sequence=st.integers(0, 6),
    transactional=st.sampled_from([False, False, False, True]),
    timestamp=st.sampled_from([NOW_MS, NOW_MS, NOW_MS - 5_000, NOW_MS + 3_700_000, -1]),
    leader_epoch=st.sampled_from([3, 3, 3, 4]),
    change=st.none() | st.builds(Change, st.integers(0, 90), st.integers(0, 255), st.booleans()),
    surplus=st.sampled_from([b"", b"", b"", b"\0"]),
)


class Logs(NamedTuple):
    """The same log twice, one written the long way only."""

    short: PartitionLog
    long: PartitionLog

    @classmethod
    def new(cls, config: LogConfig) -> Logs:
        return cls(*(open_log(new_disk(), DIRECTORY, config) for _ in range(2)))

    def states(self) -> tuple[object, object]:
        return tuple(
            (
                log.log_end_offset,
                sorted(log.producer_states),
                log.producer_states.end_offset,
                log.producer_states.first_unstable_offset,
                log.leader_epochs.entries,
                [
                    (
                        segment.base_offset,
                        segment.next_offset,
                        segment.latest,
                        segment.log.read_at(0, segment.size_bytes),
                        segment.offset_index.entries(),
                        segment.time_index.entries(),
                    )
                    for segment in log.segments
                ],
            )
            for log in (self.short, self.long)
        )  # type: ignore[return-value]


def append_long(log: PartitionLog, batch: bytearray, leader_epoch: int) -> int | str:
    try:
        return log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=NOW_MS).base_offset
    except KafkaError as error:
        return f"{error.code.name}: {error}"


def append_short(log: PartitionLog, batch: bytearray, leader_epoch: int) -> int | str:
    before = bytes(batch)
    offset = append_plain_batch(log, memoryview(batch), leader_epoch, NOW_MS)
    if offset is not None:
        return offset
    assert batch == before
    return append_long(log, batch, leader_epoch)


@pytest.mark.parametrize("name", CONFIGS)
@given(some=st.lists(steps, max_size=12))
def test_both_ways_lead_to_the_same_log(name: str, some: list[Step]) -> None:
    logs = Logs.new(CONFIGS[name])
    for step in some:
        short = append_short(logs.short, step.batch(), step.leader_epoch)
        assert short == append_long(logs.long, step.batch(), step.leader_epoch)
        mine, other = logs.states()
        assert mine == other


@pytest.mark.parametrize("validation", [RecordsValidation.HEADER, RecordsValidation.STRUCTURE])
def test_ordinary_batches_take_the_short_way(validation: RecordsValidation) -> None:
    log = open_log(new_disk(), DIRECTORY, LogConfig(records_validation=validation))
    log.append_as_leader(batch_of(b"first"), leader_epoch=0, now_ms=NOW_MS)
    for compression in Compression:
        batch = bytearray(batch_of(b"a", b"b", compression=compression))
        assert append_plain_batch(log, memoryview(batch), 0, NOW_MS) == 1 + 2 * compression


def test_only_compressed_batches_leave_the_short_way_if_all_are_validated() -> None:
    log = open_log(new_disk(), DIRECTORY, LogConfig(records_validation=RecordsValidation.FULL))
    log.append_as_leader(batch_of(b"first"), leader_epoch=0, now_ms=NOW_MS)
    batch = bytearray(batch_of(b"a", compression=Compression.LZ4))
    assert append_plain_batch(log, memoryview(batch), 0, NOW_MS) is None
    assert append_plain_batch(log, memoryview(bytearray(batch_of(b"a"))), 0, NOW_MS) == 1


def test_records_without_timestamps_take_the_short_way() -> None:
    log = open_log(new_disk(), DIRECTORY)
    log.append_as_leader(batch_of(b"first"), leader_epoch=0, now_ms=NOW_MS)
    for compression in Compression:
        record = Record(0, -1, None, b"value")
        batch = bytearray(encode_batch([record], compression=compression))
        assert append_plain_batch(log, memoryview(batch), 0, NOW_MS) == 1 + compression


def test_a_numbered_producer_takes_the_short_way_from_its_second_batch_on() -> None:
    log = open_log(new_disk(), DIRECTORY)
    offsets = []
    for sequence in range(8):
        batch = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)
        offset = append_plain_batch(log, memoryview(bytearray(batch)), 0, NOW_MS)
        if offset is None:
            log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        offsets.append(offset)
    assert offsets == [None, *range(1, 8)]


def test_what_the_disk_refuses_leaves_no_trace() -> None:
    disk = new_disk()
    log = open_log(disk, DIRECTORY)
    log.append_as_leader(batch_of(b"makes the files"), leader_epoch=0, now_ms=NOW_MS)
    log.append_as_leader(
        batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=0),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    disk.capacity_bytes = disk.used_bytes + 300

    def send(sequence: int, size: int) -> int | None:
        batch = batch_of(bytes(size), producer_id=7, producer_epoch=0, base_sequence=sequence)
        return append_plain_batch(log, memoryview(bytearray(batch)), 0, NOW_MS)

    with pytest.raises(LogStorageError):
        send(1, 1_000)
    assert (log.log_end_offset, send(2, 10)) == (2, None)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(
            batch_of(bytes(10), producer_id=7, producer_epoch=0, base_sequence=2),
            leader_epoch=0,
            now_ms=NOW_MS,
        )
    disk.capacity_bytes = None
    assert [send(1, 1_000), send(2, 10)] == [2, 3]
