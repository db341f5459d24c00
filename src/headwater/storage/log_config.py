"""The settings of one topic's log, as plain attributes.

`LogConfig` is what the storage engine reads on its hot path; `log_settings` has the table of rows
(names, bounds, meanings) that it is made from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.wire.records import Compression, TimestampType

LONG_MAX = 2**63 - 1
#: A bound on timestamps that bounds nothing.
TIMESTAMP_UNBOUNDED_MS = LONG_MAX


@dataclass(frozen=True, slots=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = TIMESTAMP_UNBOUNDED_MS
    message_timestamp_after_max_ms: int = 3600 * 1000
    #: None keeps what the producer chose.
    compression: Compression | None = None
    compression_level: int | None = None
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    delete_retention_ms: int = 24 * 3600 * 1000

    # What follows from the others, worked out once because every append asks.
    is_compacted: bool = field(init=False)
    #: A record is compacted only in a sealed segment, so that has to come in time.
    roll_ms: int = field(init=False)
    #: Whether every record must be looked at.
    inspects_records: bool = field(init=False)
    #: Whether a leader changes nothing in a batch but its offset and epoch.
    stores_batches_as_they_come: bool = field(init=False)

    def __post_init__(self) -> None:
        is_compacted = "compact" in self.cleanup_policy
        by_create_time = self.message_timestamp_type is TimestampType.CREATE_TIME
        inspects_records = (
            is_compacted
            or self.compression is not None
            or (by_create_time and self.message_timestamp_before_max_ms != TIMESTAMP_UNBOUNDED_MS)
        )
        derive = object.__setattr__
        derive(self, "is_compacted", is_compacted)
        derive(
            self,
            "roll_ms",
            min(self.segment_ms, self.max_compaction_lag_ms) if is_compacted else self.segment_ms,
        )
        derive(self, "inspects_records", inspects_records)
        derive(self, "stores_batches_as_they_come", by_create_time and not inspects_records)

    @property
    def deletes_by_retention(self) -> bool:
        return "delete" in self.cleanup_policy
