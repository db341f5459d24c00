"""Numbers that must never be used twice, put far ahead of what a document says.

A document may be older than the data of the brokers that are started on it: they have served on, or
the document is last night's backup. Then leaders have been elected that it does not know, whose
epochs are in the logs, and producer ids were given out. So leaders, controllers and producer ids go
on well behind the newest number that can have been used since. Nobody minds a gap: for brokers and
clients it is an election like any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.cluster.backup.document import MetadataDocument
from headwater.cluster.image.rules import NUMBER_MAX
from headwater.cluster.node_documents import (
    ProducerIdBlock,
    decode_integer,
    decode_partition_state,
    decode_producer_id_block,
    encode_partition_state,
    encode_producer_id_block,
)
from headwater.cluster.node_locations import CONTROLLER_EPOCH, PRODUCER_ID_BLOCK, TOPICS

EPOCHS: Final = 1_000
PRODUCER_IDS: Final = 10_000_000
_PRODUCER_ID_MAX: Final = 2**63 - 1


def with_numbers_ahead(document: MetadataDocument) -> MetadataDocument:
    """The same for a document that was checked, with its numbers put ahead."""
    known: dict[bytes, bytes] = {}
    nodes = dict(document.nodes)
    for path, data in document.nodes.items():
        if path == CONTROLLER_EPOCH:
            nodes[path] = b"%d" % _later(decode_integer(path, data))
        elif path == PRODUCER_ID_BLOCK:
            block = decode_producer_id_block(path, data)
            last = min(block.last + PRODUCER_IDS, _PRODUCER_ID_MAX)
            nodes[path] = encode_producer_id_block(ProducerIdBlock(block.broker_id, last, last))
        elif path.startswith(f"{TOPICS}/") and path.endswith("/state") and path.count("/") == 6:
            if data not in known:
                state = decode_partition_state(path, data)
                later = state._replace(leader_epoch=_later(state.leader_epoch))
                known[data] = encode_partition_state(later)
            nodes[path] = known[data]
    return replace(document, nodes=nodes)


def _later(epoch: int) -> int:
    return min(epoch + EPOCHS, NUMBER_MAX)
