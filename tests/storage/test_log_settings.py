"""Every row against the defaults and bounds that Apache Kafka 4.3 documents."""

import dataclasses

import pytest

from headwater.base.settings import DynamicScope, SettingError
from headwater.storage.log_config import (
    NO_DELAYS,
    BreakerRules,
    DelayMode,
    LogConfig,
    RecordsValidation,
    RetryRules,
)
from headwater.storage.log_settings import (
    LOG_SETTINGS,
    TOPIC_LOG_SETTINGS,
    check_cordoned_directories,
    cordoned_directory_paths,
    log_config_of,
    log_directory_paths,
    make_log_config,
)
from headwater.wire.records import Compression, TimestampType

LONG = 2**63 - 1
DAY_MS = 86_400_000
LEVELS = tuple("5s,10s,30s,1min,2min,5min,10min,20min,30min,45min,1h,2h".split(","))  # noqa: SIM905

# Name: default, smallest and largest value (None where only the type bounds it).
BROKER_DEFAULTS: dict[str, tuple[object, float | None, float | None]] = {
    "audit.time": ("record", None, None),
    "compression.gzip.level": (-1, -1, 9),
    "compression.lz4.level": (9, 1, 17),
    "compression.type": ("producer", None, None),
    "compression.zstd.level": (3, -131072, 22),
    "cordoned.log.dirs": ((), None, None),
    "log.cleaner.backoff.ms": (15_000, 0, None),
    "log.cleaner.dedupe.buffer.size": (134_217_728, 1 << 20, None),
    "log.cleaner.delete.retention.ms": (DAY_MS, 0, None),
    "log.cleaner.enable": (True, None, None),
    "log.cleaner.io.buffer.load.factor": (0.9, 0, None),
    "log.cleaner.io.buffer.size": (524_288, 0, None),
    "log.cleaner.io.max.bytes.per.second": (1.7976931348623157e308, 0, None),
    "log.cleaner.max.compaction.lag.ms": (LONG, 1, None),
    "log.cleaner.min.cleanable.ratio": (0.5, 0, 1),
    "log.cleaner.min.compaction.lag.ms": (0, 0, None),
    "log.cleaner.threads": (1, 0, None),
    "log.cleanup.policy": (("delete",), None, None),
    "log.delay.levels": (LEVELS, None, None),
    "log.delay.max.ms": (40 * DAY_MS, 0, None),
    "log.delay.mode": ("off", None, None),
    "log.delay.ms": (0, 0, None),
    "log.delay.pending.max.bytes": (10 << 30, 0, None),
    "log.dir": (("/tmp/kafka-logs",), None, None),
    "log.dir.reserve.bytes": (8 << 20, 0, None),
    "log.dirs": (None, None, None),
    "log.flush.interval.messages": (LONG, 1, None),
    "log.flush.interval.ms": (None, 0, None),
    "log.flush.offset.checkpoint.interval.ms": (60_000, 0, None),
    "log.flush.scheduler.interval.ms": (LONG, 1, None),
    "log.flush.start.offset.checkpoint.interval.ms": (60_000, 0, None),
    "log.handles.max": (512, 16, None),
    "log.index.interval.bytes": (4096, 0, None),
    "log.index.size.max.bytes": (10_485_760, 4, None),
    "log.initial.task.delay.ms": (30_000, 0, None),
    "log.message.timestamp.after.max.ms": (3_600_000, 0, None),
    "log.message.timestamp.before.max.ms": (LONG, 0, None),
    "log.message.timestamp.type": ("CreateTime", None, None),
    "log.preallocate": (False, None, None),
    "log.records.validation": ("structure", None, None),
    "log.retention.bytes": (-1, None, None),
    "log.retention.check.interval.ms": (300_000, 1, None),
    "log.retention.hours": (168, -1, None),
    "log.retention.minutes": (None, -1, None),
    "log.retention.ms": (None, -1, None),
    "log.retry.attempts": (0, 0, None),
    "log.retry.breaker.letters": (100, 0, None),
    "log.retry.breaker.pause": (False, None, None),
    "log.retry.breaker.window.ms": (60_000, 1, None),
    "log.retry.dead.letter.topic": ("", None, None),
    "log.retry.delays": (("5s", "10s", "30s", "1m", "2m"), None, None),
    "log.retry.group": ("", None, None),
    "log.retry.jitter": (0.0, 0, 1),
    "log.roll.hours": (168, 1, None),
    "log.roll.jitter.hours": (0, 0, None),
    "log.roll.jitter.ms": (None, 0, None),
    "log.roll.ms": (None, 1, None),
    "log.segment.bytes": (1_073_741_824, 1_048_576, None),
    "log.segment.delete.delay.ms": (60_000, 0, None),
    "max.decompressed.message.bytes": (128 << 20, 0, None),
    "message.max.bytes": (1_048_588, 0, None),
    "num.recovery.threads.per.data.dir": (2, 1, None),
    "producer.id.expiration.check.interval.ms": (600_000, 1, None),
    "producer.id.expiration.ms": (DAY_MS, 1, None),
    "replica.high.watermark.checkpoint.interval.ms": (5_000, 0, None),
}

# Name: default, and the broker's setting that it is inherited from.
TOPIC_DEFAULTS: dict[str, tuple[object, str]] = {
    "audit.time": ("record", "audit.time"),
    "cleanup.policy": (("delete",), "log.cleanup.policy"),
    "compression.gzip.level": (-1, "compression.gzip.level"),
    "compression.lz4.level": (9, "compression.lz4.level"),
    "compression.type": ("producer", "compression.type"),
    "compression.zstd.level": (3, "compression.zstd.level"),
    "delay.levels": (LEVELS, "log.delay.levels"),
    "delay.max.ms": (40 * DAY_MS, "log.delay.max.ms"),
    "delay.mode": ("off", "log.delay.mode"),
    "delay.ms": (0, "log.delay.ms"),
    "delay.pending.max.bytes": (10 << 30, "log.delay.pending.max.bytes"),
    "delete.retention.ms": (DAY_MS, "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": (60_000, "log.segment.delete.delay.ms"),
    "flush.messages": (LONG, "log.flush.interval.messages"),
    "flush.ms": (LONG, "log.flush.interval.ms"),
    "index.interval.bytes": (4096, "log.index.interval.bytes"),
    "max.compaction.lag.ms": (LONG, "log.cleaner.max.compaction.lag.ms"),
    "max.decompressed.message.bytes": (128 << 20, "max.decompressed.message.bytes"),
    "max.message.bytes": (1_048_588, "message.max.bytes"),
    "message.timestamp.after.max.ms": (3_600_000, "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": (LONG, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": ("CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": (0.5, "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": (0, "log.cleaner.min.compaction.lag.ms"),
    "preallocate": (False, "log.preallocate"),
    "records.validation": ("structure", "log.records.validation"),
    "retention.bytes": (-1, "log.retention.bytes"),
    "retention.ms": (7 * DAY_MS, "log.retention.ms"),
    "retry.attempts": (0, "log.retry.attempts"),
    "retry.breaker.letters": (100, "log.retry.breaker.letters"),
    "retry.breaker.pause": (False, "log.retry.breaker.pause"),
    "retry.breaker.window.ms": (60_000, "log.retry.breaker.window.ms"),
    "retry.dead.letter.topic": ("", "log.retry.dead.letter.topic"),
    "retry.delays": (("5s", "10s", "30s", "1m", "2m"), "log.retry.delays"),
    "retry.group": ("", "log.retry.group"),
    "retry.jitter": (0.0, "log.retry.jitter"),
    "segment.bytes": (1_073_741_824, "log.segment.bytes"),
    "segment.index.bytes": (10_485_760, "log.index.size.max.bytes"),
    "segment.jitter.ms": (0, "log.roll.jitter.ms"),
    "segment.ms": (7 * DAY_MS, "log.roll.ms"),
}


def test_the_tables_have_exactly_the_settings_of_logs() -> None:
    assert sorted(row.name for row in LOG_SETTINGS) == sorted(BROKER_DEFAULTS)
    assert sorted(row.name for row in TOPIC_LOG_SETTINGS) == sorted(TOPIC_DEFAULTS)


@pytest.mark.parametrize("name", BROKER_DEFAULTS)
def test_broker_default_and_bounds(name: str) -> None:
    row = LOG_SETTINGS[name]
    assert (row.default, row.lower, row.upper) == BROKER_DEFAULTS[name]
    assert type(row.default) is type(BROKER_DEFAULTS[name][0])


@pytest.mark.parametrize("name", TOPIC_DEFAULTS)
def test_topic_default_and_synonym(name: str) -> None:
    row = TOPIC_LOG_SETTINGS[name]
    assert (row.default, row.synonyms[0].name) == TOPIC_DEFAULTS[name]
    assert row.dynamic is DynamicScope.CLUSTER_WIDE


def test_a_log_config_has_the_same_defaults_as_the_table() -> None:
    assert make_log_config(LOG_SETTINGS.defaults()) == LogConfig()


@pytest.mark.parametrize(
    ("set_by_broker", "expected_ms"),
    [
        ({}, 7 * DAY_MS),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(set_by_broker: dict[str, str], expected_ms: int) -> None:
    broker = LOG_SETTINGS.parse(set_by_broker)
    assert make_log_config(broker).retention_ms == expected_ms
    assert make_log_config(broker, {"retention.ms": "77"}).retention_ms == 77


def test_roll_and_flush_have_coarser_synonyms_too() -> None:
    broker = LOG_SETTINGS.parse(
        {
            "log.roll.hours": "2",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "500",
        }
    )
    config = make_log_config(broker)
    assert (config.segment_ms, config.segment_jitter_ms) == (7_200_000, 3_600_000)
    assert config.flush_ms == 500
    finer = broker.with_overrides({"log.roll.ms": "9", "log.flush.interval.ms": "8"})
    assert (make_log_config(finer).segment_ms, make_log_config(finer).flush_ms) == (9, 8)


# Setting of a topic, a value, and the attribute that it must change.
OVERRIDES: list[tuple[str, str, str, object]] = [
    ("audit.time", "header", "audits_by_header", True),
    ("cleanup.policy", "compact,delete", "cleanup_policy", frozenset({"compact", "delete"})),
    ("compression.type", "zstd", "compression", Compression.ZSTD),
    ("compression.type", "uncompressed", "compression", Compression.NONE),
    ("delay.levels", "9s", "delay", NO_DELAYS._replace(levels_ms=(9000,))),
    ("delay.max.ms", "5", "delay", NO_DELAYS._replace(max_ms=5)),
    ("delay.mode", "header", "delay", NO_DELAYS._replace(mode=DelayMode.HEADER)),
    ("delay.ms", "5", "delay", NO_DELAYS._replace(fixed_ms=5)),
    ("delay.pending.max.bytes", "5", "delay", NO_DELAYS._replace(pending_max_bytes=5)),
    ("retry.attempts", "7", "delay", NO_DELAYS._replace(retry=RetryRules(attempts_max=7))),
    (
        "retry.breaker.letters",
        "7",
        "delay",
        NO_DELAYS._replace(retry=RetryRules(breaker=BreakerRules(letters=7))),
    ),
    (
        "retry.breaker.pause",
        "true",
        "delay",
        NO_DELAYS._replace(retry=RetryRules(breaker=BreakerRules(is_pausing=True))),
    ),
    (
        "retry.breaker.window.ms",
        "7",
        "delay",
        NO_DELAYS._replace(retry=RetryRules(breaker=BreakerRules(window_ms=7))),
    ),
    ("retry.group", "billing", "delay", NO_DELAYS._replace(retry=RetryRules(group="billing"))),
    (
        "retry.dead.letter.topic",
        "dlq",
        "delay",
        NO_DELAYS._replace(retry=RetryRules(dead_letter_topic="dlq")),
    ),
    (
        "retry.delays",
        "250ms,9s",
        "delay",
        NO_DELAYS._replace(retry=RetryRules(delays_ms=(250, 9000), attempts_max=2)),
    ),
    ("retry.jitter", "0.5", "delay", NO_DELAYS._replace(retry=RetryRules(jitter=0.5))),
    ("delete.retention.ms", "5", "delete_retention_ms", 5),
    ("file.delete.delay.ms", "5", "file_delete_delay_ms", 5),
    ("flush.messages", "1", "flush_messages", 1),
    ("flush.ms", "5", "flush_ms", 5),
    ("index.interval.bytes", "5", "index_interval_bytes", 5),
    ("max.decompressed.message.bytes", "5", "max_decompressed_message_bytes", 5),
    ("max.decompressed.message.bytes", "2147483639", "max_decompressed_message_bytes", 256 << 20),
    ("max.compaction.lag.ms", "5", "max_compaction_lag_ms", 5),
    ("max.message.bytes", "5", "max_message_bytes", 5),
    ("message.timestamp.after.max.ms", "5", "message_timestamp_after_max_ms", 5),
    ("message.timestamp.before.max.ms", "5", "message_timestamp_before_max_ms", 5),
    (
        "message.timestamp.type",
        "LogAppendTime",
        "message_timestamp_type",
        TimestampType.LOG_APPEND_TIME,
    ),
    ("min.cleanable.dirty.ratio", "0.1", "min_cleanable_dirty_ratio", 0.1),
    ("min.compaction.lag.ms", "5", "min_compaction_lag_ms", 5),
    ("records.validation", "full", "records_validation", RecordsValidation.FULL),
    ("retention.bytes", "5", "retention_bytes", 5),
    ("retention.ms", "-1", "retention_ms", -1),
    ("segment.bytes", "1048576", "segment_bytes", 1 << 20),
    ("segment.index.bytes", "64", "segment_index_bytes", 64),
    ("segment.jitter.ms", "5", "segment_jitter_ms", 5),
    ("segment.ms", "5", "segment_ms", 5),
]


@pytest.mark.parametrize(("name", "text", "attribute", "value"), OVERRIDES)
def test_a_topic_overrides_one_attribute(
    name: str, text: str, attribute: str, value: object
) -> None:
    config = make_log_config(LOG_SETTINGS.defaults(), {name: text}, "the topic orders")
    changed = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(LogConfig)
        if field.init and getattr(config, field.name) != getattr(LogConfig(), field.name)
    }
    assert changed == {attribute: value}


def test_every_topic_setting_but_the_levels_changes_the_config() -> None:
    without_attribute = {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
    without_attribute.add("preallocate")  # Accepted without effect, and its row says so.
    assert {row[0] for row in OVERRIDES} == TOPIC_DEFAULTS.keys() - without_attribute
    assert TOPIC_LOG_SETTINGS["preallocate"].without_effect


@pytest.mark.parametrize(
    ("codec", "level", "expected"),
    [
        ("gzip", "-1", None),
        ("gzip", "6", 6),
        ("lz4", "9", None),
        ("lz4", "12", 12),
        ("zstd", "3", None),
        ("zstd", "-5", -5),
    ],
)
def test_the_level_of_the_chosen_codec_counts(codec: str, level: str, expected: int | None) -> None:
    overrides = {"compression.type": codec, f"compression.{codec}.level": level}
    assert make_log_config(LOG_SETTINGS.defaults(), overrides).compression_level == expected
    overrides["compression.type"] = "snappy"
    assert make_log_config(LOG_SETTINGS.defaults(), overrides).compression_level is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "1000"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "delete,shred"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("flush.messages", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("message.timestamp.type", "createtime"),
        ("preallocate", "perhaps"),
        ("max.message.bytes", ""),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(name: str, text: str) -> None:
    with pytest.raises(SettingError) as refused:
        make_log_config(LOG_SETTINGS.defaults(), {name: text}, "the topic orders")
    sentence = str(refused.value)
    assert name in sentence and "the topic orders" in sentence and sentence.endswith(".")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"did you mean .*segment\.bytes"):
        make_log_config(LOG_SETTINGS.defaults(), {"segment.byte": "1"})


def test_compaction_lags_that_contradict_each_other_are_refused() -> None:
    overrides = {"min.compaction.lag.ms": "11", "max.compaction.lag.ms": "10"}
    with pytest.raises(SettingError, match=r"min\.compaction\.lag\.ms is 11"):
        make_log_config(LOG_SETTINGS.defaults(), overrides)


def test_values_of_a_larger_table_will_do() -> None:
    values = TOPIC_LOG_SETTINGS.inherit(LOG_SETTINGS.parse({"message.max.bytes": "9"}))
    assert log_config_of(values).max_message_bytes == 9


def test_directories_come_from_log_dirs_or_else_log_dir() -> None:
    assert log_directory_paths(LOG_SETTINGS.defaults()) == ("/tmp/kafka-logs",)
    assert log_directory_paths(LOG_SETTINGS.parse({"log.dir": "/x"})) == ("/x",)
    assert log_directory_paths(LOG_SETTINGS.parse({"log.dir": "/x,/y"})) == ("/x", "/y")
    both = LOG_SETTINGS.parse({"log.dir": "/x", "log.dirs": "/a, /b"})
    assert log_directory_paths(both) == ("/a", "/b")


@pytest.mark.parametrize("text", ["/a,/b,/a", "/a,,/b"])
def test_a_directory_must_be_named_once_and_have_a_name(text: str) -> None:
    with pytest.raises(SettingError, match=r"log\.dirs"):
        log_directory_paths(LOG_SETTINGS.parse({"log.dirs": text}))


@pytest.mark.parametrize(
    ("text", "paths"),
    [("", set()), ("/a", {"/a"}), ("/b, /a", {"/a", "/b"}), ("*", {"/a", "/b"})],
)
def test_cordoned_directories(text: str, paths: set[str]) -> None:
    values = LOG_SETTINGS.parse({"log.dirs": "/a,/b", "cordoned.log.dirs": text})
    assert cordoned_directory_paths(values) == paths
    check_cordoned_directories(values)


@pytest.mark.parametrize(("text", "fault"), [("/c", "'/c', which is not in"), ("*,/a", "beside")])
def test_what_cannot_be_cordoned(text: str, fault: str) -> None:
    values = LOG_SETTINGS.parse({"log.dirs": "/a,/b", "cordoned.log.dirs": text})
    with pytest.raises(SettingError, match=fault):
        check_cordoned_directories(values)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"delay.mode": "header", "cleanup.policy": "compact"}, "a compacted topic cannot"),
        ({"delay.mode": "timestamp", "message.timestamp.type": "LogAppendTime"}, "no record can"),
        ({"delay.mode": "fixed"}, "it needs message.timestamp.type=LogAppendTime"),
        ({"delay.levels": "5s,soon"}, "'soon' is no length of time"),
        ({"delay.mode": "levels", "delay.levels": ""}, "names no level"),
    ],
)
def test_delays_that_cannot_be(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        make_log_config(LOG_SETTINGS.defaults(), overrides, "the topic orders")


def test_record_times_may_lie_as_far_ahead_as_a_delay() -> None:
    overrides = {"delay.mode": "timestamp", "delay.max.ms": str(50 * DAY_MS)}
    config = make_log_config(LOG_SETTINGS.defaults(), overrides, "the topic orders")
    assert config.message_timestamp_after_max_ms == 50 * DAY_MS


def test_levels_are_in_order() -> None:
    overrides = {"delay.mode": "levels", "delay.levels": "1m,250ms,30s"}
    config = make_log_config(LOG_SETTINGS.defaults(), overrides, "the topic orders")
    assert config.delay.levels_ms == (250, 30_000, 60_000)
