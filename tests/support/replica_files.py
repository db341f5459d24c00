"""Whether the replicas of a partition are the same on disk, byte for byte.

Followers write batches as they get them, so the segments of all replicas, one behind the other, are
the same bytes. That is asked for when nothing is written any more and all replicas are in sync.
"""

from __future__ import annotations

import time
from itertools import zip_longest
from pathlib import Path

from tests.support.three_brokers import BROKER_IDS, ThreeBrokers

CATCH_UP_S = 20.0
POLL_INTERVAL_S = 0.05


def replica_faults(cluster: ThreeBrokers, topic: str, partition_count: int) -> list[str]:
    """Where the three replicas of the topic's partitions differ, once they have caught up."""
    faults: list[str] = []
    for number in range(partition_count):
        cluster.wait_in_sync(topic, number, len(BROKER_IDS))
        name = f"{topic}-{number}"
        deadline_s = time.monotonic() + CATCH_UP_S
        while (fault := _difference(cluster, name)) is not None:
            if time.monotonic() > deadline_s:
                faults.append(fault)
                break
            time.sleep(POLL_INTERVAL_S)
    return faults


def _difference(cluster: ThreeBrokers, name: str) -> str | None:
    contents = {each: _content(cluster.data_dir(each) / name) for each in BROKER_IDS}
    first = contents[BROKER_IDS[0]]
    for broker_id, other in contents.items():
        if other != first:
            position = next(at for at, (a, b) in enumerate(zip_longest(first, other)) if a != b)
            return (
                f"{name}: brokers {BROKER_IDS[0]} ({len(first)} bytes) and {broker_id} "
                f"({len(other)} bytes) differ at byte {position}"
            )
    return None


def _content(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
