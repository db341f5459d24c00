"""The two whole tables: what a broker can be told, and what a topic can.

A topic setting that stems from a broker's takes its value where the topic sets none.
"""

from typing import Final

from headwater.base.settings import SettingTable
from headwater.broker.settings.rows.accepted import ACCEPTED_SETTINGS, TOPIC_ONLY_SETTINGS
from headwater.broker.settings.rows.audit import AUDIT_SETTINGS
from headwater.broker.settings.rows.cluster import CLUSTER_SETTINGS
from headwater.broker.settings.rows.coordinators import COORDINATOR_SETTINGS
from headwater.broker.settings.rows.dead_letters import DEAD_LETTER_SETTINGS
from headwater.broker.settings.rows.delay_service import DELAY_SERVICE_SETTINGS
from headwater.broker.settings.rows.identity import IDENTITY_SETTINGS
from headwater.broker.settings.rows.metrics import METRICS_SETTINGS
from headwater.broker.settings.rows.network import NETWORK_SETTINGS
from headwater.broker.settings.rows.replication import (
    REPLICATION_SETTINGS,
    TOPIC_THROTTLE_SETTINGS,
)
from headwater.broker.settings.rows.requests import REQUEST_SETTINGS
from headwater.broker.settings.rows.telemetry import TELEMETRY_SETTINGS
from headwater.broker.settings.rows.topic_creation import TOPIC_CREATION_SETTINGS
from headwater.broker.settings.rows.trace import TRACE_SETTINGS
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
    TELEMETRY_SETTINGS,
    AUDIT_SETTINGS,
    TRACE_SETTINGS,
    DELAY_SERVICE_SETTINGS,
    LOG_SETTINGS,
    ACCEPTED_SETTINGS,
)

TOPIC_SETTINGS: Final = SettingTable.combine(
    "topic",
    BROKER_SETTINGS.topic_table("topic"),
    DEAD_LETTER_SETTINGS,
    TOPIC_THROTTLE_SETTINGS,
    TOPIC_ONLY_SETTINGS,
)
