"""Which partitions `headwater topics --describe` shows for each kind of trouble."""

import json
import uuid

import pytest

from headwater.base.ids import TopicPartition
from headwater.cli.topics.description import describe_topic
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.cli.topics.topic_json import described_json
from headwater.client.admin import ConfigEntry, ConfigSource, PartitionReassignment
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo

#: Brokers 1 and 2 are there, 3 is not; two replicas must be in sync.
TOPIC = TopicInfo(
    "orders",
    uuid.UUID(int=1),
    False,
    (
        PartitionInfo(0, 1, 4, (1, 2, 3), (1, 2, 3)),
        PartitionInfo(1, 1, 4, (1, 2, 3), (1, 2)),
        PartitionInfo(2, 2, 4, (3, 2), (2,)),
        PartitionInfo(3, -1, 4, (3,), (3,)),
        PartitionInfo(4, 3, 4, (3, 1, 2), (3, 1)),
        PartitionInfo(5, 1, 4, (1, 2, 3), (1, 2)),
    ),
)


MOVING = TOPIC._replace(partitions=TOPIC.partitions[-1:])
#: Of the one that lacks nothing but what it is being given.
MOVES = {TopicPartition("orders", 5): PartitionReassignment((1, 2, 3), (3,), ())}


def shown(wanted: PartitionFilter, min_isr: str = "2") -> list[int]:
    configs = [
        ConfigEntry(
            "min.insync.replicas",
            min_isr,
            ConfigSource.DYNAMIC_TOPIC_CONFIG,
            False,
            False,
            (),
            None,
        )
    ]
    lines = describe_topic(TOPIC, configs, wanted, frozenset({1, 2}), MOVES)
    return [int(line.split("Partition: ")[1].split("\t")[0]) for line in lines]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (PartitionFilter.UNDER_REPLICATED, [1, 2, 4]),
        (PartitionFilter.UNAVAILABLE, [3, 4]),
        (PartitionFilter.UNDER_MIN_ISR, [2, 3]),
        (PartitionFilter.AT_MIN_ISR, [1, 4, 5]),
    ],
)
def test_partitions_in_trouble(wanted: PartitionFilter, numbers: list[int]) -> None:
    assert shown(wanted) == numbers


def test_without_a_leader_a_partition_is_under_its_min_isr_whatever_that_is() -> None:
    assert shown(PartitionFilter.UNDER_MIN_ISR, min_isr="1") == [3]


def test_what_is_added_and_removed_is_shown_and_the_factor_is_that_of_before() -> None:
    lines = list(describe_topic(MOVING, [], PartitionFilter.ALL, frozenset({1, 2, 3}), MOVES))
    assert "ReplicationFactor: 2" in lines[0]
    assert lines[1].endswith("Replicas: 1,2,3\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: ")
    document = described_json(MOVING, [], PartitionFilter.ALL, frozenset({1, 2, 3}), MOVES)
    assert document is not None
    assert document["replication_factor"] == 2
    assert '"adding": [3], "removing": []' in json.dumps(document)
