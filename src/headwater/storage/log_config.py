"""The settings of one topic's log, as plain attributes.

`LogConfig` is what the storage engine reads on its hot path; `log_settings` has the table of rows
(names, bounds, meanings) that it is made from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from headwater.wire.records import Compression, TimestampType

LONG_MAX = 2**63 - 1
#: A bound on timestamps that bounds nothing.
TIMESTAMP_UNBOUNDED_MS = LONG_MAX


class RecordsValidation(Enum):
    """How far a leader looks into a producer's batch before it takes it: see `record_checks`."""

    #: Header and checksum, and no record.
    HEADER = "header"
    #: Also the structure of records that are not compressed.
    STRUCTURE = "structure"
    #: Compressed ones are decompressed for it.
    FULL = "full"


class DelayMode(Enum):
    """What makes a topic's records wait (`delay.mode`)."""

    OFF = "off"
    #: A header says how long, or until when.
    HEADER = "header"
    #: The same, but the delay is raised to the next of a few levels, as in the notes.
    LEVELS = "levels"
    #: A record's own time, where it lies ahead.
    TIMESTAMP = "timestamp"
    #: All records, for the same time; they lie where they are, and are shown later.
    FIXED = "fixed"
    #: All records, for longer each time they come back; in the end they are dead letters.
    RETRY = "retry"


_LEVELS_MS = tuple(
    1000 * seconds for seconds in (5, 10, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 7200)
)


class BreakerRules(NamedTuple):
    """From how many dead letters on the breaker of a retry topic's partition is open."""

    #: So many within the window; 0 for never.
    letters: int = 100
    window_ms: int = 60_000
    #: Whether dead letters are refused while it is open, and not only spoken of.
    is_pausing: bool = False


class RetryRules(NamedTuple):
    """How often records of a retry topic are tried again, after which delays, and what then."""

    #: By attempt; beyond them the last one counts.
    delays_ms: tuple[int, ...] = (5_000, 10_000, 30_000, 60_000, 120_000)
    attempts_max: int = 5
    dead_letter_topic: str = ""
    #: By how much of itself a delay may be longer, at random.
    jitter: float = 0.0
    #: The consumer group whose failures these are; empty for what the topic's name says.
    group: str = ""
    breaker: BreakerRules = BreakerRules()


class DelayRules(NamedTuple):
    """The settings of a topic's delayed delivery."""

    mode: DelayMode = DelayMode.OFF
    #: In ascending order; these are the notes'.
    levels_ms: tuple[int, ...] = _LEVELS_MS
    fixed_ms: int = 0
    #: The longest delay that a record may ask for.
    max_ms: int = 40 * 24 * 3600 * 1000
    #: What may wait in one partition.
    pending_max_bytes: int = 10 << 30
    retry: RetryRules = RetryRules()


NO_DELAYS = DelayRules()
#: The modes in which records wait one by one.
_DELAYING_MODES = frozenset(
    {DelayMode.HEADER, DelayMode.LEVELS, DelayMode.TIMESTAMP, DelayMode.RETRY}
)


@dataclass(frozen=True, slots=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    #: What the records of one batch may come to, decompressed, where a broker looks into them.
    max_decompressed_message_bytes: int = 128 << 20
    records_validation: RecordsValidation = RecordsValidation.STRUCTURE
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
    delay: DelayRules = NO_DELAYS
    #: Whether the audit goes by the times in records' audit ids, and looks into records for that.
    audits_by_header: bool = False

    # What follows from the others, worked out once because every append asks.
    is_compacted: bool = field(init=False)
    #: A record is compacted only in a sealed segment, so that has to come in time.
    roll_ms: int = field(init=False)
    #: Whether it matters what records are, beyond their structure: their keys, or each one's time.
    reads_records: bool = field(init=False)
    #: Whether the structure of uncompressed records is looked at, and that of compressed ones.
    walks_records: bool = field(init=False)
    walks_compressed_records: bool = field(init=False)
    #: Whether looking at records may take long enough for a thread to do it.
    inspects_records: bool = field(init=False)
    #: Whether records may ask to be delivered later, so that they are looked at for that.
    delays_records: bool = field(init=False)
    #: Whether a leader changes nothing in a batch but its offset and epoch.
    stores_batches_as_they_come: bool = field(init=False)

    def __post_init__(self) -> None:
        is_compacted = "compact" in self.cleanup_policy
        by_create_time = self.message_timestamp_type is TimestampType.CREATE_TIME
        reads_records = is_compacted or (
            by_create_time and self.message_timestamp_before_max_ms != TIMESTAMP_UNBOUNDED_MS
        )
        changes_records = self.compression is not None
        walks_compressed = self.records_validation is RecordsValidation.FULL
        derive = object.__setattr__
        derive(self, "is_compacted", is_compacted)
        derive(
            self,
            "roll_ms",
            min(self.segment_ms, self.max_compaction_lag_ms) if is_compacted else self.segment_ms,
        )
        derive(self, "reads_records", reads_records)
        derive(self, "walks_records", self.records_validation is not RecordsValidation.HEADER)
        derive(self, "walks_compressed_records", walks_compressed)
        delays_records = self.delay.mode in _DELAYING_MODES
        derive(self, "delays_records", delays_records)
        derive(
            self,
            "inspects_records",
            reads_records or changes_records or walks_compressed or delays_records,
        )
        derive(
            self,
            "stores_batches_as_they_come",
            by_create_time and not reads_records and not changes_records and not delays_records,
        )

    @property
    def deletes_by_retention(self) -> bool:
        return "delete" in self.cleanup_policy
