"""What the brokers of a cluster know and nobody else does: `/cluster/secret`.

The first broker of a cluster draws it, and it stays. Whoever can read the metadata store knows it
too: the store is what a broker's standing in its cluster rests on in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from headwater.cluster.node_documents import CorruptNodeError, encode
from headwater.cluster.node_locations import CLUSTER_SECRET
from headwater.cluster.store.errors import NodeExistsError
from headwater.cluster.store.metadata_store import MetadataStore

SECRET_BYTES: Final = 32


async def establish_cluster_secret(
    store: MetadataStore, draw_bytes: Callable[[int], bytes]
) -> bytes:
    """The cluster's secret; a cluster without one gets one that is drawn."""
    node = await store.exists(CLUSTER_SECRET)
    if node is None:
        secret = draw_bytes(SECRET_BYTES)
        try:
            await store.create(CLUSTER_SECRET, encode_cluster_secret(secret))
            return secret
        except NodeExistsError:
            # Another broker came first.
            node = await store.get(CLUSTER_SECRET)
    return decode_cluster_secret(node.data)


def encode_cluster_secret(secret: bytes) -> bytes:
    return encode({"version": 1, "secret": secret.hex()})


def decode_cluster_secret(data: bytes) -> bytes:
    try:
        secret = bytes.fromhex(json.loads(data)["secret"])
    except (ValueError, KeyError, TypeError):
        # Without the cause, which would show what it found.
        raise CorruptNodeError(CLUSTER_SECRET, "it does not hold a secret") from None
    if len(secret) != SECRET_BYTES:
        raise CorruptNodeError(CLUSTER_SECRET, f"its secret is not of {SECRET_BYTES} bytes")
    return secret
