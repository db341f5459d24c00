"""What lies in a stretch of a partition's log, counted from batch headers by bucket of record time.

A batch belongs whole to the bucket of its largest timestamp. What consumers are never given does
not count: markers of transactions, and delayed batches, whose copies count when they are delivered.
Records of aborted transactions count, and are counted apart too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.audit.append_times import AppendTimes
from headwater.audit.rows import BROKER_TIER, VERSION, Row
from headwater.base.durations import LONG_MAX
from headwater.storage.indexes.transaction_index import AbortedTransaction
from headwater.wire.records import LOG_OVERHEAD, BatchHeader, TimestampType
from headwater.wire.records.batch_header import (
    CONTROL_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)

#: So many producers are told apart in a stretch; the others are "other".
PRODUCERS_MAX: Final = 1_000
#: So many buckets are kept before they must be published: records of strange times make many.
BUCKETS_MAX: Final = 2_000
OTHER: Final = "other"
WITHOUT_ID: Final = "none"

#: Records without a timestamp belong to no bucket.
_NO_BUCKET: Final = -1
#: Attributes of batches of which there is more to ask.
_UNUSUAL: Final = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT


class _Count:
    """Records, their bytes and their batches."""

    __slots__ = ("batches", "bytes", "count")

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self.batches = 0

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "bytes": self.bytes, "batches": self.batches}


class _Bucket:
    """What came with timestamps of one bucket, by producer: each batch is counted there alone."""

    __slots__ = (
        "aborted_count",
        "first_offset",
        "last_offset",
        "late_count",
        "lateness_ms_max",
        "lateness_ms_min",
        "producers",
        "time_max",
        "time_min",
        "timed_count",
    )

    def __init__(self, header: BatchHeader) -> None:
        self.aborted_count = 0
        self.first_offset = header.base_offset
        self.last_offset = header.last_offset
        self.time_min = header.base_timestamp
        self.time_max = header.max_timestamp
        #: Of how many records it is known when they came.
        self.timed_count = 0
        self.late_count = 0
        self.lateness_ms_min = LONG_MAX
        self.lateness_ms_max = 0
        self.producers: dict[int | str, _Count] = {}

    @property
    def count(self) -> int:
        return sum(each.count for each in self.producers.values())

    def to_json(self) -> dict[str, Any]:
        total = _Count()
        for each in self.producers.values():
            total.count += each.count
            total.bytes += each.bytes
            total.batches += each.batches
        return total.to_json()


class BatchCounts:
    """From one offset on, as far as headers were added; the owner is who publishes them."""

    def __init__(self, from_offset: int, bucket_ms: int) -> None:
        self.from_offset = self.to_offset = from_offset
        self._bucket_ms = bucket_ms
        self._buckets: dict[int, _Bucket] = {}
        self._producers: set[int] = set()
        self._has_append_time = False
        #: Offsets that retention took before anybody counted what was there.
        self.uncounted_offsets = 0

    @property
    def is_full(self) -> bool:
        """Whether it is to be published before more is added."""
        return len(self._buckets) >= BUCKETS_MAX

    @property
    def is_empty(self) -> bool:
        return not self._buckets and not self.uncounted_offsets

    @property
    def record_count(self) -> int:
        return sum(bucket.count for bucket in self._buckets.values())

    def skip_to(self, offset: int) -> None:
        """What lies in front of `offset` is gone."""
        self.uncounted_offsets += offset - self.to_offset
        self.to_offset = offset

    def add(
        self,
        headers: Iterable[BatchHeader],
        next_offset: int,
        aborted: Iterable[AbortedTransaction],
        times: AppendTimes,
    ) -> None:
        """The headers of the batches up to `next_offset`, where it goes on."""
        of_producer: dict[int, list[AbortedTransaction]] = {}
        for transaction in aborted:
            of_producer.setdefault(transaction.producer_id, []).append(transaction)
        # This is all that the audit costs a batch, so it is written out, and what the last batch
        # belonged to is kept: most often the next one does too.
        bucket_ms = self._bucket_ms
        number = known_until = -2
        producer_id = -2
        bucket: _Bucket | None = None
        append_ms: int | None = None
        for header in headers:
            attributes, count, max_ms = header[5], header[12], header[8]
            if attributes & CONTROL_BIT or count <= 0:
                continue
            base_offset = header[0]
            new_number = max_ms // bucket_ms if max_ms >= 0 else _NO_BUCKET
            if bucket is None or new_number != number or header[9] != producer_id:
                number, producer_id = new_number, header[9]
                bucket = self._bucket(number, header)
                producer = self._producer(bucket, producer_id)
            producer.count += count
            producer.bytes += header[1] + LOG_OVERHEAD
            producer.batches += 1
            bucket.last_offset = base_offset + header[6]
            if max_ms > bucket.time_max:
                bucket.time_max = max_ms
            if header[7] < bucket.time_min:
                bucket.time_min = header[7]
            if attributes & _UNUSUAL:
                self._add_unusual(bucket, header, of_producer)
            if base_offset >= known_until:
                append_ms, known_until = times.known_until(base_offset)
            if append_ms is not None and max_ms >= 0:
                lateness_ms = append_ms - max_ms if append_ms > max_ms else 0
                bucket.timed_count += count
                if lateness_ms < bucket.lateness_ms_min:
                    bucket.lateness_ms_min = lateness_ms
                if lateness_ms > bucket.lateness_ms_max:
                    bucket.lateness_ms_max = lateness_ms
                if lateness_ms > bucket_ms:
                    bucket.late_count += count
        self.to_offset = next_offset

    def _add_unusual(
        self,
        bucket: _Bucket,
        header: BatchHeader,
        aborted: Mapping[int, list[AbortedTransaction]],
    ) -> None:
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self._has_append_time = True
        if header.is_transactional and _is_aborted(header, aborted):
            bucket.aborted_count += header.record_count

    def _bucket(self, number: int, header: BatchHeader) -> _Bucket:
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket(header)
        return bucket

    def _producer(self, bucket: _Bucket, producer_id: int) -> _Count:
        key: int | str = WITHOUT_ID
        if producer_id >= 0:
            key = producer_id
            if producer_id not in self._producers:
                if len(self._producers) < PRODUCERS_MAX:
                    self._producers.add(producer_id)
                else:
                    key = OTHER
        count = bucket.producers.get(key)
        if count is None:
            count = bucket.producers[key] = _Count()
        return count

    # -- rows ------------------------------------------------------------------------------------

    def rows(self, names: Row, facts: Row, client_ids: Mapping[int, str]) -> list[Row]:
        """A row a bucket, in their order; `facts` are about the whole stretch, in the first."""
        stretch = {
            "version": VERSION,
            "tier": BROKER_TIER,
            **names,
            "from_offset": self.from_offset,
            "to_offset": self.to_offset,
        }
        rows = [
            {**stretch, **self._row(number, bucket, client_ids)}
            for number, bucket in sorted(self._buckets.items())
        ]
        if not rows:
            rows = [{**stretch, "time_bucket_start": None, "time_bucket_end": None, "count": 0}]
        rows[0].update(
            facts,
            uncounted_offsets=self.uncounted_offsets,
            timestamp_type="LogAppendTime" if self._has_append_time else "CreateTime",
        )
        return rows

    def _row(self, number: int, bucket: _Bucket, client_ids: Mapping[int, str]) -> Row:
        has_time, is_timed = number != _NO_BUCKET, bucket.timed_count > 0
        return {
            "time_bucket_start": number * self._bucket_ms if has_time else None,
            "time_bucket_end": (number + 1) * self._bucket_ms if has_time else None,
            **bucket.to_json(),
            "aborted_count": bucket.aborted_count,
            "first_offset": bucket.first_offset,
            "last_offset": bucket.last_offset,
            "time_min": bucket.time_min,
            "time_max": bucket.time_max,
            "timed_count": bucket.timed_count,
            "late_count": bucket.late_count,
            "lateness_ms_min": bucket.lateness_ms_min if is_timed else None,
            "lateness_ms_max": bucket.lateness_ms_max if is_timed else None,
            "producers": [
                {
                    "producer_id": key if isinstance(key, int) else None,
                    "client_id": _client_id(key, client_ids),
                    **count.to_json(),
                }
                for key, count in bucket.producers.items()
            ],
        }


def _client_id(key: int | str, client_ids: Mapping[int, str]) -> str | None:
    return OTHER if key == OTHER else client_ids.get(key) if isinstance(key, int) else None


def _is_aborted(header: BatchHeader, aborted: Mapping[int, list[AbortedTransaction]]) -> bool:
    return any(
        each.first_offset <= header.base_offset <= each.last_offset
        for each in aborted.get(header.producer_id, ())
    )
