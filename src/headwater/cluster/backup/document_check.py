"""Whether brokers could work with what a document says: by their own rules, before it is imported.

The nodes are put into a store in memory, and loaded from there as a broker loads its image; but
where a broker leaves a node out and goes on, here the document is refused. What the image does not
hold is read by those who read it, too.
"""

from __future__ import annotations

from headwater.base.clocks import SystemClock
from headwater.cluster.backup.document import DocumentError, MetadataDocument
from headwater.cluster.brokers.registration import load_return_marks
from headwater.cluster.identity import prepare_store
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.image.loader import load_image
from headwater.cluster.image.rules import ImageFaultError, check_topic_name
from headwater.cluster.node_documents import (
    CorruptNodeError,
    corrupt,
    decode_integer,
    decode_producer_id_block,
)
from headwater.cluster.node_locations import (
    CLUSTER_ID,
    CLUSTER_SECRET,
    CONTROLLER_EPOCH,
    DELETED_TOPICS,
    KEPT_NODES,
    PRODUCER_ID_BLOCK,
    topic_deletion_path,
)
from headwater.cluster.secret import decode_cluster_secret
from headwater.cluster.store.embedded.journal import NullJournal
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.metadata_store import Create, MetadataStore, Set

#: So many faults are named; one mistake in an editor makes many.
_NAMED_MAX = 5


async def check_document(document: MetadataDocument) -> ClusterImage:
    """The cluster that the document tells of; raises DocumentError."""
    for path in document.nodes:
        if "/" + path.split("/", 2)[1] not in KEPT_NODES:
            raise DocumentError(f"{path} is no node of a cluster of Headwater's.")
    for path in (CLUSTER_ID, CLUSTER_SECRET):
        if not document.nodes.get(path):
            raise DocumentError(f"The document has no {path}, without which there is no cluster.")
    store = await EmbeddedStore.open(NullJournal(), SystemClock())
    try:
        session = store.connect()
        await _fill(session, document)
        faults: list[CorruptNodeError] = []
        try:
            image = await load_image(session, faults.append)
            await _check_rest(session, document)
        except CorruptNodeError as error:
            faults.append(error)
        if faults:
            shown = " ".join(str(fault) for fault in faults[:_NAMED_MAX])
            more = len(faults) - _NAMED_MAX
            raise DocumentError(f"{shown} And {more} more." if more > 0 else shown)
        return image
    finally:
        await store.close()


async def _fill(store: MetadataStore, document: MetadataDocument) -> None:
    await prepare_store(store)
    present = await store.get_many(list(document.nodes))
    await store.multi(
        [
            Create(path, data) if node is None else Set(path, data)
            for (path, data), node in zip(document.nodes.items(), present, strict=True)
        ]
    )


async def _check_rest(store: MetadataStore, document: MetadataDocument) -> None:
    decode_cluster_secret(document.nodes[CLUSTER_SECRET])
    if CONTROLLER_EPOCH in document.nodes:
        decode_integer(CONTROLLER_EPOCH, document.nodes[CONTROLLER_EPOCH])
    if PRODUCER_ID_BLOCK in document.nodes:
        decode_producer_id_block(PRODUCER_ID_BLOCK, document.nodes[PRODUCER_ID_BLOCK])
    await load_return_marks(store)
    for name in await store.children(DELETED_TOPICS):
        try:
            check_topic_name(name)
        except ImageFaultError as error:
            raise corrupt(topic_deletion_path(name), error) from error
