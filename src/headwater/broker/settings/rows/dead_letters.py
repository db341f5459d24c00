"""What a topic says about dead letters."""

from typing import Final

from headwater.base.settings import DynamicScope, Setting, SettingKind, SettingTable

# fmt: off
DEAD_LETTER_SETTINGS: Final = SettingTable("topic", [
    Setting("errors.deadletterqueue.group.enable", SettingKind.BOOLEAN, False, "Whether brokers "
            "may write what a group has given up to the topic: only such a topic can be another's "
            "retry.dead.letter.topic.", dynamic=DynamicScope.CLUSTER_WIDE),
])
# fmt: on
