"""The settings of logs and log directories, one row each.

A row whose setting a topic can override says what the topic calls it; `TOPIC_LOG_SETTINGS` is made
of these. A topic that sets nothing inherits the broker's value, and where the same thing can be
said in several units the finer one wins: `log.retention.ms` over `.minutes` over `.hours`.
`make_log_config` turns all that into the `LogConfig` which a log reads.

Names, types, defaults, bounds and what may change while the broker runs are Kafka's, but for
`log.handles.max` and `log.records.validation`, which are ours.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from headwater.base.durations import parse_duration_ms
from headwater.base.settings import (
    DynamicScope,
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    SettingValues,
    Synonym,
)
from headwater.storage.log_config import (
    LONG_MAX,
    BreakerRules,
    DelayMode,
    DelayRules,
    LogConfig,
    RecordsValidation,
    RetryRules,
)
from headwater.wire.records import DECOMPRESSED_BYTES_MAX, Compression, TimestampType

_INT, _LONG, _DOUBLE = SettingKind.INT, SettingKind.LONG, SettingKind.DOUBLE
_STRING, _BOOLEAN, _LIST = SettingKind.STRING, SettingKind.BOOLEAN, SettingKind.LIST
_DYNAMIC = DynamicScope.CLUSTER_WIDE
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS

#: The notes' levels.
_LEVELS: Final = (
    "5s", "10s", "30s", "1min", "2min", "5min", "10min", "20min", "30min", "45min", "1h", "2h",
)  # fmt: skip

#: Stands for every directory in `cordoned.log.dirs`.
ALL_DIRECTORIES: Final = "*"

_COMPRESSIONS: Final[dict[str, Compression | None]] = {
    "uncompressed": Compression.NONE,
    "zstd": Compression.ZSTD,
    "lz4": Compression.LZ4,
    "snappy": Compression.SNAPPY,
    "gzip": Compression.GZIP,
    "producer": None,
}
_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}

AUDIT_BY_HEADER: Final = "header"

# fmt: off
_SEGMENTS = [
    Setting("log.segment.bytes", _INT, 1 << 30, "The size at which a segment is full.",
            lower=1 << 20, dynamic=_DYNAMIC, topic_name="segment.bytes"),
    Setting("log.roll.ms", _LONG, None, "The age by message time at which a new segment begins.",
            lower=1, dynamic=_DYNAMIC, topic_name="segment.ms",
            synonyms=(Synonym("log.roll.hours", _HOUR_MS),)),
    Setting("log.roll.hours", _INT, 168, "The age by message time, in hours, at which a new "
            "segment begins; log.roll.ms beats it.", lower=1),
    Setting("log.roll.jitter.ms", _LONG, None, "By how much, at random, a segment may begin "
            "earlier, so that not all logs of a broker begin one at once.",
            lower=0, dynamic=_DYNAMIC, topic_name="segment.jitter.ms",
            synonyms=(Synonym("log.roll.jitter.hours", _HOUR_MS),)),
    Setting("log.roll.jitter.hours", _INT, 0, "By how many hours, at random, a segment may begin "
            "earlier; log.roll.jitter.ms beats it.", lower=0),
    Setting("log.index.size.max.bytes", _INT, 10 << 20, "The size at which an index is full, so "
            "that a new segment begins.",
            lower=4, dynamic=_DYNAMIC, topic_name="segment.index.bytes"),
    Setting("log.index.interval.bytes", _INT, 4096, "How many bytes of a log share one entry of an "
            "index.",
            lower=0, dynamic=_DYNAMIC, topic_name="index.interval.bytes"),
    Setting("log.preallocate", _BOOLEAN, False, "Whether a segment's file gets its full size when "
            "it is created.", dynamic=_DYNAMIC, topic_name="preallocate",
            without_effect="Files grow as they are written."),
]
_MESSAGES = [
    Setting("message.max.bytes", _INT, (1 << 20) + 12, "The largest record batch that is taken, "
            "after compression.", lower=0, dynamic=_DYNAMIC, topic_name="max.message.bytes"),
    Setting("max.decompressed.message.bytes", _INT, 128 << 20, "What the records of a compressed "
            "batch may take together, where the broker has to look into them; 256 MiB at most. "
            "Kafka counts each record for itself, and allows 2147483639.",
            lower=0, dynamic=_DYNAMIC, topic_name="max.decompressed.message.bytes"),
    Setting("compression.type", _STRING, "producer", "How record batches are stored; 'producer' "
            "keeps them as they come.",
            choices=tuple(_COMPRESSIONS), dynamic=_DYNAMIC, topic_name="compression.type"),
    Setting("compression.gzip.level", _INT, -1, "The level where compression.type is gzip: 1 to 9, "
            "or -1 for gzip's own default.",
            lower=-1, upper=9, dynamic=_DYNAMIC, topic_name="compression.gzip.level"),
    Setting("compression.lz4.level", _INT, 9, "The level where compression.type is lz4.",
            lower=1, upper=17, dynamic=_DYNAMIC, topic_name="compression.lz4.level"),
    Setting("compression.zstd.level", _INT, 3, "The level where compression.type is zstd.",
            lower=-131072, upper=22, dynamic=_DYNAMIC, topic_name="compression.zstd.level"),
    Setting("log.records.validation", _STRING, RecordsValidation.STRUCTURE.value, "How far a "
            "producer's batch is looked into before it is taken: its 'header', the 'structure' of "
            "uncompressed records too, or 'full', as Kafka does, compressed records as well; not "
            "in Kafka.", choices=tuple(each.value for each in RecordsValidation), dynamic=_DYNAMIC,
            topic_name="records.validation"),
    Setting("log.message.timestamp.type", _STRING, "CreateTime", "Whether a record's time is its "
            "producer's or that of the append.", choices=tuple(_TIMESTAMP_TYPES), dynamic=_DYNAMIC,
            topic_name="message.timestamp.type"),
    Setting("audit.time", _STRING, "record", "By which time records are audited: their own, or "
            "that in their header headwater-audit, where they have one; 'header' makes the audit "
            "look into records; not in Kafka.",
            choices=("record", AUDIT_BY_HEADER), dynamic=_DYNAMIC, topic_name="audit.time"),
    Setting("log.message.timestamp.before.max.ms", _LONG, LONG_MAX, "How far a producer's time may "
            "be behind the broker's.",
            lower=0, dynamic=_DYNAMIC, topic_name="message.timestamp.before.max.ms"),
    Setting("log.message.timestamp.after.max.ms", _LONG, _HOUR_MS, "How far a producer's time may "
            "be ahead of the broker's.",
            lower=0, dynamic=_DYNAMIC, topic_name="message.timestamp.after.max.ms"),
]
_DELAYS = [
    Setting("log.delay.mode", _STRING, DelayMode.OFF.value, "What makes records wait before "
            "consumers see them: 'off' nothing, 'header' what their headers say, 'levels' the "
            "same in steps of delay.levels, 'timestamp' a time of theirs that lies ahead, 'fixed' "
            "delay.ms for all of them, 'retry' what retry.delays says for how often each failed; "
            "not in Kafka.",
            choices=tuple(each.value for each in DelayMode), dynamic=_DYNAMIC,
            topic_name="delay.mode"),
    Setting("log.delay.levels", _LIST, _LEVELS, "The delays that there are where delay.mode is "
            "'levels': what a record asks for is raised to the next of them; not in Kafka.",
            dynamic=_DYNAMIC, topic_name="delay.levels"),
    Setting("log.delay.ms", _LONG, 0, "How much later consumers see everything where delay.mode is "
            "'fixed'; not in Kafka.", lower=0, dynamic=_DYNAMIC, topic_name="delay.ms"),
    Setting("log.delay.max.ms", _LONG, 40 * _DAY_MS, "The longest delay that a record may ask for; "
            "not in Kafka.", lower=0, dynamic=_DYNAMIC, topic_name="delay.max.ms"),
    Setting("log.delay.pending.max.bytes", _LONG, 10 << 30, "How many bytes of log and index "
            "what waits in one partition may take; more is refused, and none of it counts towards "
            "retention.bytes; not in Kafka.",
            lower=0, dynamic=_DYNAMIC, topic_name="delay.pending.max.bytes"),
    Setting("log.retry.delays", _LIST, ("5s", "10s", "30s", "1m", "2m"), "Where delay.mode is "
            "'retry': after which time a record is shown again that failed once, twice and so on; "
            "beyond the last one that counts; not in Kafka.",
            dynamic=_DYNAMIC, topic_name="retry.delays"),
    Setting("log.retry.attempts", _INT, 0, "How often a record may fail and be shown again before "
            "it is a dead letter; 0 for once for each of retry.delays; not in Kafka.",
            lower=0, dynamic=_DYNAMIC, topic_name="retry.attempts"),
    Setting("log.retry.jitter", _DOUBLE, 0.0, "By how much of itself, at random, a delay of "
            "retry.delays may be longer, so that what failed together does not come back "
            "together; not in Kafka.",
            lower=0, upper=1, dynamic=_DYNAMIC, topic_name="retry.jitter"),
    Setting("log.retry.dead.letter.topic", _STRING, "", "Where a record of a retry topic goes when "
            "it is given up: a topic with errors.deadletterqueue.group.enable=true; not in Kafka.",
            dynamic=_DYNAMIC, topic_name="retry.dead.letter.topic"),
    Setting("log.retry.group", _STRING, "", "The consumer group whose failures a retry topic "
            "takes, by which its queues are found and dead letters are marked; empty for what "
            "follows 'retry.' in the topic's name; not in Kafka.",
            dynamic=_DYNAMIC, topic_name="retry.group"),
    Setting("log.retry.breaker.letters", _INT, 100, "How many dead letters of one partition within "
            "retry.breaker.window.ms open its breaker, which a metric, the log and 'headwater "
            "doctor' tell; 0 for never; not in Kafka.",
            lower=0, dynamic=_DYNAMIC, topic_name="retry.breaker.letters"),
    Setting("log.retry.breaker.window.ms", _LONG, 60_000, "Over which time dead letters are "
            "counted for retry.breaker.letters; not in Kafka.",
            lower=1, dynamic=_DYNAMIC, topic_name="retry.breaker.window.ms"),
    Setting("log.retry.breaker.pause", _BOOLEAN, False, "Whether dead letters are refused while "
            "the breaker of their partition is open, with an error after which clients try again: "
            "whoever has one to send stands still until then; not in Kafka.",
            dynamic=_DYNAMIC, topic_name="retry.breaker.pause"),
]
_FLUSHING = [
    Setting("log.flush.interval.messages", _LONG, LONG_MAX, "After how many records a log is "
            "synced to disk; with 1 nothing is acknowledged that is not there.",
            lower=1, dynamic=_DYNAMIC, topic_name="flush.messages"),
    Setting("log.flush.interval.ms", _LONG, None, "How long a record may wait to be synced to "
            "disk; by default as long as log.flush.scheduler.interval.ms says.",
            lower=0, dynamic=_DYNAMIC, topic_name="flush.ms",
            synonyms=(Synonym("log.flush.scheduler.interval.ms"),)),
    Setting("log.flush.scheduler.interval.ms", _LONG, LONG_MAX, "How often logs are looked at for "
            "what has waited too long; by default every second.", lower=1),
    Setting("log.flush.offset.checkpoint.interval.ms", _INT, 60_000, "How often recovery points "
            "are written down.", lower=0),
    Setting("log.flush.start.offset.checkpoint.interval.ms", _INT, 60_000, "How often log start "
            "offsets are written down.", lower=0),
    Setting("replica.high.watermark.checkpoint.interval.ms", _LONG, 5_000, "How often high "
            "watermarks are written down.", lower=0),
]
_RETENTION = [
    Setting("log.cleanup.policy", _LIST, ("delete",), "What happens to old records: 'delete' drops "
            "segments, 'compact' keeps the last record of each key. Without either all are kept.",
            choices=("compact", "delete"),
            dynamic=_DYNAMIC, topic_name="cleanup.policy"),
    Setting("log.retention.ms", _LONG, None, "How long records are kept at least; -1 for ever.",
            lower=-1, dynamic=_DYNAMIC, topic_name="retention.ms",
            synonyms=(Synonym("log.retention.minutes", 60_000),
                      Synonym("log.retention.hours", _HOUR_MS))),
    Setting("log.retention.minutes", _INT, None, "How many minutes records are kept at least; -1 "
            "for ever; log.retention.ms beats it.", lower=-1),
    Setting("log.retention.hours", _INT, 168, "How many hours records are kept at least; -1 for "
            "ever; log.retention.ms and log.retention.minutes beat it.", lower=-1),
    Setting("log.retention.bytes", _LONG, -1, "How large a log may become before its oldest "
            "segments go; -1 for any size.", dynamic=_DYNAMIC, topic_name="retention.bytes"),
    Setting("log.retention.check.interval.ms", _LONG, 300_000, "How often logs are looked at for "
            "segments that may go.", lower=1),
    Setting("log.segment.delete.delay.ms", _LONG, 60_000, "How long a file that left its log stays "
            "for those who still read it.",
            lower=0, dynamic=_DYNAMIC, topic_name="file.delete.delay.ms"),
    Setting("producer.id.expiration.ms", _INT, _DAY_MS, "How long a producer that is silent is "
            "remembered.", lower=1, dynamic=_DYNAMIC),
    Setting("producer.id.expiration.check.interval.ms", _INT, 600_000, "How often silent producers "
            "are looked for.", lower=1),
]
_COMPACTION = [
    Setting("log.cleaner.enable", _BOOLEAN, True, "Whether logs with 'compact' are compacted."),
    Setting("log.cleaner.threads", _INT, 1, "How many logs are compacted at the same time.",
            lower=0, dynamic=_DYNAMIC),
    Setting("log.cleaner.dedupe.buffer.size", _LONG, 128 << 20, "The memory for the keys of logs "
            "in compaction.", lower=1 << 20, dynamic=_DYNAMIC),
    Setting("log.cleaner.io.buffer.size", _INT, 512 << 10, "How much compaction reads and writes "
            "at a time.", lower=0, dynamic=_DYNAMIC),
    Setting("log.cleaner.io.buffer.load.factor", _DOUBLE, 0.9, "How full the table of keys may "
            "become.", lower=0, dynamic=_DYNAMIC),
    Setting("log.cleaner.io.max.bytes.per.second", _DOUBLE, sys.float_info.max, "What compaction "
            "may read and write in a second.", lower=0, dynamic=_DYNAMIC),
    Setting("log.cleaner.backoff.ms", _LONG, 15_000, "How long to wait when nothing is to be "
            "compacted.", lower=0, dynamic=_DYNAMIC),
    Setting("log.cleaner.min.cleanable.ratio", _DOUBLE, 0.5, "The share of a log that must be new "
            "since its last compaction before the next.",
            lower=0, upper=1, dynamic=_DYNAMIC, topic_name="min.cleanable.dirty.ratio"),
    Setting("log.cleaner.min.compaction.lag.ms", _LONG, 0, "How long a record stays uncompacted at "
            "least.", lower=0, dynamic=_DYNAMIC, topic_name="min.compaction.lag.ms"),
    Setting("log.cleaner.max.compaction.lag.ms", _LONG, LONG_MAX, "How long a record stays "
            "uncompacted at most.", lower=1, dynamic=_DYNAMIC, topic_name="max.compaction.lag.ms"),
    Setting("log.cleaner.delete.retention.ms", _LONG, _DAY_MS, "How long a tombstone is kept for "
            "readers to see it.", lower=0, dynamic=_DYNAMIC, topic_name="delete.retention.ms"),
]
_DIRECTORIES = [
    Setting("log.dirs", _LIST, None, "The directories that hold logs; it beats log.dir."),
    Setting("log.dir", _LIST, ("/tmp/kafka-logs",), "The directory that holds logs, if log.dirs "
            "is not set."),
    Setting("cordoned.log.dirs", _LIST, (), "Directories, among log.dirs, that get no new logs; * "
            "for all of them. What is there stays. A broker without another directory gets no new "
            "replicas.", dynamic=DynamicScope.PER_BROKER),
    Setting("log.dir.reserve.bytes", _INT, 8 << 20, "Room that each log directory sets aside for "
            "what must be written when its disk is full; 0 for none; not in Kafka.", lower=0),
    Setting("num.recovery.threads.per.data.dir", _INT, 2, "How many threads of a directory sync "
            "logs when the broker stops.", lower=1, dynamic=_DYNAMIC),
    Setting("log.initial.task.delay.ms", _LONG, 30_000, "How long after its start a broker first "
            "does what it does periodically; moves between directories do not wait.", lower=0),
    Setting("log.handles.max", _INT, 512, "How many files of logs are kept open; not in Kafka.",
            lower=16),
]
# fmt: on

LOG_SETTINGS: Final = SettingTable(
    "broker",
    [*_DIRECTORIES, *_SEGMENTS, *_MESSAGES, *_DELAYS, *_FLUSHING, *_RETENTION, *_COMPACTION],
)
TOPIC_LOG_SETTINGS: Final = LOG_SETTINGS.topic_table("topic")


def log_directory_paths(broker: SettingValues) -> tuple[str, ...]:
    """Where this broker keeps its logs; the same directory twice is an error."""
    paths = broker.optional_texts("log.dirs") or broker.texts("log.dir")
    for path in paths:
        if not path or paths.count(path) > 1:
            fault = f"names {path!r} twice" if path else "has an empty item"
            raise SettingError(f"The setting log.dirs {fault}.")
    return paths


def cordoned_directory_paths(broker: SettingValues) -> frozenset[str]:
    """The directories that get no new logs."""
    named = broker.texts("cordoned.log.dirs")
    return frozenset(log_directory_paths(broker) if named == (ALL_DIRECTORIES,) else named)


def check_cordoned_directories(broker: SettingValues) -> None:
    """Refuse to cordon what is none of the broker's directories; raises `SettingError`."""
    unknown = cordoned_directory_paths(broker).difference(log_directory_paths(broker))
    if ALL_DIRECTORIES in unknown:
        raise SettingError("The setting cordoned.log.dirs has * beside other items.")
    if unknown:
        raise SettingError(
            f"The setting cordoned.log.dirs names {min(unknown)!r}, which is not in log.dirs."
        )


def make_log_config(
    broker: SettingValues, overrides: Mapping[str, str] | None = None, source: str = ""
) -> LogConfig:
    """What holds for a topic: its own settings, then the broker's; raises `SettingError`."""
    return log_config_of(
        TOPIC_LOG_SETTINGS.inherit(broker).with_overrides(overrides or {}, source), source
    )


def log_config_of(topic: SettingValues, source: str = "") -> LogConfig:
    """The same from a topic's complete values, which may be of a table with more rows than ours."""
    compression = _COMPRESSIONS[topic.text("compression.type")]
    lag_min_ms = topic.integer("min.compaction.lag.ms")
    lag_max_ms = topic.integer("max.compaction.lag.ms")
    if lag_min_ms > lag_max_ms:
        raise SettingError(
            f"The settings{f' in {source}' if source else ''} contradict each other: "
            f"min.compaction.lag.ms is {lag_min_ms}, and max.compaction.lag.ms is {lag_max_ms}."
        )
    delay = _delay_rules(topic, source)
    after_max_ms = topic.integer("message.timestamp.after.max.ms")
    if delay.mode is DelayMode.TIMESTAMP:
        after_max_ms = max(after_max_ms, delay.max_ms)
    return LogConfig(
        segment_bytes=topic.integer("segment.bytes"),
        segment_ms=topic.integer("segment.ms"),
        segment_jitter_ms=topic.integer("segment.jitter.ms"),
        segment_index_bytes=topic.integer("segment.index.bytes"),
        index_interval_bytes=topic.integer("index.interval.bytes"),
        max_message_bytes=topic.integer("max.message.bytes"),
        # What is taken must be readable afterwards, by compaction and by the client.
        max_decompressed_message_bytes=min(
            topic.integer("max.decompressed.message.bytes"), DECOMPRESSED_BYTES_MAX
        ),
        records_validation=RecordsValidation(topic.text("records.validation")),
        message_timestamp_type=_TIMESTAMP_TYPES[topic.text("message.timestamp.type")],
        message_timestamp_before_max_ms=topic.integer("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=after_max_ms,
        compression=compression,
        compression_level=_compression_level(topic, compression, source),
        flush_messages=topic.integer("flush.messages"),
        flush_ms=topic.integer("flush.ms"),
        cleanup_policy=frozenset(topic.texts("cleanup.policy")),
        retention_ms=topic.integer("retention.ms"),
        retention_bytes=topic.integer("retention.bytes"),
        file_delete_delay_ms=topic.integer("file.delete.delay.ms"),
        min_cleanable_dirty_ratio=topic.number("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=lag_min_ms,
        max_compaction_lag_ms=lag_max_ms,
        delete_retention_ms=topic.integer("delete.retention.ms"),
        delay=delay,
        audits_by_header=topic.text("audit.time") == AUDIT_BY_HEADER,
    )


def _delay_rules(topic: SettingValues, source: str) -> DelayRules:
    mode = DelayMode(topic.text("delay.mode"))
    by_append_time = topic.text("message.timestamp.type") == "LogAppendTime"
    conflict = None
    if mode not in (DelayMode.OFF, DelayMode.FIXED) and "compact" in topic.texts("cleanup.policy"):
        conflict = "a compacted topic cannot have it, for its records would be found in two places"
    elif mode is DelayMode.TIMESTAMP and by_append_time:
        conflict = "message.timestamp.type is LogAppendTime, which no record can set"
    elif mode is DelayMode.FIXED and not by_append_time:
        conflict = "it needs message.timestamp.type=LogAppendTime"
    where = f" in {source}" if source else ""
    if conflict is not None:
        raise SettingError(f"The setting delay.mode{where} cannot be '{mode.value}': {conflict}.")
    levels_ms = sorted(set(_durations_ms(topic, "delay.levels", where)))
    if mode is DelayMode.LEVELS and not levels_ms:
        raise SettingError(f"The setting delay.levels{where} names no level.")
    return DelayRules(
        mode,
        tuple(levels_ms),
        topic.integer("delay.ms"),
        topic.integer("delay.max.ms"),
        topic.integer("delay.pending.max.bytes"),
        _retry_rules(topic, mode, where),
    )


def _retry_rules(topic: SettingValues, mode: DelayMode, where: str) -> RetryRules:
    delays_ms = _durations_ms(topic, "retry.delays", where)
    dead_letter_topic = topic.text("retry.dead.letter.topic")
    if mode is DelayMode.RETRY:
        if not delays_ms:
            raise SettingError(f"The setting retry.delays{where} names no delay.")
        if max(delays_ms) > topic.integer("delay.max.ms"):
            raise SettingError(
                f"The setting retry.delays{where} has {max(delays_ms)} ms, and delay.max.ms is "
                f"{topic.integer('delay.max.ms')}."
            )
        if not dead_letter_topic:
            raise SettingError(
                f"The setting delay.mode{where} cannot be 'retry' without retry.dead.letter.topic: "
                "what is given up must go somewhere."
            )
    return RetryRules(
        delays_ms,
        topic.integer("retry.attempts") or len(delays_ms),
        dead_letter_topic,
        topic.number("retry.jitter"),
        topic.text("retry.group"),
        BreakerRules(
            topic.integer("retry.breaker.letters"),
            topic.integer("retry.breaker.window.ms"),
            topic.boolean("retry.breaker.pause"),
        ),
    )


def _durations_ms(topic: SettingValues, name: str, where: str) -> tuple[int, ...]:
    try:
        return tuple(parse_duration_ms(each) for each in topic.texts(name))
    except ValueError as error:
        raise SettingError(f"The setting {name}{where} is wrong: {error}") from None


def _compression_level(
    topic: SettingValues, compression: Compression | None, source: str
) -> int | None:
    """The level for the chosen codec, None where it is the codec's default or it has none."""
    gzip_level = topic.integer("compression.gzip.level")
    if gzip_level == 0:
        # The one hole in its range, which a row cannot express.
        raise SettingError(
            f"The setting compression.gzip.level{f' in {source}' if source else ''} cannot be '0': "
            "it must be a whole number from 1 to 9, or -1."
        )
    if compression not in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        return None
    row = TOPIC_LOG_SETTINGS[f"compression.{compression.name.lower()}.level"]
    level = topic.integer(row.name)
    return None if level == row.default else level
