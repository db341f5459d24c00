"""The status of a cluster as `--json` prints it: all that the tables show, with every name."""

from __future__ import annotations

from headwater.cli.cluster.broker_status import BrokerStatus
from headwater.cli.cluster.report import conclusion
from headwater.cli.cluster.survey import ClusterStatus


def status_document(status: ClusterStatus) -> dict[str, object]:
    """What was not told is null."""
    health, groups = status.health, status.groups
    return {
        "cluster_id": status.cluster_id,
        "controller_id": status.controller_id if status.has_controller else None,
        "healthy": status.is_healthy,
        "conclusion": conclusion(status),
        "brokers": [broker_document(each) for each in status.brokers],
        "topics": status.topic_count,
        "partitions": health.partition_count,
        "offline": [str(each) for each in health.offline],
        "under_replicated": [str(each) for each in health.under_replicated],
        "under_min_isr": None
        if status.under_min_isr is None
        else [str(each) for each in status.under_min_isr],
        "not_preferred": [str(each) for each in health.not_preferred],
        "moving": None
        if status.moves is None
        else [
            {
                "partition": str(key),
                "replicas": list(move.replicas),
                "adding": list(move.adding_replicas),
                "removing": list(move.removing_replicas),
            }
            for key, move in sorted(status.moves.items())
        ],
        "groups": None
        if groups is None
        else [
            {
                "group": each.group_id,
                "state": each.state or None,
                "lag": each.lag,
                "partitions": each.partition_count,
            }
            for each in groups.worst
        ],
    }


def broker_document(broker: BrokerStatus) -> dict[str, object]:
    held, node = broker.held, broker.node
    return {
        "broker": broker.broker_id,
        "address": None if node is None else str(node.address),
        "rack": None if node is None else node.rack,
        "version": broker.version,
        "is_up": node is not None,
        "is_controller": broker.is_controller,
        "is_cordoned": None if broker.directories is None else broker.is_cordoned,
        "leaders": len(held.leaders),
        "preferred": len(held.preferred),
        "replicas": len(held.replicas),
        "out_of_sync": [str(each) for each in held.out_of_sync],
        "size_bytes": broker.used_bytes,
        "free_bytes": broker.free_bytes,
        "failed_directories": broker.failed_directories,
        "bytes_in_per_second": None if broker.bytes_in is None else round(broker.bytes_in, 1),
    }
