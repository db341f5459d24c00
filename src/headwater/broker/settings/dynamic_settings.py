"""What a single setting must meet to be set while brokers run, whoever sets it and wherever it is
read. What only several settings together can get wrong is in `config_changes`.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import DynamicScope, Setting, SettingError, SettingValue
from headwater.broker.settings.rows.network import OVERRIDES, parse_host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS

_REMOTE_STORAGE: Final = "remote.storage.enable"
_THROTTLED: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


def check_broker_setting(name: str, text: str, *, is_cluster_wide: bool) -> None:
    """Whether a broker, or all brokers, can be given this; raises `KafkaError`."""
    row = BROKER_SETTINGS[name]
    check_dynamic(row, is_cluster_wide=is_cluster_wide)
    row.parse(text)
    if name == OVERRIDES:
        parse_host_limits(text)


def check_dynamic(row: Setting, *, is_cluster_wide: bool) -> None:
    """Whether the setting may be changed while brokers run."""
    if row.dynamic is DynamicScope.READ_ONLY:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The setting {row.name} cannot be changed while the broker runs; set it in its "
            "configuration and start it again.",
        )
    if row.dynamic is DynamicScope.PER_BROKER and is_cluster_wide:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The setting {row.name} can be changed for single brokers only, not for all at once.",
        )


def check_topic_setting(name: str, text: str) -> None:
    """Whether a topic can be given this; raises `SettingError`."""
    value = TOPIC_SETTINGS[name].parse(text)
    if name == _REMOTE_STORAGE and value:
        raise SettingError(
            f"The setting {name} cannot be true, because there is no tiered storage."
        )
    if name in _THROTTLED and not _are_replicas(value):
        raise SettingError(
            f"The setting {name} cannot be {text!r}: it must be * or a list of partition:broker."
        )


def _are_replicas(value: SettingValue) -> bool:
    items = value if isinstance(value, tuple) else ()
    return items == ("*",) or all(_REPLICA.fullmatch(item) for item in items)
