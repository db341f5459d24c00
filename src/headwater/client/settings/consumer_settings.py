"""The settings of a consumer: Kafka's names and defaults, and which of them do not go together."""

from __future__ import annotations

from typing import Final

from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable, SettingValues
from headwater.client.settings.common_settings import COMMON_SETTINGS

_INT, _STRING = SettingKind.INT, SettingKind.STRING
_LIST, _BOOLEAN = SettingKind.LIST, SettingKind.BOOLEAN

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"

_OBJECTS = "Give the constructor a function: key_deserializer=..., value_deserializer=..."

# fmt: off
CONSUMER_ONLY_SETTINGS: Final = SettingTable("consumer", [
    Setting("group.id", _STRING, None, "The group that this consumer belongs to, with which it "
            "shares the partitions of its topics; needed to subscribe and to commit."),
    Setting("group.instance.id", _STRING, None, "The name of a static member, which may go and "
            "come back within session.timeout.ms without a rebalance."),
    Setting("group.protocol", _STRING, CLASSIC, "Whether the members of the group share out the "
            "partitions themselves (classic) or the coordinator does (consumer).",
            choices=(CLASSIC, CONSUMER)),
    Setting("group.remote.assignor", _STRING, None, "With group.protocol=consumer, the assignor "
            "that the coordinator uses, by its name; it chooses if there is none."),
    Setting("partition.assignment.strategy", _LIST, ("range", "cooperative-sticky"), "With "
            "group.protocol=classic, the assignors in order of preference: range, roundrobin, "
            "sticky, cooperative-sticky, or one of your own as an object."),
    Setting("session.timeout.ms", _INT, 45000, "After how long without a heartbeat the coordinator "
            "takes this member for dead.", lower=1),
    Setting("heartbeat.interval.ms", _INT, 3000, "How often the coordinator hears of this member; "
            "at most a third of session.timeout.ms.", lower=1),
    Setting("max.poll.interval.ms", _INT, 300000, "How long may pass between two calls of poll "
            "before this member leaves the group.", lower=1),
    Setting("max.poll.records", _INT, 500, "How many records one call of poll returns at most.",
            lower=1),
    Setting("enable.auto.commit", _BOOLEAN, True, "Whether what poll returned is committed by the "
            "calls of poll that follow."),
    Setting("auto.commit.interval.ms", _INT, 5000, "How often that happens.", lower=0),
    Setting("auto.offset.reset", _STRING, "latest", "Where to read from if nothing is committed, "
            "or what is does not exist any more: earliest, latest, none (an error), or "
            "by_duration:PnDTnHnMn.nS for records from that long ago on."),
    Setting("isolation.level", _STRING, "read_uncommitted", "Whether records of open and aborted "
            "transactions are seen.", choices=("read_uncommitted", "read_committed")),
    Setting("fetch.min.bytes", _INT, 1, "How much a broker collects before it answers a fetch.",
            lower=0),
    Setting("fetch.max.bytes", _INT, 50 << 20, "How much one answer to a fetch may hold; a larger "
            "first batch comes all the same.", lower=0),
    Setting("max.partition.fetch.bytes", _INT, 1 << 20, "How much of it one partition may have.",
            lower=0),
    Setting("fetch.max.wait.ms", _INT, 500, "How long a broker waits for fetch.min.bytes.",
            lower=0),
    Setting("check.crcs", _BOOLEAN, True, "Whether the checksums of records are checked."),
    Setting("corrupt.batch.policy", _STRING, "fail", "What happens at a batch that cannot be read: "
            "an error that names its offsets, again at each poll until somebody seeks, or it is "
            "left out, counted and logged.", choices=("fail", "skip")),
    Setting("client.rack", _STRING, "", "Where this consumer is, so that it may read from a "
            "replica that is near."),
    Setting("allow.auto.create.topics", _BOOLEAN, True, "Whether subscribing to a topic may create "
            "it, if the broker does such things."),
    Setting("exclude.internal.topics", _BOOLEAN, True, "Whether a pattern leaves out internal "
            "topics."),
    Setting("default.api.timeout.ms", _INT, 60000, "How long calls wait that have no time limit "
            "of their own.", lower=0),
    Setting("key.deserializer", SettingKind.CLASS, None, "What turns bytes into keys.",
            without_effect=_OBJECTS),
    Setting("value.deserializer", SettingKind.CLASS, None, "What turns bytes into values.",
            without_effect=_OBJECTS),
    Setting("interceptor.classes", _LIST, (), "Classes that see records and commits.",
            without_effect="Give the constructor objects: interceptors=[...]."),
])
# fmt: on

CONSUMER_SETTINGS: Final = SettingTable.combine("consumer", COMMON_SETTINGS, CONSUMER_ONLY_SETTINGS)

#: What only one of the two group protocols has.
_ONLY_CLASSIC: Final = (
    "partition.assignment.strategy",
    "heartbeat.interval.ms",
    "session.timeout.ms",
)
_ONLY_CONSUMER: Final = ("group.remote.assignor",)


def check_consumer_settings(values: SettingValues) -> None:
    """Raise `SettingError` for settings that contradict each other."""
    _check_protocol(values)
    heartbeat_ms = values.integer("heartbeat.interval.ms")
    session_ms = values.integer("session.timeout.ms")
    if values.text("group.protocol") == CLASSIC and heartbeat_ms * 3 > session_ms:
        raise SettingError(
            f"The setting heartbeat.interval.ms cannot be {heartbeat_ms}: it must be at most a "
            f"third of session.timeout.ms, which is {session_ms}, so that a heartbeat that is "
            "lost does not cost the membership."
        )
    group_id = values.optional_text("group.id")
    if group_id is not None and not group_id.strip():
        raise SettingError("The setting group.id cannot be empty; leave it out for no group.")
    if group_id is None:
        for name in ("enable.auto.commit", "group.instance.id"):
            if values.is_set(name) and values.value(name):
                raise SettingError(f"The setting {name} needs a group: set group.id.")
    if not values.texts("partition.assignment.strategy"):
        raise SettingError("The setting partition.assignment.strategy cannot be empty.")


def _check_protocol(values: SettingValues) -> None:
    protocol = values.text("group.protocol")
    for name in _ONLY_CLASSIC if protocol == CONSUMER else _ONLY_CONSUMER:
        if values.is_set(name):
            raise SettingError(
                f"The setting {name} cannot be used with group.protocol={protocol}, "
                "where it has no meaning."
            )
