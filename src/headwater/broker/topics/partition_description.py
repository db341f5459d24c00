"""What a client is told of a partition: who leads it, who follows, and who of them is away.

A leader counts only if the client can reach it: a broker that is not registered, or that has no
listener of the name that the client uses, is no use to it. Metadata and DescribeTopicPartitions
tell the same.
"""

from typing import NamedTuple

from headwater.base.errors import ErrorCode
from headwater.broker.peers.advertised_addresses import Address, ClientSide
from headwater.cluster.image.image import NO_CONTROLLER, NO_LEADER, ClusterImage, PartitionImage


class PartitionDescription(NamedTuple):
    error: ErrorCode
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


class ReachableBrokers:
    """The live brokers of an image and where one client finds them."""

    def __init__(self, image: ClusterImage, client: ClientSide) -> None:
        self._registered = image.brokers
        self._controller_id = image.controller_id
        #: Only those that have a listener for the client.
        self.addresses: dict[int, Address] = {}
        for broker_id, broker in image.brokers.items():
            address = client.address_of(broker)
            if address is not None:
                self.addresses[broker_id] = address

    @property
    def controller_id(self) -> int:
        """The controller, if the client can reach it."""
        return self._controller_id if self._controller_id in self.addresses else NO_CONTROLLER

    def describe(self, partition: PartitionImage) -> PartitionDescription:
        addresses = self.addresses
        error = ErrorCode.NONE
        leader = partition.leader
        if leader not in addresses:
            # A client that is told of another listener's leader could do nothing with it.
            registered = leader in self._registered
            error = ErrorCode.LISTENER_NOT_FOUND if registered else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        return PartitionDescription(
            error,
            leader,
            partition.leader_epoch,
            list(partition.replicas),
            list(partition.isr),
            [replica for replica in partition.replicas if replica not in addresses],
        )
