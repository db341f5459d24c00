"""A log with hidden batches beside a plain list of its batches, which says what is seen of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headwater.sim.campaigns.logs import (
    DIRECTORY,
    NOW_MS,
    batch_of,
    end_transaction,
    new_disk,
    open_log,
)
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.indexes.hidden_index import HiddenStretch
from headwater.storage.log_config import LogConfig
from headwater.storage.partition_log import PartitionLog
from headwater.storage.producers.entry import AppendOrigin
from headwater.storage.segments.batch_scan import ScannedBatch
from headwater.storage.truncation import truncate_to
from headwater.wire.delayed.delayed_batch import delayed_message, encode_delayed_batch
from headwater.wire.records import BatchHeader, Record, decode_batch, iter_batch_headers

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


def delayed_batch(
    *values: bytes,
    append_ms: int = NOW_MS,
    producer_id: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """Values that wait for an hour."""
    return encode_delayed_batch(
        [
            delayed_message(Record(number, append_ms, b"key", value), append_ms + 3_600_000)
            for number, value in enumerate(values)
        ],
        append_ms=append_ms,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def append_delayed(log: PartitionLog, *values: bytes, append_ms: int = NOW_MS) -> int:
    """The offset of the first of some values that wait."""
    return log.append_as_leader(
        delayed_batch(*values, append_ms=append_ms),
        leader_epoch=0,
        now_ms=append_ms,
        origin=AppendOrigin.COORDINATOR,
    ).base_offset


def whole_batches(data: bytes) -> list[BatchHeader]:
    """The headers of the batches that are not cut short."""
    found, position = [], 0
    while len(data) - position >= 61:
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        found += [header for _, header in iter_batch_headers(data[position : position + size])]
        decode_batch(data[position : position + size])
        position += size
    return found


@dataclass
class HiddenLog:
    config: LogConfig = CONFIG
    disk: FaultyDisk = field(default_factory=new_disk)
    log: PartitionLog = field(init=False)
    sequence: int = 0

    def __post_init__(self) -> None:
        self.log = open_log(self.disk, DIRECTORY, self.config)

    # -- what happens ----------------------------------------------------------------------------

    def show(self, count: int, size: int) -> None:
        values = [b"v" * size] * count
        self.log.append_as_leader(batch_of(*values), leader_epoch=0, now_ms=NOW_MS)

    def hide(self, count: int, size: int) -> None:
        append_delayed(self.log, *[b"h" * size] * count)

    def hide_in_transaction(self, count: int, size: int) -> None:
        data = delayed_batch(
            *[b"t" * size] * count,
            producer_id=7,
            base_sequence=self.sequence,
            transactional=True,
        )
        self.log.append_as_leader(
            data, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
        self.sequence += count

    def mark(self, count: int, _size: int) -> None:
        end_transaction(self.log, 7, commit=count % 2 == 0)

    def copy_from_leader(self, count: int, size: int) -> None:
        """Several batches in one append, behind a gap, as a follower of a compacted log gets."""
        offset = self.log.log_end_offset + size % 3
        data = bytearray()
        for number in range(count):
            batch = bytearray(delayed_batch(b"f") if (number + size) % 2 else batch_of(b"g"))
            batch[0:8] = (offset + 2 * number).to_bytes(8, "big")
            batch[12:16] = bytes(4)
            data += batch
        self.log.append_as_follower(bytes(data), now_ms=NOW_MS)

    def roll(self, _count: int, _size: int) -> None:
        self.log.roll(NOW_MS)

    def truncate(self, count: int, size: int) -> None:
        offset = max(self.log.log_end_offset - count - size % 7, self.log.log_start_offset)
        truncate_to(self.log, offset, NOW_MS)
        self.sequence += 1000  # Whatever the producer's last number is now.

    def flush(self, _count: int, _size: int) -> None:
        self.log.flush()

    def delete_records(self, count: int, _size: int) -> None:
        self.log.raise_log_start(min(self.log.log_start_offset + count, self.log.log_end_offset))

    def reopen(self, count: int, _size: int) -> None:
        is_clean = count % 2 == 0
        log = self.log
        if is_clean:
            log.close()
        self.log = open_log(
            self.disk,
            DIRECTORY,
            self.config,
            is_clean=is_clean,
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
        )

    # -- what is true ----------------------------------------------------------------------------

    def headers(self) -> list[BatchHeader]:
        return [batch.header for segment in self.log.segments for batch in segment.scan()]

    def stretches(self) -> list[list[HiddenStretch]]:
        """Those of each segment, by walking through it."""
        return [list(_walk(segment.scan())) for segment in self.log.segments]

    def visible_end(self, upper: int, headers: list[BatchHeader] | None = None) -> int:
        """By walking back from `upper`."""
        end = upper
        for header in reversed(self.headers() if headers is None else headers):
            if header.base_offset >= upper:
                continue
            if not header.is_delayed:
                break
            end = header.base_offset
        return max(end, self.log.log_start_offset)

    def seen(self, offset: int, upper: int) -> list[BatchHeader]:
        """What a consumer gets from `offset` on, which may read below `upper`."""
        return [
            header
            for header in self.headers()
            if offset <= header.last_offset < upper and not header.is_delayed
        ]


def _walk(batches: Iterator[ScannedBatch]) -> Iterator[HiddenStretch]:
    running: HiddenStretch | None = None
    for position, header, _ in batches:
        if not header.is_delayed:
            if running is not None:
                yield running
            running = None
            continue
        end = position + header.size_bytes
        if running is None:
            running = HiddenStretch(header.base_offset, header.next_offset, position, end, -1)
        else:
            running = running._replace(next_offset=header.next_offset, end=end)
    if running is not None:
        yield running


def without_times(stretches: Sequence[HiddenStretch]) -> list[HiddenStretch]:
    return [each._replace(largest_ms=-1) for each in stretches]
