"""The topics that letters go to: whether they are there, and may be gone to.

Headers name them, and headers lie. A producer would have a missing topic created where the cluster
does so automatically, so each is looked up first; a dead-letter topic is never a target.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.configs import ConfigResource, ResourceType

DEAD_LETTERS_SETTING: Final = "errors.deadletterqueue.group.enable"
_DELAY_MODE: Final = "delay.mode"
_RETRY_MODE: Final = "retry"
_INTERNAL: Final = "__"
#: Lying headers could name topics without end.
_KNOWN_MAX: Final = 10_000


class Target(NamedTuple):
    partition_count: int
    is_retry: bool
    is_dead_letter: bool


class Targets:
    """Remembers what was looked up, for as long as a task runs."""

    def __init__(self, admin: AsyncAdmin) -> None:
        self._admin = admin
        self._known: dict[str, Target | KafkaError] = {}

    def known(self, topic: str) -> Target | KafkaError:
        """What `look_up` found."""
        return self._known[topic]

    async def look_up(self, topics: Collection[str]) -> None:
        missing = [topic for topic in dict.fromkeys(topics) if topic not in self._known]
        if not missing:
            return
        if len(self._known) + len(missing) > _KNOWN_MAX:
            self._known.clear()
            missing = list(dict.fromkeys(topics))
        named = [topic for topic in missing if not topic.startswith(_INTERNAL)]
        for topic in missing:
            self._known[topic] = InvalidConfigError(f"{topic!r} is an internal topic.")
        described = await self._admin.describe_topics(named)
        settings = await self._settings([t for t in named if not _failed(described[t])])
        for topic in named:
            info = described[topic]
            if isinstance(info, KafkaError):
                self._known[topic] = info
                continue
            values = settings[topic]
            self._known[topic] = Target(
                len(info.partitions),
                values.get(_DELAY_MODE) == _RETRY_MODE,
                values.get(DEAD_LETTERS_SETTING) == "true",
            )

    async def _settings(self, topics: Collection[str]) -> dict[str, dict[str, str | None]]:
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        described = await self._admin.describe_configs(
            resources, names=[_DELAY_MODE, DEAD_LETTERS_SETTING]
        )
        # Who may not see settings may still write: then names are all there is to go by.
        return {
            resource.name: {}
            if isinstance(entries, KafkaError)
            else {entry.name: entry.value for entry in entries}
            for resource, entries in described.items()
        }


def _failed(outcome: object) -> bool:
    return isinstance(outcome, KafkaError)
