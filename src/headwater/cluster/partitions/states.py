"""Writes the states of partitions to the metadata store, many of them at a time.

A store answers thousands of small transactions far slower than a few larger ones: so about a
hundred states make one transaction, and all transactions are sent before the first is answered. A
state is written on condition that its node has the version that the image knows, which is the
partition's epoch. If it has not, somebody else has written to the store, and the controller starts
over from what it finds there.

Which brokers hold a partition is no part of its state: it is in the topic's own node. Where that
changes too, as it does while a partition moves, both are one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.image import ClusterImage, PartitionImage, TopicImage
from headwater.cluster.node_documents import (
    PartitionState,
    TopicDocument,
    encode_partition_state,
    encode_topic,
)
from headwater.cluster.node_locations import partition_state_path, topic_path
from headwater.cluster.store.metadata_store import Set

#: How many states one transaction changes.
STATES_PER_MULTI: Final = 100
#: How many partitions come or go in one transaction: with the longest names, about 150 kB.
PARTITIONS_PER_MULTI: Final = 200

States = Mapping[TopicPartition, PartitionImage]


class WrittenStates(NamedTuple):
    """What of the states is in the store now, and why the rest is not."""

    states: dict[TopicPartition, PartitionImage]
    error: KafkaError | None


class StateEncoder:
    """Encodes the states of one controller, each distinct one once."""

    def __init__(self, controller_epoch: int) -> None:
        self._controller_epoch = controller_epoch
        self._known: dict[tuple[int, int, tuple[int, ...]], bytes] = {}

    def encode(self, partition: PartitionImage) -> bytes:
        key = (partition.leader, partition.leader_epoch, partition.isr)
        data = self._known.get(key)
        if data is None:
            state = PartitionState(*key, self._controller_epoch)
            data = self._known[key] = encode_partition_state(state)
        return data


async def write_states(
    writes: ControllerWrites, states: States, image: ClusterImage
) -> WrittenStates:
    """Write the new states in place of those that the image has.

    Some of them may fail while others are done.
    """
    pen = _StatePen(writes)
    moved: dict[str, dict[int, PartitionImage]] = {}
    names: list[TopicPartition] = []
    for name, state in states.items():
        before = image.topics[name.topic].partitions[name.partition]
        if _holders(before) == _holders(state):
            names.append(name)
        else:
            moved.setdefault(name.topic, {})[name.partition] = state
    outcomes = [
        await pen.write(names, states),
        *await asyncio.gather(
            *(pen.write_moved(image.topics[topic], each) for topic, each in moved.items())
        ),
    ]
    error = next((each.error for each in outcomes if each.error is not None), None)
    if error is not None and error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
        error = writes.give_up(f"A partition's state is not what it was: {error}")
    return WrittenStates({name: each for one in outcomes for name, each in one[0].items()}, error)


class _StatePen:
    def __init__(self, writes: ControllerWrites) -> None:
        self._writes = writes
        self._encode = StateEncoder(writes.epoch).encode

    async def write(self, names: Sequence[TopicPartition], states: States) -> WrittenStates:
        """The states of partitions that stay where they are."""
        batches = [
            tuple(names[start : start + STATES_PER_MULTI])
            for start in range(0, len(names), STATES_PER_MULTI)
        ]
        errors = await self._writes.multi_each(
            {batch: [self._set(each, states[each]) for each in batch] for batch in batches}
        )
        done = {each: states[each] for batch in batches if batch not in errors for each in batch}
        return WrittenStates(done, next(iter(errors.values()), None))

    async def write_moved(
        self, topic: TopicImage, states: Mapping[int, PartitionImage]
    ) -> WrittenStates:
        """Those of a topic that get other replicas, one transaction after the other."""
        done: dict[TopicPartition, PartitionImage] = {}
        numbers = sorted(states)
        for start in range(0, len(numbers), PARTITIONS_PER_MULTI):
            some = {each: states[each] for each in numbers[start : start + PARTITIONS_PER_MULTI]}
            topic = topic.with_partitions(some)
            document = TopicDocument.of(topic.topic_id, topic.partitions)
            named = {TopicPartition(topic.name, number): each for number, each in some.items()}
            try:
                await self._writes.multi(
                    [
                        Set(topic_path(topic.name), encode_topic(document)),
                        *(self._set(name, each) for name, each in named.items()),
                    ]
                )
            except KafkaError as error:
                return WrittenStates(done, error)
            done |= named
        return WrittenStates(done, None)

    def _set(self, name: TopicPartition, state: PartitionImage) -> Set:
        return Set(partition_state_path(*name), self._encode(state), state.partition_epoch - 1)


def _holders(partition: PartitionImage) -> tuple[object, ...]:
    return partition.replicas, partition.adding, partition.removing, partition.throttle
