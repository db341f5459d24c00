"""What clients are told of partitions some of whose brokers they cannot reach."""

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.handlers.metadata import answer_partition
from headwater.broker.peers.advertised_addresses import ClientSide
from headwater.broker.topics.partition_description import ReachableBrokers
from headwater.cluster.image.image import BrokerInfo, ClusterImage, EndpointInfo, PartitionImage


def reachable(listener_name: str = "PLAINTEXT") -> ReachableBrokers:
    brokers = {
        0: BrokerInfo(0, (EndpointInfo("PLAINTEXT", "", 9092),)),
        1: BrokerInfo(1, (EndpointInfo("PLAINTEXT", "one", 9092),)),
        2: BrokerInfo(2, (EndpointInfo("INSIDE", "two", 9092),)),
    }
    return ReachableBrokers(ClusterImage(brokers=brokers), ClientSide(listener_name, "127.0.0.1"))


def test_a_partition_whose_brokers_can_all_be_reached() -> None:
    told = reachable().describe(PartitionImage((1, 0), (1,), 1, 5, 7))
    assert told == (ErrorCode.NONE, 1, 5, [1, 0], [1], [])


def test_replicas_that_cannot_be_reached_are_listed_as_offline() -> None:
    told = reachable().describe(PartitionImage((1, 2, 9), (1, 2), 1, 5, 7))
    assert told == (ErrorCode.NONE, 1, 5, [1, 2, 9], [1, 2], [2, 9])


@pytest.mark.parametrize(
    ("leader", "error"),
    [
        (-1, ErrorCode.LEADER_NOT_AVAILABLE),
        (9, ErrorCode.LEADER_NOT_AVAILABLE),
        (2, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
def test_a_leader_that_cannot_be_reached_is_none(leader: int, error: ErrorCode) -> None:
    told = reachable().describe(PartitionImage((2, 9), (2,), leader, 5, 7))
    assert (told.error, told.leader) == (error, -1)
    assert answer_partition(0, told, 6).error_code == error
    assert answer_partition(0, told, 5).error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_version_0_of_metadata_leaves_out_what_is_offline() -> None:
    told = reachable().describe(PartitionImage((1, 2, 9), (1, 2), 1, 5, 7))
    first, later = answer_partition(0, told, 0), answer_partition(0, told, 1)
    assert (first.error_code, first.replica_nodes, first.isr_nodes) == (
        ErrorCode.REPLICA_NOT_AVAILABLE,
        [1],
        [1],
    )
    assert (later.error_code, later.replica_nodes) == (ErrorCode.NONE, [1, 2, 9])
