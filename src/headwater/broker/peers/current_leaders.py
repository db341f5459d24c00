"""Where a client that asked the wrong broker has to go: told along with the refusal.

A produce or fetch that comes to a broker which does not lead the partition is answered with the
leader and its epoch, and with the leader's address, so that the client need not ask for metadata
first. What a broker does not know it leaves out; metadata will tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.broker.peers.advertised_addresses import client_side
from headwater.replication.partition.partition import Partition

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext

_UNKNOWN = -1


class CurrentLeader(NamedTuple):
    leader_id: int = _UNKNOWN
    leader_epoch: int = _UNKNOWN


class LeaderEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeaders:
    """Collects the leaders that one answer names."""

    __slots__ = ("_context", "_leader_ids")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._leader_ids: set[int] = set()

    def find(self, topic: str, number: int, partition: Partition | None) -> CurrentLeader:
        """Who leads a partition, as this broker knows it: from its own replica, or the image."""
        leader = CurrentLeader()
        if partition is not None:
            leader = CurrentLeader(partition.leader, partition.leader_epoch)
        else:
            described = self._context.broker.image.topics.get(topic)
            if described is not None and number < len(described.partitions):
                image = described.partitions[number]
                leader = CurrentLeader(image.leader, image.leader_epoch)
        if leader.leader_id >= 0:
            self._leader_ids.add(leader.leader_id)
        return leader

    def endpoints(self) -> list[LeaderEndpoint]:
        """The addresses of those that were named and can be reached by the client."""
        if not self._leader_ids:
            return []
        endpoints = []
        brokers = self._context.broker.image.brokers
        for leader_id in sorted(self._leader_ids):
            broker = brokers.get(leader_id)
            if broker is not None:
                address = client_side(self._context).address_of(broker)
                if address is not None:
                    endpoints.append(
                        LeaderEndpoint(leader_id, address.host, address.port, broker.rack)
                    )
        return endpoints
