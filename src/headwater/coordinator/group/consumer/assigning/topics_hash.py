"""A number that changes when the topics that a group reads do.

A group stores it with its epoch. When the cluster has changed, or another coordinator takes over,
comparing it tells whether the group needs another assignment. Only equality counts, so any good
hash of what an assignment depends on will do: ids, names and numbers of partitions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

from headwater.cluster.image.image import ClusterImage


def topics_hash(names: Iterable[str], image: ClusterImage) -> int:
    """Of those topics that exist, as a signed 64-bit number; 0 without any."""
    digest = hashlib.blake2b(digest_size=8)
    is_empty = True
    for name in sorted(names):
        topic = image.topics.get(name)
        if topic is not None:
            is_empty = False
            digest.update(topic.topic_id.bytes)
            digest.update(f"{len(topic.partitions)} {name}\n".encode())
    if is_empty:
        return 0
    number: int = struct.unpack(">q", digest.digest())[0]
    return number
