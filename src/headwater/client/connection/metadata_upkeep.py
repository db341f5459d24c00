"""Keeps a client's metadata fresh: asked for when somebody needs it, and once in a while anyway.

Sans-io. Parts of the client name the topics that they are interested in, and say when they found
the metadata wrong; one request at a time is under way, with a pause after one that failed or that
changed nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import refusal
from headwater.client.machines.ask import Ask
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class MetadataUpkeep:
    def __init__(
        self,
        metadata: ClusterMetadata,
        *,
        max_age_s: float,
        policy: RetryPolicy,
        generator: random.Random,
        allow_auto_creation: bool,
    ) -> None:
        self._metadata = metadata
        self._max_age_s = max_age_s
        self._policy = policy
        self._generator = generator
        self._allow_auto_creation = allow_auto_creation
        self._topics: set[str] = set()
        #: Whether all topics are of interest, as they are to a subscription by pattern.
        self.wants_all = False
        #: Whether the last answer was about all topics.
        self.has_all = False
        self._is_stale = True
        self._is_under_way = False
        self._attempt_count = 0
        self._not_before_s = 0.0
        self._learned_s: float | None = None
        #: The error of the last attempt, None since one succeeded.
        self.failure: KafkaError | None = None
        #: Grows with every answer.
        self.version = 0
        self._listeners: list[Callable[[], None]] = []

    @property
    def topics(self) -> Collection[str]:
        return self._topics

    def add_topics(self, names: Collection[str]) -> None:
        """Be interested in these too, and ask at once for those that are not known."""
        self._want(names, self._topics.union(names))

    def set_topics(self, names: Collection[str]) -> None:
        """Be interested in these and no others, and ask at once for those that are not known."""
        self._want(names, set(names))

    def _want(self, names: Collection[str], topics: set[str]) -> None:
        is_new = not self._topics.issuperset(names)
        self._topics = topics
        if any(self._metadata.topic(name) is None for name in names):
            self._is_stale = True
            if is_new and self.failure is None:
                # The pause is for who asks the same again, and nobody has asked for these.
                self._not_before_s = 0.0

    def is_stale(self) -> None:
        """Somebody found the metadata wrong: ask again, after a pause if that was just done."""
        self._is_stale = True

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call it after every answer that was learned from."""
        self._listeners.append(listener)

    def asks(self, now_s: float) -> Sequence[Ask]:
        if self._is_under_way or now_s < self._not_before_s:
            return ()
        if not self._is_stale and now_s < self._due_s():
            return ()
        self._is_under_way = True
        self._is_stale = False
        names = None if self.wants_all else sorted(self._topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=self._allow_auto_creation,
        )
        return [
            Ask(
                request,
                None,
                lambda answer, at_s: self._answered(names, answer, at_s),
                self._failed,
            )
        ]

    def wake_at_s(self, now_s: float) -> float | None:
        if self._is_under_way:
            return None
        return self._not_before_s if self._is_stale else max(self._due_s(), self._not_before_s)

    def _due_s(self) -> float:
        return 0.0 if self._learned_s is None else self._learned_s + self._max_age_s

    def _answered(self, names: list[str] | None, answer: MetadataResponse, now_s: float) -> None:
        if answer.error_code:
            self._failed(refusal(answer.error_code, None, "The cluster's metadata"), now_s)
            return
        self._is_under_way = False
        self._learned_s = now_s
        self.failure = None
        self._metadata.learn(answer, names)
        self.has_all = names is None
        self.version += 1
        # Whoever finds them wrong at once again is told the same for a moment, which grows while
        # there is a topic that the cluster does not know.
        is_known = all(self._metadata.topic(name) is not None for name in names or ())
        self._attempt_count = 1 if is_known else self._attempt_count + 1
        self._not_before_s = now_s + self._policy.pause_s(self._attempt_count, self._generator)
        if names is not None and not self._topics.issubset(names):
            self._not_before_s = 0.0  # Topics were added while this was under way.
        for listener in self._listeners:
            listener()

    def _failed(self, error: KafkaError, now_s: float) -> None:
        self._is_under_way = False
        self._is_stale = True
        self.failure = error
        self._attempt_count += 1
        self._not_before_s = now_s + self._policy.pause_s(self._attempt_count, self._generator)
