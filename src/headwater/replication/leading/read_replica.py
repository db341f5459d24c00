"""Which replica a consumer is to read from, by where it is: Kafka's RackAwareReplicaSelector.

A consumer names its rack (`client.rack`), brokers have theirs (`broker.rack`). Traffic between
racks, or zones of a cloud, is slow and costs money. So a leader in another rack names a follower in
the consumer's: one that lives, is in sync, and has the offset that is asked for. Of several it is
the one that is furthest. The leader itself serves whoever is in its own rack, and whoever has no
such follower.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headwater.cluster.image.image import BrokerInfo
from headwater.replication.leading.remote_replica import RemoteReplica


def closest_replica(
    rack: str,
    offset: int,
    *,
    leader_id: int,
    in_sync: Collection[int],
    remotes: Mapping[int, RemoteReplica],
    brokers: Mapping[int, BrokerInfo],
) -> int | None:
    """The follower to read from; None where that is the leader."""
    leader = brokers.get(leader_id)
    if leader is not None and leader.rack == rack:
        return None
    fitting = [
        remote
        for broker_id, remote in remotes.items()
        if broker_id in in_sync
        and (broker := brokers.get(broker_id)) is not None
        and broker.rack == rack
        and remote.log_start_offset <= offset <= remote.log_end_offset
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda each: (each.log_end_offset, each.caught_up_ms, each.broker_id))
    return best.broker_id
