"""Topics: one that was created is there and is the same one; one that was deleted is not."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headwater.sim.histories.history import History, PropertyViolated


def check_topics(history: History, topics: Mapping[str, uuid.UUID]) -> None:
    for name, topic_id in history.topics.items():
        if topics.get(name) != topic_id:
            raise PropertyViolated(
                f"created topics stay: {name} should have the id {topic_id} and has "
                f"{topics.get(name)}"
            )
    for name, topic_id in topics.items():
        if topic_id in history.deleted:
            raise PropertyViolated(f"deleted topics stay away: {name} is back as {topic_id}")
