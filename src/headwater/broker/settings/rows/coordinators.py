"""Consumer groups, their offsets, and transactions."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable
from headwater.broker.settings.rows.reasons import ONE_LOOP

_INT, _LONG, _SHORT = SettingKind.INT, SettingKind.LONG, SettingKind.SHORT
_STRING, _LIST, _BOOLEAN = SettingKind.STRING, SettingKind.LIST, SettingKind.BOOLEAN
_INT_MAX = 2**31 - 1
_HOUR_MS = 3_600_000
_WRITTEN_AT_ONCE = "Records are written at once; it is the fsync behind them that is shared."
_ASSIGNED_AT_ONCE = "Partitions are assigned anew with the very change that asks for it."

# fmt: off
_OFFSETS = [
    Setting("offsets.topic.num.partitions", _INT, 50, "How many partitions __consumer_offsets "
            "gets.", lower=1),
    Setting("offsets.topic.replication.factor", _SHORT, 3, "How many replicas each partition of "
            "__consumer_offsets gets.", lower=1),
    Setting("offsets.topic.segment.bytes", _INT, 100 << 20, "The size of the segments of "
            "__consumer_offsets, small so that compaction and loading are quick.", lower=1),
    Setting("offsets.topic.compression.codec", _INT, 0, "How records of __consumer_offsets are "
            "compressed, by the number of the codec.",
            lower=0, upper=4),
    Setting("offsets.retention.minutes", _INT, 10_080, "How long the offsets of a group without "
            "members are kept.", lower=1),
    Setting("offsets.retention.check.interval.ms", _LONG, 600_000, "How often old offsets are "
            "looked for.", lower=1),
    Setting("offsets.commit.timeout.ms", _INT, 5_000, "How long a commit waits for the replicas "
            "of __consumer_offsets.", lower=1),
    Setting("offsets.load.buffer.size", _INT, 5 << 20, "How much of __consumer_offsets is read at "
            "a time when a coordinator takes over.", lower=1),
    Setting("offset.metadata.max.bytes", _INT, 4_096, "The longest text that a commit may carry."),
]
_GROUPS = [
    Setting("group.min.session.timeout.ms", _INT, 6_000, "The shortest session that a member may "
            "ask for."),
    Setting("group.max.session.timeout.ms", _INT, 1_800_000, "The longest session that a member "
            "may ask for."),
    Setting("group.initial.rebalance.delay.ms", _INT, 3_000, "How long a new group waits for more "
            "members before its first rebalance."),
    Setting("group.max.size", _INT, _INT_MAX, "How many members a group may have.",
            lower=1),
    Setting("group.member.metadata.max.bytes", _INT, 1 << 20, "What the subscriptions of one "
            "member may take, in all protocols that it offers; not in Kafka.", lower=1),
    Setting("group.metadata.max.bytes", _INT, 16 << 20, "What the subscriptions of all members of "
            "a group may take together, and their assignments as much again; not in Kafka.",
            lower=1),
    Setting("group.coordinator.rebalance.protocols", _LIST, ("classic", "consumer", "streams"),
            "The rebalance protocols that are spoken.",
            choices=("consumer", "classic", "share", "streams")),
    Setting("group.coordinator.threads", _INT, 4, "How many threads coordinate groups.",
            lower=1, without_effect=ONE_LOOP),
    Setting("group.coordinator.background.threads", _INT, 2, "How many threads do what may take "
            "a coordinator long.", lower=1, without_effect=ONE_LOOP),
    Setting("group.coordinator.append.linger.ms", _INT, -1, "How long a coordinator collects "
            "records before it writes them; -1 as long as others are being written.", lower=-1,
            without_effect=_WRITTEN_AT_ONCE),
    Setting("group.coordinator.cached.buffer.max.bytes", _INT, (1 << 20) + 12, "How large a "
            "buffer for records may become and still be used again.", lower=512 << 10,
            dynamic=DynamicScope.CLUSTER_WIDE, without_effect=_WRITTEN_AT_ONCE),
    Setting("group.consumer.assignment.interval.ms", _INT, 1_000, "How long a group of the newer "
            "protocol keeps an assignment at least.", lower=0, dynamic=DynamicScope.CLUSTER_WIDE,
            without_effect=_ASSIGNED_AT_ONCE),
    Setting("group.consumer.min.assignment.interval.ms", _INT, 0, "The shortest such time that a "
            "group may set for itself.", lower=0, without_effect=_ASSIGNED_AT_ONCE),
    Setting("group.consumer.max.assignment.interval.ms", _INT, 15_000, "The longest such time "
            "that a group may set for itself.", lower=0, without_effect=_ASSIGNED_AT_ONCE),
    Setting("group.consumer.session.timeout.ms", _INT, 45_000, "The session of members of the "
            "newer protocol.", lower=1),
    Setting("group.consumer.min.session.timeout.ms", _INT, 45_000, "The shortest session that a "
            "group of the newer protocol may set for itself.", lower=1),
    Setting("group.consumer.max.session.timeout.ms", _INT, 60_000, "The longest session that a "
            "group of the newer protocol may set for itself.", lower=1),
    Setting("group.consumer.heartbeat.interval.ms", _INT, 5_000, "How often members of the newer "
            "protocol are told to report.", lower=1),
    Setting("group.consumer.min.heartbeat.interval.ms", _INT, 5_000, "The shortest interval "
            "between heartbeats that a group of the newer protocol may set for itself.", lower=1),
    Setting("group.consumer.max.heartbeat.interval.ms", _INT, 15_000, "The longest interval "
            "between heartbeats that a group of the newer protocol may set for itself.", lower=1),
    Setting("group.consumer.max.size", _INT, _INT_MAX, "How many members a group of the newer "
            "protocol may have.", lower=1),
    Setting("group.consumer.assignors", _LIST, ("uniform", "range"), "How the newer protocol "
            "assigns partitions; the first is the default."),
    Setting("group.consumer.migration.policy", _STRING, "bidirectional", "Between which protocols "
            "a group with members may change.",
            choices=("disabled", "downgrade", "upgrade", "bidirectional")),
]
_TRANSACTIONS = [
    Setting("transactional.id.expiration.ms", _INT, 7 * 24 * _HOUR_MS, "How long a transactional "
            "id that is not used is remembered.", lower=1),
    Setting("transaction.max.timeout.ms", _INT, 900_000, "The longest time that a producer may ask "
            "for a transaction.", lower=1),
    Setting("transaction.state.log.num.partitions", _INT, 50, "How many partitions "
            "__transaction_state gets.", lower=1),
    Setting("transaction.state.log.replication.factor", _SHORT, 3, "How many replicas each "
            "partition of __transaction_state gets.", lower=1),
    Setting("transaction.state.log.min.isr", _INT, 2, "How many replicas of a partition of "
            "__transaction_state must be in sync for it to be written.", lower=1),
    Setting("transaction.state.log.segment.bytes", _INT, 100 << 20, "The size of the segments "
            "of __transaction_state.", lower=1),
    Setting("transaction.state.log.load.buffer.size", _INT, 5 << 20, "How much of "
            "__transaction_state is read at a time when a coordinator takes over.", lower=1),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", _INT, 10_000, "How "
            "often transactions that took too long are looked for.",
            lower=1),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", _INT, _HOUR_MS, "How "
            "often expired transactional ids are looked for.",
            lower=1),
    Setting("transaction.partition.verification.enable", _BOOLEAN, True, "Whether a partition asks "
            "the coordinator before it begins a transaction.", dynamic=DynamicScope.CLUSTER_WIDE),
    Setting("transaction.two.phase.commit.enable", _BOOLEAN, True, "Whether prepared transactions "
            "may wait for an outside coordinator, for as long as that takes."),
    Setting("add.partitions.to.txn.retry.backoff.ms", _INT, 20, "How long the broker waits before "
            "it tries again to add a partition.", lower=1),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", _INT, 100, "How long the broker tries "
            "to add a partition to a transaction before the client has to.", lower=0),
]
# fmt: on

COORDINATOR_SETTINGS: Final = SettingTable("broker", [*_OFFSETS, *_GROUPS, *_TRANSACTIONS])
