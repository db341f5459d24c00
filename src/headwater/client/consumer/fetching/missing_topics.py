"""Warns of what a consumer is to read and the cluster does not have: a name may be misspelt.

Nothing is wrong with waiting for a topic that comes later, so this is a line in the log and no
error. There is one for each topic, partition or pattern, and another after a while if it is still
missing. A topic that the cluster may be creating at our request gets a moment to appear.

Sans-io, owned by the loop of the consumer's core.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.client.errors import UnknownTopicError

_logger = logging.getLogger("headwater.client")

#: How long a cluster that creates topics by itself may take for one.
CREATION_S: Final = 1.0
#: After how long it is said again.
AGAIN_S: Final = 300.0

_LATER = "nothing is read from it until it is created"


@dataclass(slots=True)
class _Missing:
    since_s: float
    told_s: float | None = None


class MissingTopics:
    def __init__(
        self,
        subscription: SubscriptionState,
        metadata: ClusterMetadata,
        upkeep: MetadataUpkeep,
        *,
        may_create: bool,
        excludes_internal: bool,
    ) -> None:
        self._subscription = subscription
        self._metadata = metadata
        self._upkeep = upkeep
        self._may_create = may_create
        self._excludes_internal = excludes_internal
        #: By what would be said of it.
        self._missing: dict[str, _Missing] = {}

    def look(self, now_s: float) -> None:
        """The metadata are others, or what is to be read is."""
        found = self._missing_topics() | self._missing_partitions() | self._idle_pattern()
        self._missing = {text: self._missing.get(text) or _Missing(now_s) for text in sorted(found)}
        for text, missing in self._missing.items():
            if missing.told_s is None:
                is_due = now_s >= missing.since_s + found[text]
            else:
                is_due = now_s >= missing.told_s + AGAIN_S
            if is_due:
                missing.told_s = now_s
                _logger.warning("%s", text)

    def _missing_topics(self) -> dict[str, float]:
        """What to say of each, and how long to wait before that."""
        pause_s = CREATION_S if self._may_create else 0.0
        subscription = self._subscription
        if subscription.is_manual:
            what, names = "is assigned", {name for name, _ in subscription.partitions}
        else:
            what, names = "has subscribed", set(subscription.subscription.topics)
        text = "There is no topic {!r}, to which a consumer {}: {}. Check the name."
        return {
            text.format(name, what, _LATER): pause_s
            for name in names
            if self._metadata.is_missing(name)
        }

    def _missing_partitions(self) -> dict[str, float]:
        """Of a group's assignment the coordinator knows better than metadata that may be old."""
        texts: dict[str, float] = {}
        if self._subscription.is_manual:
            for name, number in self._subscription.partitions:
                topic = self._metadata.topic(name)
                try:
                    if topic is not None:
                        topic.partition(number)
                except UnknownTopicError as error:
                    texts[f"{error} A consumer is assigned to it: {_LATER}."] = 0.0
        return texts

    def _idle_pattern(self) -> dict[str, float]:
        pattern = self._subscription.subscription.pattern
        if pattern is None or not self._upkeep.has_all:
            return {}
        matches = re.compile(pattern).fullmatch
        for topic in self._metadata.topics():
            if matches(topic.name) and not (topic.is_internal and self._excludes_internal):
                return {}
        return {
            f"No topic matches the pattern {pattern!r}, to which a consumer has subscribed: "
            "nothing is read until one is created that does. Check the pattern.": 0.0
        }
