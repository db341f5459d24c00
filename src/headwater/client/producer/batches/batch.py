"""Records for one partition that are sent, and succeed or fail, together.

Callers append keys, values and timestamps to plain lists, under the accumulator's lock, until the
batch is closed. From then on it belongs to the sender, which encodes it once and completes it once.
A record's future is no more than the batch and a place in it, so a record that nobody asks about
costs nothing; whoever waits does so for the batch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from headwater.base.checks import check, require
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.columns.encoding.batch_assembly import AssembledBatch, assemble_batch
from headwater.client.columns.encoding.list_encoder import encode_records
from headwater.client.columns.encoding.record_section import RecordSection
from headwater.client.producer.idempotence.identity import NO_IDENTITY, ProducerIdentity
from headwater.client.producer.intake.serialized_record import Headers, SerializedRecord
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.wire.records import (
    HEADER_SIZE,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Compression,
    decode_records,
)

NO_OFFSET: Final = -1

_logger = logging.getLogger(__name__)

#: For the rare moments when somebody begins to wait while the batch comes to its end.
_waiting = threading.Lock()


class ProduceBatch:
    """See the module's text. `reserved_bytes` is what it takes of `buffer.memory` until its end."""

    __slots__ = (
        "_callbacks",
        "_on_delivery",
        "_parent",
        "_stamp",
        "attempt_count",
        "base_offset",
        "base_sequence",
        "data",
        "error",
        "headers",
        "identity",
        "is_done",
        "keys",
        "last_failure",
        "log_append_time_ms",
        "may_be_written",
        "not_before_s",
        "opened_s",
        "order",
        "parts",
        "record_errors",
        "reserved_bytes",
        "section",
        "size_bytes",
        "timestamps",
        "topic_partition",
        "values",
    )

    def __init__(
        self, topic_partition: TopicPartition, opened_s: float, reserved_bytes: int = 0
    ) -> None:
        self.topic_partition = topic_partition
        self.opened_s = opened_s
        self.reserved_bytes = reserved_bytes
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        #: None as long as no record has one.
        self.keys: list[bytes | None] | None = None
        self.headers: list[Headers] | None = None
        #: About the batch's size before compression; once encoded, exactly.
        self.size_bytes = HEADER_SIZE
        #: Its bytes, once encoded.
        self.data: AssembledBatch | None = None
        #: Stays so without idempotence.
        self.identity: ProducerIdentity = NO_IDENTITY
        self.base_sequence = NO_SEQUENCE
        #: Its place among the batches of its partition, from the first drain on; parts extend it.
        self.order: tuple[int, ...] = ()
        self.attempt_count = 0
        #: Why it was to be tried again.
        self.last_failure: KafkaError | None = None
        self.not_before_s = 0.0
        #: Whether an attempt ended without a word on whether it was written.
        self.may_be_written = False
        self.is_done = False
        self.base_offset = NO_OFFSET
        self.log_append_time_ms = NO_TIMESTAMP
        self.error: KafkaError | None = None
        #: What the broker says about single records of a batch that it refused.
        self.record_errors: Mapping[int, KafkaError] = {}
        self.section: RecordSection | None = None
        #: Producer id, epoch and sequence in `data`; None as long as that has no checksum either.
        self._stamp: tuple[int, int, int] | None = None
        self._on_delivery: list[tuple[int, OnDelivery]] | None = None
        self._callbacks: list[Callable[[ProduceBatch], object]] = []
        self._parent: ProduceBatch | None = None
        self.parts: tuple[ProduceBatch, ...] = ()

    @classmethod
    def of_section(
        cls,
        topic_partition: TopicPartition,
        section: RecordSection,
        opened_s: float,
        reserved_bytes: int,
    ) -> ProduceBatch:
        """A batch of records that are encoded already."""
        batch = cls(topic_partition, opened_s, reserved_bytes)
        batch.section = section
        batch.size_bytes += len(section.data)
        return batch

    def __repr__(self) -> str:
        return f"<{self.record_count} records for {self.topic_partition} from {self.base_sequence}>"

    @property
    def record_count(self) -> int:
        return len(self.timestamps) if self.section is None else self.section.record_count

    # -- filling ---------------------------------------------------------------------------------

    def add(self, record: SerializedRecord) -> int:
        """Take a record, and tell its place. `RecordIntake.offer` does the same by hand."""
        timestamp_ms, key, value, headers, size_bytes, on_delivery = record
        index = len(self.timestamps)
        self.size_bytes += size_bytes
        self.timestamps.append(timestamp_ms)
        self.values.append(value)
        if self.keys is not None:
            self.keys.append(key)
        elif key is not None:
            self.keys = [None] * index
            self.keys.append(key)
        if self.headers is not None:
            self.headers.append(headers)
        elif headers:
            self.headers = [()] * index
            self.headers.append(headers)
        if on_delivery is not None:
            self.notify(index, on_delivery)
        return index

    def notify(self, index: int, on_delivery: OnDelivery) -> None:
        """Have a callback called when it is known what became of a record."""
        if self._on_delivery is None:
            self._on_delivery = []
        self._on_delivery.append((index, on_delivery))

    # -- sending ---------------------------------------------------------------------------------

    def encode(
        self, compression: Compression, level: int | None, *, is_transactional: bool
    ) -> None:
        """Make `data`, once, for `stamp` to finish; raises what is wrong with a record."""
        if self.data is not None:
            return
        section = self.section
        if section is None:
            section = RecordSection(
                encode_records(self.timestamps, self.keys, self.values, self.headers),
                len(self.timestamps),
                self.timestamps[0],
                max(self.timestamps),
            )
        self.size_bytes = HEADER_SIZE + len(section.data)
        self.data = assemble_batch(
            section.data,
            record_count=section.record_count,
            base_timestamp=section.base_timestamp,
            max_timestamp=section.max_timestamp,
            compression=compression,
            compression_level=level,
            is_transactional=is_transactional,
        )

    def stamp(self) -> None:
        """Let `data` carry the present identity and sequence, and the checksum."""
        stamp = (*self.identity, self.base_sequence)
        if stamp != self._stamp and self.data is not None:
            self.data.assign(*stamp)
            self._stamp = stamp

    def split(self) -> tuple[ProduceBatch, ProduceBatch]:
        """Two batches to be sent instead; this one ends when both have."""
        count = self.record_count
        check(count > 1, "a batch of one record cannot be split")
        if self.section is not None:
            self._unpack()
            self.section = None
        middle = count // 2
        parts = (self._part(0, 0, middle), self._part(1, middle, count))
        self.parts = parts
        return parts

    def _part(self, number: int, first: int, last: int) -> ProduceBatch:
        part = ProduceBatch(self.topic_partition, self.opened_s)
        part.values = self.values[first:last]
        part.timestamps = self.timestamps[first:last]
        part.keys = None if self.keys is None else self.keys[first:last]
        part.headers = None if self.headers is None else self.headers[first:last]
        part.size_bytes += (self.size_bytes - HEADER_SIZE) * (last - first) // self.record_count
        part.attempt_count = self.attempt_count
        part.order = (*self.order, number)
        part._parent = self
        return part

    def _unpack(self) -> None:
        """Turn records that came as columns into lists."""
        data = require(self.data, "a batch is split that was never sent")
        for record in decode_records(bytes(data)):
            self.add(
                SerializedRecord(record.timestamp, record.key, record.value, record.headers, 0)
            )

    # -- the end ---------------------------------------------------------------------------------

    def when_done(self, callback: Callable[[ProduceBatch], object]) -> None:
        """Call it with this batch, at once if that is done."""
        with _waiting:
            if not self.is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def succeed(self, base_offset: int, log_append_time_ms: int = NO_TIMESTAMP) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._end()

    def fail(
        self, error: KafkaError, record_errors: Mapping[int, KafkaError] | None = None
    ) -> None:
        self.error = error
        self.record_errors = record_errors or {}
        self._end()

    def outcome(self, index: int) -> RecordMetadata | KafkaError:
        """What became of a record, once the batch is done."""
        check(self.is_done, "the outcome of a batch was asked for before its end")
        for part in self.parts:
            if index < part.record_count:
                return part.outcome(index)
            index -= part.record_count
        if self.error is not None:
            return self.record_errors.get(index, self.error)
        timestamp = self.log_append_time_ms
        if timestamp == NO_TIMESTAMP:
            section = self.section
            timestamp = self.timestamps[index] if section is None else section.base_timestamp
        offset = self.base_offset if self.base_offset == NO_OFFSET else self.base_offset + index
        return RecordMetadata(*self.topic_partition, offset, timestamp)

    def _end(self) -> None:
        check(not self.is_done, "%r came to an end twice", self)
        if not self.parts:
            # Futures may be kept for long, and must not keep the records.
            self.values, self.keys, self.headers, self.data = [], None, None, None
            if (section := self.section) is not None:
                self.section = RecordSection(b"", *section[1:])
        with _waiting:
            self.is_done = True
            callbacks, self._callbacks = self._callbacks, []
        on_delivery, self._on_delivery = self._on_delivery, None
        for index, tell in on_delivery or ():
            self._tell(index, tell)
        for callback in callbacks:
            callback(self)
        parent = self._parent
        if parent is not None and all(part.is_done for part in parent.parts):
            parent.error = next(filter(None, (part.error for part in parent.parts)), None)
            parent._end()

    def _tell(self, index: int, on_delivery: OnDelivery) -> None:
        outcome = self.outcome(index)
        try:
            if isinstance(outcome, KafkaError):
                on_delivery(None, outcome)
            else:
                on_delivery(outcome, None)
        except Exception:
            _logger.exception("A callback failed for a record of %s.", self.topic_partition)
