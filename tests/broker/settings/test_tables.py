"""Every row against what Apache Kafka 4.3 prints about it, and the shape of the tables."""

import pytest

from headwater.base.settings import DynamicScope, SettingKind
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from tests.support.kafka.settings import KAFKA_SETTINGS

OURS = {
    "acks.all.flush",
    "audit.bucket.ms",
    "audit.enable",
    "audit.retention.ms",
    "audit.time",
    "audit.topic.num.partitions",
    "audit.topic.replication.factor",
    "delay.service.enable",
    "delay.service.levels",
    "group.member.metadata.max.bytes",
    "group.metadata.max.bytes",
    "log.delay.levels",
    "log.delay.max.ms",
    "log.delay.mode",
    "log.delay.ms",
    "log.delay.pending.max.bytes",
    "log.dir.reserve.bytes",
    "log.handles.max",
    "log.records.validation",
    "log.retry.attempts",
    "log.retry.breaker.letters",
    "log.retry.breaker.pause",
    "log.retry.breaker.window.ms",
    "log.retry.dead.letter.topic",
    "log.retry.delays",
    "log.retry.group",
    "log.retry.jitter",
    "max.requests.in.flight.per.connection",
    "metrics.listen",
    "metrics.partitions.max",
    "socket.answer.progress.timeout.ms",
    "socket.request.progress.timeout.ms",
    "telemetry.enable",
    "telemetry.otlp.endpoint",
    "telemetry.series.max",
    "trace.retention.ms",
    "trace.sample",
    "trace.topic.num.partitions",
    "trace.topic.replication.factor",
    "zookeeper.digest.password",
    "zookeeper.digest.user",
}
# Kafka has them, but does not print them: they are internal, or exist at run time only.
HIDDEN_IN_KAFKA = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "log.initial.task.delay.ms",
    "producer.id.expiration.check.interval.ms",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
# Kafka before 4.0 had them, and the notes name them.
FORMERLY_IN_KAFKA = {
    "broker.id.generation.enable",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "leader.imbalance.per.broker.percentage",
    "log.message.format.version",
    "reserved.broker.max.id",
    "zookeeper.connect",
    "zookeeper.connection.timeout.ms",
    "zookeeper.max.in.flight.requests",
    "zookeeper.session.timeout.ms",
    "zookeeper.set.acl",
}
# Kafka has them since 4.4.
LATER_IN_KAFKA = {"max.decompressed.message.bytes"}
# A listener cannot be added while a broker runs.
NOT_DYNAMIC_HERE = {"listener.security.protocol.map", "listeners"}
# Kafka calls them lists since 4.2. They are read as a whole.
OTHER_KIND = {
    "advertised.listeners": SettingKind.STRING,
    "controller.listener.names": SettingKind.STRING,
    "listeners": SettingKind.STRING,
}
# The kernel chooses better than Kafka's 102,400.
OTHER_DEFAULT = {
    "socket.receive.buffer.bytes": -1,
    "socket.send.buffer.bytes": -1,
    "transaction.two.phase.commit.enable": True,
}


def test_each_row_is_kafkas_or_says_that_it_is_not() -> None:
    names = {row.name for row in BROKER_SETTINGS}
    elsewhere = OURS | HIDDEN_IN_KAFKA | FORMERLY_IN_KAFKA | LATER_IN_KAFKA
    assert names == KAFKA_SETTINGS.keys() | elsewhere
    assert {row.name for row in BROKER_SETTINGS if "not in Kafka" in row.doc} == OURS


@pytest.mark.parametrize("name", KAFKA_SETTINGS)
def test_kind_default_and_change_at_run_time_are_kafkas(name: str) -> None:
    row, kafka = BROKER_SETTINGS[name], KAFKA_SETTINGS[name]
    assert row.kind is OTHER_KIND.get(name, SettingKind[kafka.kind.upper()])
    if name in ("controller.listener.names", "node.id", "process.roles"):
        # Kafka does not start without them.
        assert kafka.default == ""
    else:
        default = None if kafka.default is None else row.parse(kafka.default)
        assert row.default == OTHER_DEFAULT.get(name, default)
    if name in NOT_DYNAMIC_HERE:
        assert (row.dynamic, kafka.update_mode) == (DynamicScope.READ_ONLY, "per-broker")
    else:
        assert row.dynamic.value == kafka.update_mode


@pytest.mark.parametrize("name", [n for n, row in KAFKA_SETTINGS.items() if row.lower is not None])
def test_bounds_are_kafkas(name: str) -> None:
    row, kafka = BROKER_SETTINGS[name], KAFKA_SETTINGS[name]
    if name == "compression.gzip.level":
        assert (row.lower, row.upper) == (-1, 9)
    elif name in ("max.connections", "max.connections.per.ip"):
        # With Kafka's 0 nobody could connect any more to take it back.
        assert (row.lower, kafka.lower) == (1, 0)
    else:
        assert (row.lower, row.upper) == (kafka.lower, kafka.upper)


def test_topics_have_kafkas_settings() -> None:
    assert {row.name for row in TOPIC_SETTINGS} == {
        "audit.time",
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        # Ours, as is records.validation.
        "delay.levels",
        "delay.max.ms",
        "delay.mode",
        "delay.ms",
        "delay.pending.max.bytes",
        "delete.retention.ms",
        "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.decompressed.message.bytes",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "records.validation",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "retry.attempts",
        "retry.breaker.letters",
        "retry.breaker.pause",
        "retry.breaker.window.ms",
        "retry.dead.letter.topic",
        "retry.delays",
        "retry.group",
        "retry.jitter",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "trace.sample",
        "unclean.leader.election.enable",
    }
    assert TOPIC_SETTINGS["min.insync.replicas"].default == 1
    assert TOPIC_SETTINGS["local.retention.ms"].default == -2


def test_a_reason_is_a_sentence() -> None:
    reasons = [row.without_effect for row in (*BROKER_SETTINGS, *TOPIC_SETTINGS)]
    assert all(reason.endswith(".") for reason in reasons if reason)
    assert TOPIC_SETTINGS["preallocate"].without_effect, "the topic's row has the broker's reason"
