"""Who this is: the id of the cluster, and of a broker that was given none.

The first broker of a cluster writes `/cluster/id`, and it stays for ever. A broker without an id
gets the next number above `reserved.broker.max.id`, counted by the version of `/brokers/seqid`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import new_topic_id, topic_id_to_text
from headwater.cluster.node_documents import decode_cluster_id, encode_cluster_id
from headwater.cluster.node_locations import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    IMPORT,
    STANDING_NODES,
)
from headwater.cluster.store.errors import NodeExistsError
from headwater.cluster.store.metadata_store import Create, MetadataStore


async def prepare_store(store: MetadataStore) -> None:
    """Make the nodes under which everything else is kept, where they are missing."""
    present = await store.get_many(STANDING_NODES)
    missing = [path for path, node in zip(STANDING_NODES, present, strict=True) if node is None]
    if not missing:
        return
    try:
        await store.multi([Create(path, b"") for path in missing])
    except NodeExistsError:
        # Another broker of the same new cluster is doing the same.
        await prepare_store(store)


async def establish_cluster_id(
    store: MetadataStore, wanted: str | None, draw_uuid: Callable[[], uuid.UUID]
) -> str:
    """The cluster's id; a new cluster gets the one wanted, or one that is drawn.

    KafkaError INCONSISTENT_CLUSTER_ID if another one is wanted than the cluster has, or if the
    cluster is just being imported.
    """
    if await store.exists(IMPORT) is not None:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "An import into the metadata store has begun and has not ended: run the same "
            "`headwater metadata import` again, and start the broker then.",
        )
    await prepare_store(store)
    node = await store.exists(CLUSTER_ID)
    if node is None:
        cluster_id = wanted or topic_id_to_text(new_topic_id(draw_uuid))
        try:
            await store.create(CLUSTER_ID, encode_cluster_id(cluster_id))
            return cluster_id
        except NodeExistsError:
            node = await store.get(CLUSTER_ID)
    cluster_id = decode_cluster_id(CLUSTER_ID, node.data)
    if wanted not in (None, cluster_id):
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"The metadata store belongs to the cluster {cluster_id}, not to {wanted}.",
        )
    return cluster_id


async def generate_broker_id(store: MetadataStore, reserved_broker_max_id: int) -> int:
    """An id that no broker of this cluster was given before."""
    await prepare_store(store)
    return reserved_broker_max_id + await store.set(BROKER_SEQUENCE, b"")
