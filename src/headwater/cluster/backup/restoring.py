"""Puts the nodes of a document into a metadata store that no broker uses.

A store that can change everything in one transaction does. ZooKeeper takes a megabyte at a time, so
there it is done in many, and `/metadata_import` stands from the first to the last: while it is
there no broker joins, and running the same import again goes on with what is missing. The cluster's
id, by which brokers know their cluster, goes with the first transaction and comes with the last.

What is to be done is found by comparing, so every attempt, whatever it finds, ends with the same
nodes. `/brokers/seqid` counts the ids that were made up for brokers by its version, and is set as
often as it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import listed
from headwater.cluster.backup.document import MetadataDocument
from headwater.cluster.backup.reading import read_nodes
from headwater.cluster.node_documents import encode
from headwater.cluster.node_locations import (
    BROKER_IDS,
    BROKER_SEQUENCE,
    CLUSTER_ID,
    CONTROLLER,
    IMPORT,
    STANDING_NODES,
)
from headwater.cluster.store.errors import UncertainWriteError
from headwater.cluster.store.metadata_store import (
    Create,
    Delete,
    MetadataStore,
    Node,
    Operation,
    Set,
)

#: Of one transaction where a store takes only small ones.
OPERATIONS_MAX: Final = 500
BYTES_MAX: Final = 400_000
#: After so many writes of which nobody knows whether they were done, the store is not well.
_ATTEMPTS_MAX: Final = 5


class StoreInUseError(KafkaError):
    """The store is not one to import into; the message is a sentence."""

    code = ErrorCode.INVALID_REQUEST


async def restore(
    store: MetadataStore,
    document: MetadataDocument,
    *,
    may_replace: bool = False,
    is_one_transaction: bool = False,
) -> None:
    """Make the store hold these nodes and no others of a cluster.

    StoreInUseError if brokers are alive on it, or if it holds another cluster or another import
    and may not be replaced.
    """
    for attempt in range(_ATTEMPTS_MAX):
        try:
            await _restore(store, document, may_replace, is_one_transaction)
            return
        except UncertainWriteError:
            if attempt == _ATTEMPTS_MAX - 1:
                raise


async def _restore(
    store: MetadataStore, document: MetadataDocument, may_replace: bool, is_one_transaction: bool
) -> None:
    await _refuse_live_brokers(store)
    mark = encode({"version": 1, "sha256": document.checksum})
    begun = await store.exists(IMPORT)
    present = await read_nodes(store)
    if begun is None and not list(_changes(present, document)):
        return  # It is all there, by an attempt whose last answer was lost.
    if (begun is None or begun.data != mark) and not may_replace:
        _refuse_others(present, begun)
    if is_one_transaction:
        await store.multi(list(_changes(present, document)))
        return
    first: list[Operation] = [Create(IMPORT, mark) if begun is None else Set(IMPORT, mark)]
    if CLUSTER_ID in present:
        first.append(Delete(CLUSTER_ID))
        del present[CLUSTER_ID]
    await store.multi(first)
    # Who joined in front of the mark is seen now, and nobody joins behind it.
    await _refuse_live_brokers(store)
    changes = [each for each in _changes(present, document) if each.path != CLUSTER_ID]
    for portion in _portions(changes):
        await store.multi(portion)
    await store.multi([Create(CLUSTER_ID, document.nodes[CLUSTER_ID]), Delete(IMPORT)])


async def _refuse_live_brokers(store: MetadataStore) -> None:
    names = [] if await store.exists(BROKER_IDS) is None else await store.children(BROKER_IDS)
    if names:
        raise StoreInUseError(
            f"Brokers of the cluster are alive ({listed(names)}): stop all of them first. One that "
            "was killed counts as alive until its session is over."
        )
    if await store.exists(CONTROLLER) is not None:
        raise StoreInUseError("The cluster has a controller: stop all of its brokers first.")


def _refuse_others(present: Mapping[str, Node], begun: Node | None) -> None:
    if begun is not None:
        raise StoreInUseError(
            "An import of another file has begun here and has not ended: import that one again, "
            "or say --replace."
        )
    if any(node.data or path not in STANDING_NODES for path, node in present.items()):
        raise StoreInUseError(
            "The metadata store is not empty: choose another one, or say --replace to remove what "
            "it holds."
        )


def _changes(present: Mapping[str, Node], document: MetadataDocument) -> Iterator[Operation]:
    """What makes the nodes of a document of those that are there."""
    for path in reversed(list(present)):
        if path not in document.nodes:
            yield Delete(path)
    for path, data in document.nodes.items():
        if path not in present:
            yield Create(path, data)
        elif present[path].data != data:
            yield Set(path, data)
    counted = present[BROKER_SEQUENCE].version if BROKER_SEQUENCE in present else 0
    if BROKER_SEQUENCE in document.nodes:
        for _ in range(document.broker_ids_given - counted):
            yield Set(BROKER_SEQUENCE, document.nodes[BROKER_SEQUENCE])


def _portions(changes: Sequence[Operation]) -> Iterator[list[Operation]]:
    portion: list[Operation] = []
    size_bytes = 0
    for change in changes:
        data = change.data if isinstance(change, Create | Set) else b""
        size_bytes += len(change.path) + len(data)
        if portion and (len(portion) == OPERATIONS_MAX or size_bytes > BYTES_MAX):
            yield portion
            portion, size_bytes = [], len(change.path) + len(data)
        portion.append(change)
    if portion:
        yield portion
