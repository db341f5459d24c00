"""Reads all that a metadata store keeps, as it was at one moment.

No store tells its whole tree at once. So it is read twice: what is the same both times, by the
number of its creation and by its version, was so in the moment between the two, which is what an
export holds. A cluster whose leaders or ISRs change at that moment is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.cluster.backup.document import MetadataDocument
from headwater.cluster.node_locations import BROKER_SEQUENCE, KEPT_NODES
from headwater.cluster.store.errors import NoNodeError
from headwater.cluster.store.metadata_store import MetadataStore, Node

#: Then what was read last is taken, and said not to be of one moment.
ROUNDS_MAX: Final = 10
#: So many requests are on their way at once.
_REQUESTS_MAX: Final = 500


async def read_document(
    store: MetadataStore, origin: Mapping[str, str], rounds_max: int = ROUNDS_MAX
) -> MetadataDocument:
    """What the store keeps; `origin` is what the file shall say of where it comes from."""
    before: dict[str, Node] = {}
    for number in range(rounds_max):
        nodes = await read_nodes(store)
        is_same = number > 0 and _states(nodes) == _states(before)
        if is_same:
            break
        before = nodes
    given = nodes[BROKER_SEQUENCE].version if BROKER_SEQUENCE in nodes else 0
    return MetadataDocument(
        {path: node.data for path, node in nodes.items()}, given, origin, is_of_one_moment=is_same
    )


async def read_nodes(store: MetadataStore) -> dict[str, Node]:
    """All persistent nodes of a cluster, parents in front of their children."""
    found: dict[str, Node] = {}
    level: Sequence[str] = KEPT_NODES
    while level:
        nodes = await store.get_many(level)
        present = [
            (path, node)
            for path, node in zip(level, nodes, strict=True)
            if node is not None and not node.ephemeral_owner
        ]
        found.update(present)
        paths = [path for path, _ in present]
        level = [
            path
            for begin in range(0, len(paths), _REQUESTS_MAX)
            for children in await asyncio.gather(
                *(_below(store, path) for path in paths[begin : begin + _REQUESTS_MAX])
            )
            for path in children
        ]
    return dict(sorted(found.items()))


async def _below(store: MetadataStore, path: str) -> list[str]:
    try:
        return [f"{path}/{name}" for name in await store.children(path)]
    except NoNodeError:
        return []  # It has gone meanwhile.


def _states(nodes: Mapping[str, Node]) -> dict[str, tuple[int, int]]:
    return {path: (node.creation_id, node.version) for path, node in nodes.items()}
