"""The trace: which share of records clients write about, and the topic that they write to."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

_DAY_MS: Final = 86_400_000
#: What `headwater serve` has where nobody chose it and the broker stands alone on its own store.
DEVELOPMENT_SAMPLE: Final = "1.0"

# fmt: off
TRACE_SETTINGS: Final = SettingTable("broker", [
    Setting("trace.sample", SettingKind.DOUBLE, 0.01, "Which share of a topic's records is traced "
            "by clients that trace (trace.enable), from 0 to 1. headwater serve without ZooKeeper, "
            "as in development, traces all unless this is set; not in Kafka.", lower=0, upper=1,
            dynamic=DynamicScope.CLUSTER_WIDE, topic_name="trace.sample"),
    Setting("trace.retention.ms", SettingKind.LONG, 3 * _DAY_MS, "How long __trace keeps what "
            "clients wrote, if it is made anew; not in Kafka.", lower=60_000),
    Setting("trace.topic.num.partitions", SettingKind.INT, 8, "How many partitions __trace gets; "
            "not in Kafka.", lower=1),
    Setting("trace.topic.replication.factor", SettingKind.SHORT, 3, "How many replicas each "
            "partition of __trace gets; not in Kafka.", lower=1),
])
# fmt: on
