"""The topic of stages' rows, as it is made where it is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from headwater.client.admin import Admin, NewTopic
from headwater.client.kafka_errors import TopicAlreadyExistsError
from headwater.delivery.audit.stage_rows import STAGES_TOPIC

_RETENTION_MS: Final = 7 * 24 * 3600 * 1000


def ensure_stages_topic(admin_config: Mapping[str, object], topic: str = STAGES_TOPIC) -> None:
    """Make the topic if it is not there."""
    configs = {"cleanup.policy": "compact,delete", "retention.ms": str(_RETENTION_MS)}
    with Admin(admin_config) as admin, contextlib.suppress(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 1, configs=configs)])
