"""Which topics a subscription means at the moment: its names, or those that match its pattern.

A pattern has to match the whole name. Members of classic groups look for matches themselves, in the
metadata of all topics; in the consumer protocol the coordinator does.
"""

from __future__ import annotations

import re

from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.consumer.membership.membership import Subscription
from headwater.client.kafka_errors import InvalidRegularExpressionError


class SubscribedTopics:
    def __init__(self, values: SettingValues, metadata: ClusterMetadata) -> None:
        self._metadata = metadata
        self._excludes_internal = values.boolean("exclude.internal.topics")
        self._subscription = Subscription()
        self._expression: re.Pattern[str] | None = None
        #: What is subscribed to at the moment.
        self.names: frozenset[str] = frozenset()
        #: Whether the cluster's topics have been looked at, if that is needed.
        self.are_known = True

    @property
    def pattern(self) -> str | None:
        return self._subscription.pattern

    def subscribe(self, subscription: Subscription) -> bool:
        """Whether it means other topics than before; raises `InvalidRegularExpressionError`."""
        if subscription == self._subscription:
            return False
        pattern = subscription.pattern
        try:
            self._expression = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise InvalidRegularExpressionError(
                f"The pattern {pattern!r} cannot be used: {error}."
            ) from None
        self._subscription = subscription
        if self._expression is None:
            self.are_known = True
            self.names = subscription.topics
        else:
            self.are_known = False
            self.names = frozenset()
        return True

    def clear(self) -> None:
        self.subscribe(Subscription())

    def look(self) -> None:
        """There are new metadata: see which topics match."""
        if self._expression is None:
            return
        self.are_known = True
        self.names = frozenset(
            topic.name
            for topic in self._metadata.topics()
            if self._expression.fullmatch(topic.name)
            and not (topic.is_internal and self._excludes_internal)
        )
