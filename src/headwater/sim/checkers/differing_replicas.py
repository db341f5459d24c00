"""Differing replicas: below the high watermark, the logs of all replicas hold the same bytes.

Each replica has its own high watermark, which may be behind the leader's; two of them are compared
as far as both are sure. Log segments are read as they lie on the disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headwater.base.ids import TopicPartition
from headwater.sim.histories.history import PropertyViolated
from headwater.wire.records import LOG_OVERHEAD

_LAST_OFFSET_DELTA = slice(23, 27)


class ReplicaLog(NamedTuple):
    """What one broker holds of a partition."""

    high_watermark: int
    #: The content of its log files, oldest first.
    segments: tuple[bytes, ...]
    #: What lies in front of it is deleted, or may be.
    log_start_offset: int = 0

    def batches(self) -> Iterator[tuple[int, int, bytes]]:
        """The first and the last offset of every batch, and its bytes."""
        for segment in self.segments:
            position = 0
            while position + LOG_OVERHEAD <= len(segment):
                size = LOG_OVERHEAD + int.from_bytes(segment[position + 8 : position + 12], "big")
                batch = segment[position : position + size]
                first = int.from_bytes(batch[:8], "big")
                if len(batch) < size or size <= LOG_OVERHEAD:
                    break
                last = first + int.from_bytes(batch[_LAST_OFFSET_DELTA], "big")
                yield first, last, batch
                position += size


def check_replicas_agree(partition: TopicPartition, logs: Mapping[int, ReplicaLog]) -> None:
    """Compare what each of the brokers in `logs` holds."""
    brokers = sorted(logs)
    held = {broker: list(logs[broker].batches()) for broker in brokers}
    for index, one in enumerate(brokers):
        for other in brokers[index + 1 :]:
            sure = min(logs[one].high_watermark, logs[other].high_watermark)
            start = max(logs[one].log_start_offset, logs[other].log_start_offset)
            _compare(partition, one, held[one], other, held[other], start, sure)


def _compare(
    partition: TopicPartition,
    one: int,
    ours: list[tuple[int, int, bytes]],
    other: int,
    theirs: list[tuple[int, int, bytes]],
    start: int,
    sure: int,
) -> None:
    # Either may have deleted its oldest records already.
    start = max((start, *(batches[0][0] for batches in (ours, theirs) if batches)))
    expected = [batch for batch in ours if start <= batch[0] and batch[1] < sure]
    found = [batch for batch in theirs if start <= batch[0] and batch[1] < sure]
    for (first, last, data), (other_first, other_last, other_data) in zip(
        expected, found, strict=False
    ):
        if (first, last, data) != (other_first, other_last, other_data):
            raise PropertyViolated(
                f"replicas do not differ below the high watermark: in {partition} broker {one} has "
                f"offsets {first} to {last}, {data[:61].hex()}, where broker {other} has "
                f"{other_first} to {other_last}, {other_data[:61].hex()}; both are sure to {sure}"
            )
    if len(expected) != len(found):
        raise PropertyViolated(
            f"replicas do not differ below the high watermark: in {partition} broker {one} has "
            f"{len(expected)} batches up to {sure}, and broker {other} has {len(found)}"
        )
