"""What a consumer group can be told, over what brokers say to all groups."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable, Synonym

_DYNAMIC = DynamicScope.CLUSTER_WIDE

# fmt: off
GROUP_SETTINGS: Final = SettingTable("group", [
    Setting("consumer.heartbeat.interval.ms", SettingKind.INT, 5_000, "How often members of the "
            "group are told to report, within what group.consumer.min.heartbeat.interval.ms and "
            "group.consumer.max.heartbeat.interval.ms allow.", lower=1, dynamic=_DYNAMIC,
            synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),)),
    Setting("consumer.session.timeout.ms", SettingKind.INT, 45_000, "How long a member may be "
            "silent, within what group.consumer.min.session.timeout.ms and "
            "group.consumer.max.session.timeout.ms allow.", lower=1, dynamic=_DYNAMIC,
            synonyms=(Synonym("group.consumer.session.timeout.ms"),)),
])
# fmt: on
