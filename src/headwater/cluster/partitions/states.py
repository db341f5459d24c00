"""Writes the states of partitions to the metadata store, many of them at a time.

A store answers thousands of small transactions far slower than a few larger ones: so about a
hundred states make one transaction, and all transactions are sent before the first is answered. A
state is written on condition that its node has the version that the image knows, which is the
partition's epoch. If it has not, somebody else has written to the store, and the controller starts
over from what it finds there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.image import PartitionImage
from headwater.cluster.node_documents import PartitionState, encode_partition_state
from headwater.cluster.node_locations import partition_state_path
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


async def write_states(writes: ControllerWrites, states: States) -> WrittenStates:
    """Write the new states; some of them may fail while others are done."""
    encode = StateEncoder(writes.epoch).encode
    names = list(states)
    batches = [
        tuple(names[start : start + STATES_PER_MULTI])
        for start in range(0, len(names), STATES_PER_MULTI)
    ]
    transactions = {
        batch: [
            Set(partition_state_path(*each), encode(states[each]), states[each].partition_epoch - 1)
            for each in batch
        ]
        for batch in batches
    }
    errors = await writes.multi_each(transactions)
    error = next(iter(errors.values()), None)
    if error is not None and error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
        error = writes.give_up(f"A partition's state is not what it was: {error}")
    done = {each: states[each] for batch in transactions if batch not in errors for each in batch}
    return WrittenStates(done, error)
