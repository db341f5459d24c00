"""Where a broker shows its metrics, and in how much detail."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

# fmt: off
METRICS_SETTINGS: Final = SettingTable("broker", [
    Setting("metrics.listen", SettingKind.STRING, "", "The host:port where /metrics is served in "
            "Prometheus' text format, and /health and /ready for probes; empty for nowhere; not in "
            "Kafka."),
    Setting("metrics.partitions.max", SettingKind.INT, 2_000, "With more partitions than this a "
            "broker shows the sizes and offsets of its logs by topic; not in Kafka.",
            lower=0, dynamic=DynamicScope.CLUSTER_WIDE),
])
# fmt: on
