"""What a broker's settings say about replicating a partition and acknowledging appends to it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

ACKS_ALL = -1


class AcksAllFlush(Enum):
    """When acks=all waits for this broker's disk (`acks.all.flush`)."""

    #: When the leader is the only one in sync: then no other broker has the record.
    AUTO = "auto"
    #: Always; the fsync runs while the followers replicate.
    LEADER = "leader"
    #: Never: as Kafka does by default.
    OFF = "off"


class PartitionOptions(NamedTuple):
    """The settings of a topic that its partitions follow; a change brings new ones."""

    min_insync_replicas: int
    acks_all_flush: AcksAllFlush
    #: How long a follower may lag behind and still count as in sync.
    replica_lag_time_max_ms: int = 30_000
