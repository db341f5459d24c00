"""A shard's way to its partition: records are written there, and read back when it is loaded.

A write is safe when an acks=all produce would be acknowledged: all in-sync replicas have it, and it
is on disk where the topic's promise asks for that.

It belongs to one leader epoch. If this broker lost the partition meanwhile, or lost it and has it
again, others may have written there: the shard does not know of that, and must not write any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.threads import RunInThread
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.shard import Shard
from headwater.coordinator.stored_record import StoredRecord
from headwater.replication.partition.options import ACKS_ALL
from headwater.replication.partition.partition import Partition
from headwater.replication.waiting.delayed_produce import await_append, when_settled
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.storage.producers.entry import AppendOrigin
from headwater.wire.records import (
    NO_PRODUCER_ID,
    BatchHeader,
    Compression,
    ControlType,
    Record,
    decode_batch,
    decode_control_record,
    encode_batch,
    encode_end_transaction_marker,
    iter_batch_headers,
)

_logger = logging.getLogger(__name__)

#: How much is replayed before the event loop gets its turn.
_TURN_BYTES: Final = 64 << 10

_NO_COORDINATOR: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_NOT_AVAILABLE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)


@dataclass(frozen=True, slots=True)
class ShardLogOptions:
    """What settings say, read when it counts."""

    #: How long a write may take to become safe.
    write_timeout_ms: Callable[[], int]
    #: How much is read at a time when a partition is loaded.
    load_bytes: Callable[[], int]
    compression: Callable[[], Compression] = lambda: Compression.NONE


class ShardLog:
    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        options: ShardLogOptions,
        parked: ParkedRequests,
        clock: Clock,
        run_in_thread: RunInThread,
    ) -> None:
        self.partition = partition
        self._leader_epoch = leader_epoch
        self._options = options
        self._parked = parked
        self._clock = clock
        self._run_in_thread = run_in_thread

    # -- writing ---------------------------------------------------------------------------------

    def append(self, records: Sequence[StoredRecord], producer: ProducerIdentity | None) -> int:
        """Write records as one batch, and return the offset of the first."""
        now_ms = self._clock.wall_ms()
        batch = encode_batch(
            [Record(number, now_ms, *record) for number, record in enumerate(records)],
            producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            transactional=producer is not None,
            compression=self._options.compression(),
        )
        return self._append(batch, now_ms)

    def append_marker(
        self, producer: ProducerIdentity, control_type: ControlType, coordinator_epoch: int
    ) -> int:
        """Write the end of a producer's transaction, and return its offset."""
        now_ms = self._clock.wall_ms()
        marker = encode_end_transaction_marker(
            control_type,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        return self._append(marker, now_ms)

    def _append(self, batch: bytes, now_ms: int) -> int:
        self.partition.check_leader(self._leader_epoch)
        return self.partition.append(
            bytearray(batch), acks=ACKS_ALL, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        ).base_offset

    def is_all_safe(self) -> bool:
        """Whether nobody can lose anything of what was written so far.

        It does not matter to that whether there are in-sync replicas enough for another write: what
        a group has committed may be read when nothing more can be.
        """
        partition = self.partition
        end_offset = partition.log_end_offset
        return (
            partition.is_leader
            and partition.leader_epoch == self._leader_epoch
            and partition.log.failure is None
            and partition.high_watermark >= end_offset
            and (not partition.needs_fsync(ACKS_ALL) or partition.log.flushed_offset >= end_offset)
        )

    def when_safe(
        self, on_safe: Callable[[], None], on_failed: Callable[[KafkaError], None]
    ) -> None:
        """Call one of them when all that was written so far is safe, or cannot become so."""
        append = await_append(self.partition, self.partition.log_end_offset)

        def respond() -> None:
            if append.error is None:
                on_safe()
            else:
                on_failed(as_coordinator_error(append.error))

        when_settled(self._parked.produce, [append], self._options.write_timeout_ms(), respond)

    # -- loading ---------------------------------------------------------------------------------

    async def replay_into(self, shard: Shard) -> int:
        """Give a new shard all that stands in the partition; returns how many records.

        All means to the log's end, which may be ahead of the high watermark of a new leader. What
        lies between is not safe yet, so nobody is told of it before it is (`when_safe`).
        """
        log = self.partition.log
        offset = log.log_start_offset
        count = 0
        while offset < log.log_end_offset:
            region = log.read(offset, self._options.load_bytes(), min_one_batch=True).region
            if region is None:
                break
            turn_bytes = 0
            for data, header in whole_batches(await self._run_in_thread(region.read)):
                count += self._replay_batch(shard, data, header)
                offset = header.next_offset
                turn_bytes += len(data)
                if turn_bytes > _TURN_BYTES:
                    turn_bytes = 0
                    await asyncio.sleep(0)
        return count

    def _replay_batch(self, shard: Shard, data: memoryview, header: BatchHeader) -> int:
        producer = None
        if header.is_transactional:
            producer = ProducerIdentity(header.producer_id, header.producer_epoch)
        records = decode_batch(data)
        if header.is_control:
            for record in records:
                marker = decode_control_record(record)
                if marker is not None and producer is not None:
                    shard.replay_transaction_end(
                        producer, is_committed=marker.type is ControlType.COMMIT
                    )
            return 0
        for record in records:
            if record.key is not None:
                stored = StoredRecord(bytes(record.key), _bytes(record.value))
                shard.replay(stored, record.offset, producer, record.timestamp)
        return len(records)


def whole_batches(data: bytes) -> list[tuple[memoryview, BatchHeader]]:
    """The batches that stand in `data` as a whole; a reader gets the rest of the last one later."""
    view = memoryview(data)
    batches: list[tuple[memoryview, BatchHeader]] = []
    try:
        for position, header in iter_batch_headers(view):
            batches.append((view[position : position + header.size_bytes], header))
    except KafkaError:
        if not batches:
            raise
    return batches


def _bytes(value: bytes | memoryview | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """What a client is told of an append that failed: it looks for the coordinator again."""
    if error.code in _NO_COORDINATOR:
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))
    if error.code in _NOT_AVAILABLE:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
    return error
