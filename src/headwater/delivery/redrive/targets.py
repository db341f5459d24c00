"""The topics that letters go to: whether they are there, and may be gone to.

Headers name them, and headers lie. A producer would have a missing topic created where the cluster
does so automatically, so each is looked up first; a dead-letter topic is never a target.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.durations import parse_duration_ms
from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.admin.configs import ConfigResource, ResourceType
from headwater.delivery.redrive.letters.topic_overview import DEAD_LETTERS_SETTING
from headwater.wire.delayed.retry_topics import queue_prefix, retry_queue, retry_topic

_DELAY_MODE: Final = "delay.mode"
_RETRY_MODE: Final = "retry"
_RETRY_GROUP: Final = "retry.group"
_RETRY_DELAYS: Final = "retry.delays"
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
        self._retry_topics: dict[str, str] = {}

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

    def retry_topic(self, group: str) -> str:
        """Where a group gets back what failed, as `look_up_groups` found it."""
        return self._retry_topics[group]

    async def look_up_groups(self, groups: Collection[str]) -> None:
        """A group has one retry topic, or a queue for each delay: then the first is meant.

        Who has both has its workers send to the queues, and so do we.
        """
        missing = [group for group in dict.fromkeys(groups) if group not in self._retry_topics]
        if not missing:
            return
        if len(self._retry_topics) + len(missing) > _KNOWN_MAX:
            self._retry_topics.clear()
            missing = list(dict.fromkeys(groups))
        prefixes = tuple(map(queue_prefix, missing))
        topics = [topic.name for topic in await self._admin.list_topics()]
        settings = await self._settings([name for name in topics if name.startswith(prefixes)])
        first: dict[str, str] = {}
        for name, values in settings.items():
            group = values.get(_RETRY_GROUP) or ""
            delays = (values.get(_RETRY_DELAYS) or "").split(",")
            # A topic that only begins like a queue may be the retry topic of another group.
            if values.get(_DELAY_MODE) == _RETRY_MODE and name.startswith(queue_prefix(group)):
                queue = retry_queue(group, parse_duration_ms(delays[0]))
                first[group] = queue if queue in settings else first.get(group, name)
        for group in missing:
            self._retry_topics[group] = first.get(group, retry_topic(group))

    async def _settings(self, topics: Collection[str]) -> dict[str, dict[str, str | None]]:
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        described = await self._admin.describe_configs(
            resources, names=[_DELAY_MODE, _RETRY_GROUP, _RETRY_DELAYS, DEAD_LETTERS_SETTING]
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
