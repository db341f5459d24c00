"""The audit: what brokers count by themselves, and where they write it."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000

# fmt: off
AUDIT_SETTINGS: Final = SettingTable("broker", [
    Setting("audit.enable", SettingKind.BOOLEAN, True, "Whether brokers count what is stored and "
            "what groups commit, and write it to __audit; not in Kafka.",
            dynamic=DynamicScope.CLUSTER_WIDE),
    Setting("audit.bucket.ms", SettingKind.LONG, _MINUTE_MS, "The length of the buckets of time by "
            "which records are counted, and how often that is published; not in Kafka.",
            lower=1_000, upper=_DAY_MS, dynamic=DynamicScope.CLUSTER_WIDE),
    Setting("audit.retention.ms", SettingKind.LONG, 7 * _DAY_MS, "How long __audit keeps what was "
            "counted, if it is made anew; not in Kafka.", lower=_MINUTE_MS),
    Setting("audit.topic.num.partitions", SettingKind.INT, 8, "How many partitions __audit gets; "
            "not in Kafka.", lower=1),
    Setting("audit.topic.replication.factor", SettingKind.SHORT, 3, "How many replicas each "
            "partition of __audit gets; not in Kafka.", lower=1),
])
# fmt: on
