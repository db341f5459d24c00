"""How topics come and go, and what one gets that does not ask for anything."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable

_INT, _BOOLEAN, _CLASS = SettingKind.INT, SettingKind.BOOLEAN, SettingKind.CLASS

# fmt: off
TOPIC_CREATION_SETTINGS: Final = SettingTable("broker", [
    Setting("auto.create.topics.enable", _BOOLEAN, True, "Whether a topic comes into being when a "
            "client asks for it."),
    Setting("delete.topic.enable", _BOOLEAN, True, "Whether topics can be deleted."),
    Setting("num.partitions", _INT, 1, "How many partitions a topic gets if nobody says.",
            lower=1),
    Setting("default.replication.factor", _INT, 1, "How many replicas a topic's partitions get "
            "if nobody says.", lower=1),
    Setting("create.topic.policy.class.name", _CLASS, None, "A Python class, package.module:Class, "
            "whose validate() may refuse a new topic."),
])
# fmt: on
