"""Metrics that clients push: whether they are taken, how much of them, and where they go."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

# fmt: off
TELEMETRY_SETTINGS: Final = SettingTable("broker", [
    Setting("telemetry.enable", SettingKind.BOOLEAN, True, "Whether clients may push their metrics "
            "(KIP-714), where metrics.listen shows them or telemetry.otlp.endpoint gets them; not "
            "in Kafka."),
    Setting("telemetry.max.bytes", SettingKind.INT, 1 << 20, "The most that a client may push at "
            "once, as it is sent; decompressed it may be eight times as much.", lower=1),
    Setting("telemetry.series.max", SettingKind.INT, 10_000, "How many series of clients' metrics "
            "a broker shows at most; not in Kafka.", lower=0, upper=1_000_000,
            dynamic=DynamicScope.CLUSTER_WIDE),
    Setting("telemetry.otlp.endpoint", SettingKind.STRING, "", "Where metrics of clients are "
            "passed on to by OTLP over HTTP, such as http://localhost:4318/v1/metrics; empty for "
            "nowhere; not in Kafka."),
])
# fmt: on
