"""The two whole tables: what a broker can be told, and what a topic can.

A topic setting that stems from a broker's takes its value where the topic sets none.
"""

from typing import Final

from headwater.base.settings import SettingTable
from headwater.broker.settings.accepted_settings import ACCEPTED_SETTINGS, TOPIC_ONLY_SETTINGS
from headwater.broker.settings.cluster_settings import CLUSTER_SETTINGS
from headwater.broker.settings.coordinator_settings import COORDINATOR_SETTINGS
from headwater.broker.settings.identity_settings import IDENTITY_SETTINGS
from headwater.broker.settings.metrics_settings import METRICS_SETTINGS
from headwater.broker.settings.network_settings import NETWORK_SETTINGS
from headwater.broker.settings.replication_settings import REPLICATION_SETTINGS
from headwater.broker.settings.request_settings import REQUEST_SETTINGS
from headwater.broker.settings.topic_creation_settings import TOPIC_CREATION_SETTINGS
from headwater.storage.log_settings import LOG_SETTINGS

BROKER_SETTINGS: Final = SettingTable.combine(
    "broker",
    IDENTITY_SETTINGS,
    NETWORK_SETTINGS,
    TOPIC_CREATION_SETTINGS,
    REQUEST_SETTINGS,
    REPLICATION_SETTINGS,
    CLUSTER_SETTINGS,
    COORDINATOR_SETTINGS,
    METRICS_SETTINGS,
    LOG_SETTINGS,
    ACCEPTED_SETTINGS,
)

TOPIC_SETTINGS: Final = SettingTable.combine(
    "topic", BROKER_SETTINGS.topic_table("topic"), TOPIC_ONLY_SETTINGS
)
