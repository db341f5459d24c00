"""Settings that are taken so that a configuration written for Kafka can be used as it is.

Nothing here changes what a broker does. What would be dangerous to ignore, such as keys and
authorizers, is not in the table, so that a broker refuses to start with it.
"""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable
from headwater.broker.settings.rows.reasons import (
    NO_QUORUM,
    NO_SHARE_GROUPS,
    NO_STREAMS_GROUPS,
    NO_TIERED_STORAGE,
)

_INT, _LONG, _SHORT = SettingKind.INT, SettingKind.LONG, SettingKind.SHORT
_STRING, _LIST, _BOOLEAN = SettingKind.STRING, SettingKind.LIST, SettingKind.BOOLEAN
_DYNAMIC = DynamicScope.CLUSTER_WIDE
_ONE_FORMAT = "All records are stored in format 2, and older ones are converted when they arrive."

# fmt: off
ACCEPTED_SETTINGS: Final = SettingTable("broker", [
    Setting("log.message.format.version", _STRING, "2.0-IV1", "The format of stored records; gone "
            "since Kafka 4.0.", without_effect=_ONE_FORMAT),
    Setting("process.roles", _LIST, (), "Whether the process is a broker, a controller or both.",
            choices=("broker", "controller"), without_effect=NO_QUORUM),
    Setting("controller.quorum.voters", _LIST, (), "The members of the quorum.",
            without_effect=NO_QUORUM),
    Setting("controller.quorum.bootstrap.servers", _LIST, (), "Where the quorum is found.",
            without_effect=NO_QUORUM),
    Setting("controller.quorum.auto.join.enable", _BOOLEAN, False, "Whether a controller joins the "
            "quorum by itself.", without_effect=NO_QUORUM),
    Setting("metadata.log.dir", _STRING, None, "The directory of the quorum's log.",
            without_effect=NO_QUORUM),
    Setting("share.coordinator.state.topic.replication.factor", _SHORT, 3, "How many replicas the "
            "topic with the state of share groups has.", lower=1, without_effect=NO_SHARE_GROUPS),
    Setting("share.coordinator.state.topic.min.isr", _SHORT, 2, "How many replicas of the "
            "topic with the state of share groups must be in sync.",
            lower=1, without_effect=NO_SHARE_GROUPS),
    Setting("group.share.assignment.interval.ms", _INT, 1_000, "How long a share group keeps "
            "an assignment at least.", lower=0, dynamic=_DYNAMIC,
            without_effect=NO_SHARE_GROUPS),
    Setting("group.share.min.assignment.interval.ms", _INT, 0, "The shortest time between "
            "assignments that a share group may set for itself.",
            lower=0, without_effect=NO_SHARE_GROUPS),
    Setting("group.share.max.assignment.interval.ms", _INT, 15_000, "The longest time between "
            "assignments that a share group may set for itself.",
            lower=0, without_effect=NO_SHARE_GROUPS),
    Setting("group.streams.assignment.interval.ms", _INT, 1_000, "How long a group of Kafka "
            "Streams keeps an assignment at least.", lower=0, dynamic=_DYNAMIC,
            without_effect=NO_STREAMS_GROUPS),
    Setting("group.streams.min.assignment.interval.ms", _INT, 0, "The shortest time "
            "between assignments that a group of Kafka Streams may set for itself.",
            lower=0, without_effect=NO_STREAMS_GROUPS),
    Setting("group.streams.max.assignment.interval.ms", _INT, 15_000, "The longest time "
            "between assignments that a group of Kafka Streams may set for itself.",
            lower=0, without_effect=NO_STREAMS_GROUPS),
    Setting("group.streams.initial.rebalance.delay.ms", _INT, 3_000, "How long a new group of "
            "Kafka Streams waits for more members.", lower=0, without_effect=NO_STREAMS_GROUPS),
    Setting("share.coordinator.cached.buffer.max.bytes", _INT, (1 << 20) + 12, "How large a "
            "buffer for the state of share groups may become and still be used again.",
            lower=512 << 10, dynamic=_DYNAMIC, without_effect=NO_SHARE_GROUPS),
    Setting("follower.fetch.last.tiered.offset.enable", _BOOLEAN, False, "Whether a new follower "
            "begins behind what was copied away.", dynamic=_DYNAMIC,
            without_effect=NO_TIERED_STORAGE),
    Setting("log.local.retention.ms", _LONG, -2, "How long a segment stays on local disks after it "
            "was copied away; -2 as long as the topic's retention.ms.",
            lower=-2, dynamic=_DYNAMIC, topic_name="local.retention.ms",
            without_effect=NO_TIERED_STORAGE),
    Setting("log.local.retention.bytes", _LONG, -2, "How large the local part of a log may become; "
            "-2 as large as the topic's retention.bytes.",
            lower=-2, dynamic=_DYNAMIC, topic_name="local.retention.bytes",
            without_effect=NO_TIERED_STORAGE),
])

#: Settings of topics that have no counterpart for a whole broker.
TOPIC_ONLY_SETTINGS: Final = SettingTable("topic", [
    Setting("remote.storage.enable", _BOOLEAN, False, "Whether segments are copied to tiered "
            "storage; only false is taken.", dynamic=_DYNAMIC, without_effect=NO_TIERED_STORAGE),
    Setting("remote.log.copy.disable", _BOOLEAN, False, "Whether no more segments are copied away.",
            dynamic=_DYNAMIC, without_effect=NO_TIERED_STORAGE),
    Setting("remote.copy.lag.ms", _LONG, 0, "How old a segment's newest record is before it may be "
            "copied away; -1 as old as local.retention.ms says.",
            lower=-1, dynamic=_DYNAMIC, without_effect=NO_TIERED_STORAGE),
    Setting("remote.copy.lag.bytes", _LONG, 0, "How much must lie behind a segment before it may "
            "be copied away; -1 as much as local.retention.bytes says.",
            lower=-1, dynamic=_DYNAMIC, without_effect=NO_TIERED_STORAGE),
    Setting("remote.log.delete.on.disable", _BOOLEAN, False, "Whether copied segments go when "
            "tiered storage is turned off.", dynamic=_DYNAMIC, without_effect=NO_TIERED_STORAGE),
])
# fmt: on
