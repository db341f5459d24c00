"""The settings of a consumer: Kafka's names and defaults, and which of them do not go together."""

from __future__ import annotations

from typing import Final

from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable, SettingValues
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.trace_settings import TRACE_SETTINGS

_INT, _STRING = SettingKind.INT, SettingKind.STRING
_LIST, _BOOLEAN = SettingKind.LIST, SettingKind.BOOLEAN

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"

_OBJECTS = (
    "Pass functions or objects to the constructor: key_deserializer=..., value_deserializer=..."
)

# fmt: off
CONSUMER_ONLY_SETTINGS: Final = SettingTable("consumer", [
    Setting("group.id", _STRING, None, "The group that this consumer belongs to: its members share "
            "the partitions of their topics. Needed to subscribe and to commit."),
    Setting("group.instance.id", _STRING, None, "The name of a static member: one that may leave "
            "and come back within session.timeout.ms without a rebalance."),
    Setting("group.protocol", _STRING, CLASSIC, "Who assigns the partitions to the members of the "
            "group: one of the members (classic), or the coordinator (consumer).",
            choices=(CLASSIC, CONSUMER)),
    Setting("group.remote.assignor", _STRING, None, "With group.protocol=consumer, the name of the "
            "assignor that the coordinator uses. Without one, the coordinator chooses."),
    Setting("partition.assignment.strategy", _LIST, ("range", "cooperative-sticky"), "With "
            "group.protocol=classic, the assignors in order of preference: range, roundrobin, "
            "sticky, cooperative-sticky, or one of your own as an object."),
    Setting("session.timeout.ms", _INT, 45000, "How long the coordinator may hear no heartbeat of "
            "this member before it considers it dead.", lower=1),
    Setting("heartbeat.interval.ms", _INT, 3000, "How often this member sends a heartbeat to the "
            "coordinator; at most a third of session.timeout.ms.", lower=1),
    Setting("max.poll.interval.ms", _INT, 300000, "How long may pass between two calls of poll "
            "before this member leaves the group.", lower=1),
    Setting("max.poll.records", _INT, 500, "How many records one call of poll returns at most. "
            "poll_arrow has a limit of its own.",
            lower=1),
    Setting("enable.auto.commit", _BOOLEAN, True, "Whether later calls of poll commit what earlier "
            "ones returned, every auto.commit.interval.ms."),
    Setting("auto.commit.interval.ms", _INT, 5000, "How often poll commits, with "
            "enable.auto.commit.", lower=0),
    Setting("auto.offset.reset", _STRING, "latest", "Where to start reading if the group has "
            "committed no offset, or one that does not exist any more: earliest, latest, none "
            "(raise an error), or by_duration:PnDTnHnMn.nS for a time that long ago."),
    Setting("isolation.level", _STRING, "read_uncommitted", "Whether to return the records of "
            "transactions that are open or were aborted too (read_uncommitted), or only what is "
            "committed (read_committed).", choices=("read_uncommitted", "read_committed")),
    Setting("fetch.min.bytes", _INT, 1, "How many bytes a broker collects before it answers a "
            "fetch, for up to fetch.max.wait.ms.",
            lower=0),
    Setting("fetch.max.bytes", _INT, 50 << 20, "How many bytes one answer to a fetch may hold. A "
            "first batch that is larger is returned all the same.", lower=0),
    Setting("max.partition.fetch.bytes", _INT, 1 << 20, "How many bytes of one partition an answer "
            "to a fetch may hold. A first batch that is larger is returned all the same.",
            lower=0),
    Setting("fetch.max.wait.ms", _INT, 500, "How long a broker waits for fetch.min.bytes before it "
            "answers a fetch with less.",
            lower=0),
    Setting("check.crcs", _BOOLEAN, True, "Whether the checksums of records are checked."),
    Setting("corrupt.batch.policy", _STRING, "fail", "What happens at a batch that cannot be read: "
            "with fail, every poll raises an error that names its offsets, until somebody seeks; "
            "with skip, the batch is left out, counted and logged.", choices=("fail", "skip")),
    Setting("client.rack", _STRING, "", "Where this consumer is, so that it can read from a "
            "replica that is near."),
    Setting("allow.auto.create.topics", _BOOLEAN, True, "Whether subscribing to a topic may create "
            "it, on a cluster that creates topics automatically."),
    Setting("exclude.internal.topics", _BOOLEAN, True, "Whether a subscription by pattern leaves "
            "out internal topics."),
    Setting("default.api.timeout.ms", _INT, 60000, "How long a call may take that is not given a "
            "time limit of its own.", lower=0),
    Setting("key.deserializer", SettingKind.CLASS, None, "What turns bytes into keys.",
            without_effect=_OBJECTS),
    Setting("value.deserializer", SettingKind.CLASS, None, "What turns bytes into values.",
            without_effect=_OBJECTS),
    Setting("interceptor.classes", _LIST, (), "Classes that see records and commits.",
            without_effect="Pass objects to the constructor: interceptors=[...]."),
])
# fmt: on

CONSUMER_SETTINGS: Final = SettingTable.combine(
    "consumer", COMMON_SETTINGS, CONSUMER_ONLY_SETTINGS, TRACE_SETTINGS
)

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
