"""What a consumer reads: topics or a pattern with a group, or partitions by choice.

Sans-io, owned by the loop of the consumer's core. The three ways exclude each other, and whoever
mixes them is told so in one sentence. With a group the assignment is what rebalances make it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headwater.base.ids import TopicPartition, validate_topic_name
from headwater.client.consumer.errors import (
    NotAssignedError,
    SubscriptionError,
)
from headwater.client.consumer.fetching.partition_state import PartitionState
from headwater.client.consumer.membership.membership import Subscription
from headwater.client.given_items import given_names, given_partitions

_MIXED = (
    "A consumer reads topics by name, topics by pattern, or partitions that it was assigned, and "
    "this one {}: call unsubscribe() first."
)


class SubscriptionState:
    def __init__(self) -> None:
        self.subscription = Subscription()
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._is_manual = False
        #: Whether somebody has said what to read. Every poll asks.
        self.is_chosen = False

    # -- the three ways --------------------------------------------------------------------------

    @property
    def is_subscribed(self) -> bool:
        """Whether a group decides about the assignment."""
        return self.subscription != Subscription()

    @property
    def is_manual(self) -> bool:
        return self._is_manual

    def subscribe(self, topics: Iterable[str] | None, pattern: str | None) -> Subscription:
        """Take over what is to be read; the partitions follow from rebalances."""
        names = frozenset(given_names(topics or ()))
        if not names and pattern is None:
            raise SubscriptionError(
                "Give topics or a pattern. To read nothing, call unsubscribe()."
            )
        if names and pattern is not None:
            raise SubscriptionError("Subscribe to topics by name or to a pattern, not to both.")
        if self._is_manual:
            raise SubscriptionError(_MIXED.format("has been assigned partitions"))
        if pattern is not None:
            if self.subscription.topics:
                raise SubscriptionError(_MIXED.format("has subscribed by name"))
            if not isinstance(pattern, str):
                raise TypeError(f"The pattern cannot be {pattern!r}: it must be text.")
            try:
                re.compile(pattern)
            except re.error as error:
                raise SubscriptionError(f"The pattern {pattern!r} is not valid: {error}.") from None
        elif self.subscription.pattern is not None and names:
            raise SubscriptionError(_MIXED.format("has subscribed to a pattern"))
        for name in sorted(names):
            validate_topic_name(name)
        self.subscription = Subscription(names, pattern)
        self.is_chosen = True
        return self.subscription

    def assign(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Read these and no others; returns those that are not read any more."""
        if self.is_subscribed:
            raise SubscriptionError(_MIXED.format("has subscribed to topics"))
        wanted = list(dict.fromkeys(given_partitions(partitions)))
        for name, number in wanted:
            validate_topic_name(name)
            if number < 0:
                raise SubscriptionError(f"Topic {name!r} has no partition {number}.")
        self._is_manual = self.is_chosen = bool(wanted)
        removed = [partition for partition in self._partitions if partition not in set(wanted)]
        self.remove(removed)
        self.add(wanted)
        return removed

    def unsubscribe(self) -> list[TopicPartition]:
        """Read nothing; returns what was read."""
        removed = list(self._partitions)
        self.subscription = Subscription()
        self._is_manual = self.is_chosen = False
        self._partitions.clear()
        return removed

    # -- the assignment --------------------------------------------------------------------------

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition not in self._partitions:
                self._partitions[partition] = PartitionState(partition)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._partitions.pop(partition, None)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        return self._partitions

    def states(self) -> list[PartitionState]:
        return list(self._partitions.values())

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition that is read; raises `NotAssignedError` for others."""
        state = self._partitions.get(partition)
        if state is None:
            raise NotAssignedError(f"{partition} is not assigned to this consumer.")
        return state

    def chosen(self, partitions: Iterable[TopicPartition] | None) -> list[PartitionState]:
        """The states of these partitions, or of all."""
        if partitions is None:
            return self.states()
        return [self.state(partition) for partition in given_partitions(partitions)]

    def paused(self) -> set[TopicPartition]:
        return {partition for partition, state in self._partitions.items() if state.is_paused}

    def topics(self) -> set[str]:
        """All whose metadata are needed, as far as names are known."""
        return {partition.topic for partition in self._partitions} | self.subscription.topics
