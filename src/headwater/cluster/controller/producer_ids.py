"""Gives out producer ids in blocks, so that no two producers of a cluster ever share one.

The last block is kept in the metadata store, and the next one begins behind it. It is written
before anybody gets an id from it: what a crash leaves unused is lost, but nothing is used twice.
"""

from __future__ import annotations

from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.node_documents import (
    ProducerIdBlock,
    decode_producer_id_block,
    encode_producer_id_block,
)
from headwater.cluster.node_locations import PRODUCER_ID_BLOCK
from headwater.cluster.store.metadata_store import Create, Node, Operation, Set

#: How many ids Kafka's brokers take at a time.
BLOCK_SIZE: Final = 1_000
PRODUCER_ID_MAX: Final = 2**63 - 1


def plan_block(
    last_block: Node | None, broker_id: int, count: int
) -> tuple[ProducerIdBlock, Operation]:
    """The next block, and the operation that takes it on condition that nobody else did."""
    first = 0
    if last_block is not None:
        first = decode_producer_id_block(PRODUCER_ID_BLOCK, last_block.data).last + 1
    if count < 1 or first + count - 1 > PRODUCER_ID_MAX:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"There are no {count} producer ids left to give out."
        )
    block = ProducerIdBlock(broker_id, first, first + count - 1)
    data = encode_producer_id_block(block)
    if last_block is None:
        return block, Create(PRODUCER_ID_BLOCK, data)
    return block, Set(PRODUCER_ID_BLOCK, data, last_block.version)
