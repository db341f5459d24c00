"""What a subscription to the metrics of clients says."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

_DYNAMIC = DynamicScope.CLUSTER_WIDE

# fmt: off
CLIENT_METRICS_SETTINGS: Final = SettingTable("client metrics", [
    Setting("interval.ms", SettingKind.INT, 300_000, "How often clients are to push metrics.",
            lower=100, upper=3_600_000, dynamic=_DYNAMIC),
    Setting("match", SettingKind.LIST, (), "Which clients: what all of these patterns match, each "
            "a name, = and a regular expression; empty for all.",
            dynamic=_DYNAMIC),
    Setting("metrics", SettingKind.LIST, (), "Which metrics: what the names begin with; * for all, "
            "empty for none.", dynamic=_DYNAMIC),
])
# fmt: on
