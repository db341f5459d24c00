"""What the driver asks a cluster: which partitions there are, and their offsets.

Connected on first use and kept until `close`: a streaming query asks before every micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final, TypeVar

from headwater.base.errors import KafkaError, NetworkError
from headwater.base.ids import TopicPartition
from headwater.client.admin import Admin, OffsetTime, Outcomes, require_all
from headwater.client.admin.offsets import NO_OFFSET
from headwater.client.connection.retry import may_retry
from headwater.client.errors import NoBrokerError
from headwater.client.fetch.isolation import IsolationLevel
from headwater.client.kafka_errors import UnknownTopicOrPartitionError
from headwater.pipeline.connector.source_settings import SourceSettings

#: How long a cluster may be away between two questions, and how often it is looked for.
_AWAY_S: Final = 60.0
_AWAY_INTERVAL_S: Final = 0.1

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Offsets = dict[TopicPartition, int]


class ClusterOffsets:
    """An `OffsetSource`."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._isolation_level = (
            IsolationLevel.READ_COMMITTED
            if settings.is_committed_only
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._admin: Admin | None = None

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def partitions(self, *, are_needed: bool) -> list[TopicPartition]:
        """Those that are to be read and exist; raises if one of `are_needed` ones does not."""
        choice = self._settings.choice
        if choice.pattern is not None:
            # Only here, because a producer comes with it.
            from headwater.pipeline.sink.exactly_once.decision_log import DECISIONS_TOPIC

            found = self._retried(lambda admin: admin.list_topics())
            topics = {
                topic.name: topic
                for topic in found
                if not topic.is_internal
                and topic.name != DECISIONS_TOPIC
                and choice.matches(topic.name)
            }
        else:
            names = choice.topics or {each.topic for each in choice.partitions or ()}
            outcomes = self._retried(lambda admin: admin.describe_topics(sorted(names)))
            topics = require_all(outcomes if are_needed else _without_unknown(outcomes))
        existing = [
            TopicPartition(name, info.partition)
            for name, topic in sorted(topics.items())
            for info in topic.partitions
        ]
        if choice.partitions is None:
            return existing
        for each in choice.partitions if are_needed else ():
            topics[each.topic].partition(each.partition)
        return [each for each in existing if each in choice.partitions]

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._listed(dict.fromkeys(partitions, int(OffsetTime.EARLIEST)))

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._listed(dict.fromkeys(partitions, int(OffsetTime.LATEST)))

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        times_ms = dict.fromkeys(partitions, int(OffsetTime.LATEST))
        return self._listed(times_ms, IsolationLevel.READ_UNCOMMITTED)

    def existing(self, *, is_readable: bool = True) -> Offsets:
        """The ends of what can be read, or of all there is, of the partitions that exist now."""
        times_ms = dict.fromkeys(self.partitions(are_needed=False), int(OffsetTime.LATEST))
        level = self._isolation_level if is_readable else IsolationLevel.READ_UNCOMMITTED
        return self._listed(times_ms, level, are_needed=False)

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> Offsets:
        return {
            each: offset for each, offset in self._listed(times_ms).items() if offset != NO_OFFSET
        }

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        if not partitions:
            return {}
        outcomes = self._retried(
            lambda admin: admin.list_group_offsets([group], partitions=partitions)
        )
        return {each: found.offset for each, found in require_all(outcomes)[group].items()}

    def _listed(
        self,
        times_ms: Mapping[TopicPartition, int],
        isolation_level: IsolationLevel | None = None,
        *,
        are_needed: bool = True,
    ) -> Offsets:
        """The offsets at these times; partitions that have just gone are left out unless needed."""
        if not times_ms:
            return {}
        level = self._isolation_level if isolation_level is None else isolation_level

        def ask(admin: Admin) -> Offsets:
            outcomes = admin.list_offsets(times_ms, isolation_level=level)
            if not are_needed:
                outcomes = _without_unknown(outcomes)
            return {each: listed.offset for each, listed in require_all(outcomes).items()}

        return self._retried(ask)

    def _retried(self, ask: Callable[[Admin], Result]) -> Result:
        """The answer; what may pass is tried again as often as the options say.

        A cluster that has answered before and is away now is waited for: brokers start anew.
        """
        left = self._settings.lookup_retries
        interval_s = self._settings.lookup_interval_ms / 1000
        away_until_s: float | None = None
        while True:
            try:
                if self._admin is None:
                    self._admin = Admin(self._settings.admin_settings())
                return ask(self._admin)
            except (NoBrokerError, NetworkError):
                now_s = time.monotonic()
                away_until_s = away_until_s or now_s + _AWAY_S
                if self._admin is None or now_s >= away_until_s:
                    raise
                time.sleep(max(interval_s, _AWAY_INTERVAL_S))
            except KafkaError as error:
                if left <= 0 or not may_retry(error):
                    raise
                left -= 1
                time.sleep(interval_s)


def _without_unknown(outcomes: Outcomes[Key, Result]) -> Outcomes[Key, Result]:
    return {
        key: outcome
        for key, outcome in outcomes.items()
        if not isinstance(outcome, UnknownTopicOrPartitionError)
    }
