"""The heartbeats of a member of a group of the consumer protocol, and what each of them says.

A heartbeat leaves out what the coordinator knows already. After one whose answer did not come, it
is not known what the coordinator knows, so the next says everything again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

from headwater.base.errors import KafkaError
from headwater.client.connection.cluster_connection import Lane
from headwater.client.consumer.membership.membership import Subscription
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_JOINING: Final = 0

Owned = frozenset[tuple[uuid.UUID, int]]


class ConsumerHeartbeats:
    """`on_answer` and `on_failure` get what became of a heartbeat, unless it was stopped since."""

    def __init__(
        self,
        *,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        rack_id: str | None,
        rebalance_timeout_ms: int,
        server_assignor: str | None,
        coordinator: CoordinatorOf,
        timeout_s: float,
        on_answer: Callable[[ConsumerGroupHeartbeatResponse, float], None],
        on_failure: Callable[[KafkaError, float], None],
    ) -> None:
        self._group_id = group_id
        self.member_id = member_id
        self.epoch = _JOINING
        self._instance_id = instance_id
        self._rack_id = rack_id
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._server_assignor = server_assignor
        self._coordinator = coordinator
        self._timeout_s = timeout_s
        self._on_answer = on_answer
        self._on_failure = on_failure
        #: What the next heartbeat has to say.
        self._subscription = Subscription()
        self._owned: Owned = frozenset()
        #: What the coordinator has heard, None if that is not known.
        self._told_subscription: Subscription | None = None
        self._told_owned: Owned | None = None
        self._due_s: float | None = None
        self._is_under_way = False
        #: Something has changed while a heartbeat was under way: the next is due after it.
        self._is_hasty = False
        #: Which membership a heartbeat belongs to: late answers to earlier ones mean nothing.
        self._run = 0

    def join(self, now_s: float) -> None:
        """Begin a membership with nothing."""
        self.stop()
        self._owned = frozenset()
        self._due_s = now_s

    def stop(self) -> None:
        self._run += 1
        self.epoch = _JOINING
        self._due_s = None
        self._is_under_way = False
        self._is_hasty = False
        self._told_subscription = None
        self._told_owned = None

    def say_owned(self, owned: Owned, now_s: float) -> None:
        self._owned = owned
        if owned != self._told_owned:
            self._hasten(now_s)

    def say_subscription(self, subscription: Subscription, now_s: float) -> None:
        self._subscription = subscription
        if subscription != self._told_subscription:
            self._hasten(now_s)

    def _hasten(self, now_s: float) -> None:
        """There is something to say: do it at once."""
        if self._is_under_way:
            self._is_hasty = True
        elif self._due_s is not None:
            self._due_s = min(self._due_s, now_s)

    def say_all_again(self, due_s: float) -> None:
        self._told_subscription = None
        self._told_owned = None
        self._is_hasty = False
        self._due_s = due_s

    def asks(self, now_s: float) -> list[Ask]:
        if self._due_s is None or now_s < self._due_s:
            return []
        self._due_s = None
        self._is_under_way = True
        subscription, owned = self._subscription, self._owned
        return [
            Ask(
                self._request(),
                self._coordinator,
                partial(self._answered, self._run, subscription, owned),
                partial(self._failed, self._run),
                timeout_s=self._timeout_s,
                lane=Lane.COORDINATION,
            )
        ]

    def wake_at_s(self) -> float | None:
        return self._due_s

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self._instance_id,
        )
        told, subscription = self._told_subscription, self._subscription
        if told is None:
            request.rack_id = self._rack_id
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.server_assignor = self._server_assignor
        if told is None or told.topics != subscription.topics:
            request.subscribed_topic_names = sorted(subscription.topics)
        if subscription.pattern != (None if told is None else told.pattern):
            # No pattern any more is an empty one: null would mean "as before".
            request.subscribed_topic_regex = subscription.pattern or ""
        if self._told_owned != self._owned:
            request.topic_partitions = _entries(self._owned)
        return request

    def _answered(
        self,
        run: int,
        subscription: Subscription,
        owned: Owned,
        answer: ConsumerGroupHeartbeatResponse,
        now_s: float,
    ) -> None:
        if run != self._run:
            return
        self._is_under_way = False
        if answer.error_code == 0:
            self._told_subscription, self._told_owned = subscription, owned
            self.epoch = answer.member_epoch
            self.member_id = answer.member_id or self.member_id
            self._due_s = now_s if self._is_hasty else now_s + answer.heartbeat_interval_ms / 1000
            self._is_hasty = False
        self._on_answer(answer, now_s)

    def _failed(self, run: int, error: KafkaError, now_s: float) -> None:
        if run != self._run:
            return
        self._is_under_way = False
        self._on_failure(error, now_s)


def _entries(owned: Owned) -> list[TopicPartitions]:
    topics: dict[uuid.UUID, list[int]] = {}
    for topic_id, number in sorted(owned):
        topics.setdefault(topic_id, []).append(number)
    return [
        TopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in topics.items()
    ]
