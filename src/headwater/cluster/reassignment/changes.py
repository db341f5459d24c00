"""Begins, turns and cancels the moves of partitions, and finds what the next steps are.

A move goes on whenever something has changed that it may have waited for: an ISR, the brokers that
live, or the controller itself. So the next steps are asked for after every change of partitions
(`partitions.changes`), of those that have changed, and after a change of brokers of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.controller.publisher import Publisher
from headwater.cluster.image.image import ClusterImage, PartitionImage
from headwater.cluster.partitions.changes import PartitionChanges
from headwater.cluster.partitions.leader_moves import Outcome
from headwater.cluster.reassignment.requests import (
    Reassignment,
    ReassignmentRules,
    moving_partitions,
    throttled_moves,
)
from headwater.cluster.reassignment.steps import next_state

MIN_ISR_SETTING: Final = "min.insync.replicas"


class Reassignments:
    """What the controller does about them; its methods must not run at the same time."""

    def __init__(
        self,
        publisher: Publisher,
        shutting_down: Callable[[], frozenset[int]],
        default_min_isr: int,
    ) -> None:
        self._publisher = publisher
        self._shutting_down = shutting_down
        #: Where neither the topic nor a dynamic setting of the cluster says otherwise.
        self._default_min_isr = default_min_isr

    async def alter(
        self,
        wanted: Sequence[Reassignment],
        partitions: PartitionChanges,
        *,
        factor_may_change: bool,
    ) -> Outcome:
        """By partition, why its move was not begun or cancelled, or None."""
        return await self._alter(wanted, partitions, factor_may_change=factor_may_change)

    async def throttle(self, throttle: int, partitions: PartitionChanges) -> Outcome:
        """Give all moves that are under way this throttle; by partition, why not, or None."""
        moves = throttled_moves(self._publisher.image, throttle)
        return await self._alter(moves, partitions, factor_may_change=True)

    async def _alter(
        self,
        wanted: Sequence[Reassignment],
        partitions: PartitionChanges,
        *,
        factor_may_change: bool,
    ) -> Outcome:
        rules = ReassignmentRules(self._publisher.image, factor_may_change=factor_may_change)
        counts = Counter(each.partition for each in wanted)
        outcome: Outcome = {}
        states: dict[TopicPartition, PartitionImage] = {}
        for each in wanted:
            name = each.partition
            try:
                if counts[name] > 1:
                    reason = f"{name} is in the request more than once."
                    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
                state = rules.plan(each)
                outcome[name] = None
                if state is not None:
                    states[name] = state
            except KafkaError as error:
                outcome[name] = error
        failure = await partitions.carry_out(states)
        return outcome if failure is None else outcome | dict.fromkeys(states, failure)

    def next_steps(
        self, names: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, PartitionImage]:
        """The next states of those of the partitions that can take a step; None: of all."""
        image = self._publisher.image
        live = image.brokers.keys()
        electable = live - self._shutting_down()
        states: dict[TopicPartition, PartitionImage] = {}
        for name, partition in (
            moving_partitions(image)
            if names is None
            else [(each, image.topics[each.topic].partitions[each.partition]) for each in names]
        ):
            if partition.is_moving:
                state = next_state(partition, live, electable, self._min_isr(image, name.topic))
                if state is not None:
                    states[name] = state
        return states

    def _min_isr(self, image: ClusterImage, topic: str) -> int:
        for configs in (image.topic_configs(topic), image.broker_configs(None)):
            text = configs.get(MIN_ISR_SETTING, "").strip()
            if text.isascii() and text.isdecimal() and len(text) < 10:
                return int(text)
        return self._default_min_isr
