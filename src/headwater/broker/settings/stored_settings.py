"""Which of the settings in the metadata store hold, and which are ignored.

A setting is checked before it is stored. But another release may have stored it, or somebody with a
ZooKeeper client, or a peer that is no broker. So it is checked again where it is read. One that no
row knows, that cannot be changed while brokers run, or whose value is not allowed, is ignored with
one line in the log: the broker goes by what holds without it. It stays in the store, where an
incremental change can delete it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.settings import SettingError
from headwater.broker.settings.client_metrics import check_client_metrics_setting
from headwater.broker.settings.dynamic_settings import check_broker_setting, check_topic_setting
from headwater.broker.settings.group_settings import check_group_setting
from headwater.cluster.node_locations import (
    broker_config_path,
    client_metrics_config_path,
    group_config_path,
    topic_config_path,
)

_logger = logging.getLogger(__name__)

#: How much of a name is shown: nobody has checked it.
_NAME_LENGTH_MAX: Final = 100


class StoredSettings:
    """Takes out what does not hold, and says so once; its owner is `BrokerSettings`."""

    def __init__(self) -> None:
        #: By the path of a node, the settings in it that are ignored; no name: all together.
        self._ignored: dict[str, dict[str, str]] = {}

    def of_broker(self, broker_id: int | None, texts: Mapping[str, str]) -> dict[str, str]:
        """What holds of the settings of a broker, or with None of all brokers."""
        is_cluster_wide = broker_id is None
        return self._valid(
            broker_config_path(broker_id),
            texts,
            lambda name, text: check_broker_setting(name, text, is_cluster_wide=is_cluster_wide),
        )

    def of_topic(self, topic: str, texts: Mapping[str, str]) -> dict[str, str]:
        """What holds of the settings of a topic."""
        return self._valid(topic_config_path(topic), texts, check_topic_setting)

    def of_group(self, group_id: str, texts: Mapping[str, str]) -> dict[str, str]:
        """What holds of the settings of a group."""
        return self._valid(group_config_path(group_id), texts, check_group_setting)

    def of_client_metrics(self, name: str, texts: Mapping[str, str]) -> dict[str, str]:
        """What holds of a subscription to the metrics of clients."""
        return self._valid(client_metrics_config_path(name), texts, check_client_metrics_setting)

    def ignore_all(self, topic: str | None, error: SettingError) -> None:
        """The settings of a topic, or with None those of brokers, contradict each other."""
        path = broker_config_path(None) if topic is None else topic_config_path(topic)
        whose = "brokers" if topic is None else f"topic {topic}"
        ignored = self._ignored.setdefault(path, {})
        if ignored.get("") != str(error):
            ignored[""] = str(error)
            _logger.warning("The stored settings of %s are ignored, all of them: %s", whose, error)

    def forget_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._ignored.pop(topic_config_path(topic), None)

    def _valid(
        self, path: str, texts: Mapping[str, str], check: Callable[[str, str], None]
    ) -> dict[str, str]:
        before = self._ignored.pop(path, {})
        valid: dict[str, str] = {}
        ignored: dict[str, str] = {}
        for name, text in texts.items():
            try:
                check(name, text)
                valid[name] = text
            except KafkaError as error:
                ignored[name] = text
                if before.get(name) != text:
                    shown = name[:_NAME_LENGTH_MAX]
                    _logger.warning("The setting %s in %s is ignored: %s", shown, path, error)
        if "" in before and not ignored:
            ignored[""] = before[""]
        if ignored:
            self._ignored[path] = ignored
        return valid
