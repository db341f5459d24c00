"""Whether the replicas of a partition are the same on disk, byte for byte.

Followers write batches as they get them, so the segments of all replicas, one behind the other, are
the same bytes. That is asked for when nothing is written any more and all replicas are in sync.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

from tests.support.brokers.three_brokers import BROKER_IDS, ThreeBrokers

CATCH_UP_S = 20.0
POLL_INTERVAL_S = 0.05


def replica_faults(cluster: ThreeBrokers, topic: str, partition_count: int) -> list[str]:
    """Where the three replicas of the topic's partitions differ, once they have caught up."""
    faults: list[str] = []
    for number in range(partition_count):
        cluster.wait_in_sync(topic, number, len(BROKER_IDS))
        replicas = {each: cluster.replica_dir(each, f"{topic}-{number}") for each in BROKER_IDS}
        deadline_s = time.monotonic() + CATCH_UP_S
        while (fault := difference(replicas)) is not None:
            if time.monotonic() > deadline_s:
                faults.append(f"{topic}-{number}: {fault}")
                break
            time.sleep(POLL_INTERVAL_S)
    return faults


def difference(replicas: Mapping[int, Path]) -> str | None:
    """Where the first of these replicas, directories by broker, and another one differ."""
    contents = {broker_id: _content(directory) for broker_id, directory in replicas.items()}
    first_id, first = next(iter(contents.items()))
    for broker_id, other in contents.items():
        if other != first:
            position = next(at for at, (a, b) in enumerate(zip_longest(first, other)) if a != b)
            return (
                f"brokers {first_id} ({len(first)} bytes) and {broker_id} ({len(other)} bytes) "
                f"differ at byte {position}"
            )
    return None


def _content(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
