"""What an acknowledgement promises, and how replicas and their leaders are kept in order."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable
from headwater.storage.log_config import LONG_MAX

_INT, _LONG, _STRING = SettingKind.INT, SettingKind.LONG, SettingKind.STRING
_BOOLEAN = SettingKind.BOOLEAN
_DYNAMIC = DynamicScope.CLUSTER_WIDE

#: The classes of Kafka's that may choose the replica that a consumer reads from.
LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# fmt: off
_PROMISES = [
    Setting("min.insync.replicas", _INT, 1, "How many replicas must be in sync for a write with "
            "acks=all to be taken.", lower=1, dynamic=_DYNAMIC, topic_name="min.insync.replicas"),
    Setting("acks.all.flush", _STRING, "auto", "When acks=all waits for the leader's disk: 'auto' "
            "where no other replica is in sync, 'leader' always, 'off' never; not in Kafka.",
            choices=("auto", "leader", "off"), dynamic=_DYNAMIC),
    Setting("unclean.leader.election.enable", _BOOLEAN, False, "Whether a replica that is not in "
            "sync may lead when no other can, at the price of losing records.",
            dynamic=_DYNAMIC, topic_name="unclean.leader.election.enable"),
]
_FOLLOWERS = [
    Setting("replica.lag.time.max.ms", _LONG, 30_000, "How long a follower may be behind before "
            "it is out of sync."),
    Setting("replica.fetch.max.bytes", _INT, 1 << 20, "How much a follower fetches from a "
            "partition at a time.", lower=0),
    Setting("replica.fetch.response.max.bytes", _INT, 10 << 20, "How much a follower fetches at a "
            "time from all partitions together.", lower=0),
    Setting("replica.fetch.min.bytes", _INT, 1, "How many bytes a follower's fetch waits for."),
    Setting("replica.fetch.wait.max.ms", _INT, 500, "How long a follower's fetch waits for bytes."),
    Setting("replica.fetch.backoff.ms", _INT, 1_000, "How long a follower waits after a fetch that "
            "failed.", lower=0),
    Setting("replica.socket.timeout.ms", _INT, 30_000, "How long a follower waits for an answer."),
    Setting("replica.socket.receive.buffer.bytes", _INT, 64 << 10, "The receive buffer of a "
            "follower's socket.",
            without_effect="The operating system sizes the buffers of connections to brokers."),
    Setting("replica.selector.class", _STRING, None, "What chooses the replica that a consumer "
            "reads from: the leader, or with Kafka's RackAwareReplicaSelector one whose "
            "broker.rack is the consumer's client.rack.",
            choices=(LEADER_SELECTOR, RACK_AWARE_SELECTOR)),
    Setting("num.replica.fetchers", _INT, 1, "How many connections a follower fetches over from "
            "one leader.", lower=1, dynamic=_DYNAMIC),
    Setting("num.replica.alter.log.dirs.threads", _INT, None, "How many threads move logs between "
            "directories.", without_effect="Moves are a background task on the event loop."),
    Setting("leader.replication.throttled.rate", _LONG, LONG_MAX, "How many bytes a second a "
            "leader gives to throttled followers, all of them together.", lower=0,
            dynamic=_DYNAMIC),
    Setting("follower.replication.throttled.rate", _LONG, LONG_MAX, "How many bytes a second a "
            "broker fetches of throttled partitions, all of them together.", lower=0,
            dynamic=_DYNAMIC),
    Setting("replication.quota.window.num", _INT, 11, "Over how many windows of time the rate of "
            "throttled replication is measured.", lower=1),
    Setting("replication.quota.window.size.seconds", _INT, 1, "How long such a window is.",
            lower=1),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", _LONG, LONG_MAX, "How many bytes a "
            "second moves between directories copy, all of them together.", lower=0,
            dynamic=_DYNAMIC),
    Setting("alter.log.dirs.replication.quota.window.num", _INT, 11, "Over how many windows of "
            "time the rate of moves between directories is measured.", lower=1),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", _INT, 1, "How long such a "
            "window is.", lower=1),
]
_LEADERS = [
    Setting("auto.leader.rebalance.enable", _BOOLEAN, True, "Whether partitions are given back to "
            "their preferred leaders from time to time."),
    Setting("leader.imbalance.check.interval.seconds", _LONG, 300, "How often a "
            "controller looks for partitions to give back to their preferred leaders.", lower=1),
    Setting("leader.imbalance.per.broker.percentage", _INT, 10, "The share of a broker's "
            "partitions, in percent, that may be led by others before it gets them back.",
            lower=0, upper=100),
]

#: Settings of topics that have no counterpart for a whole broker.
TOPIC_THROTTLE_SETTINGS: Final = SettingTable("topic", [
    Setting("leader.replication.throttled.replicas", SettingKind.LIST, (), "Replicas whose leader "
            "throttles what it sends: partition:broker, the leader's id, with commas between, or * "
            "for all. Replicas in sync are never throttled.", dynamic=_DYNAMIC),
    Setting("follower.replication.throttled.replicas", SettingKind.LIST, (), "Replicas that "
            "throttle what they fetch: partition:broker with commas between, or * for all. "
            "Replicas in sync are never throttled.", dynamic=_DYNAMIC),
])
# fmt: on

REPLICATION_SETTINGS: Final = SettingTable("broker", [*_PROMISES, *_FOLLOWERS, *_LEADERS])
