import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.bootstrap import Address
from headwater.client.connection.cluster_metadata import NO_LEADER, ClusterMetadata
from headwater.client.errors import UnknownTopicError
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def topic(name: str, *leaders: int, error_code: int = 0, number: int = 1) -> MetadataResponseTopic:
    """A topic whose partitions have these leaders, in reverse order as a broker may send them."""
    partitions = [
        MetadataResponsePartition(
            partition_index=index, leader_id=leader, replica_nodes=[leader], isr_nodes=[leader]
        )
        for index, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(
        name=name,
        topic_id=uuid.UUID(int=number),
        partitions=partitions[::-1],
        error_code=error_code,
    )


def response(*topics: MetadataResponseTopic, broker_count: int = 2) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=number, host=f"host{number}", port=9092)
            for number in range(broker_count)
        ],
        cluster_id="cluster",
        controller_id=1,
        topics=list(topics),
    )


def test_it_learns_brokers_and_topics() -> None:
    metadata = ClusterMetadata()
    metadata.learn(response(topic("a", 0, 1), topic("b", 1, number=2)), ["a", "b"])
    assert (metadata.cluster_id, metadata.controller_id) == ("cluster", 1)
    assert metadata.brokers[1].address == Address("host1", 9092)
    assert [each.name for each in metadata.topics()] == ["a", "b"]
    assert metadata.leader_of("a", 1) == 1
    found = metadata.existing_topic("a")
    assert [partition.partition for partition in found.partitions] == [0, 1]
    assert found.has_id
    assert metadata.name_of(uuid.UUID(int=2)) == "b"


def test_an_answer_replaces_what_was_asked_for_and_nothing_else() -> None:
    metadata = ClusterMetadata()
    metadata.learn(response(topic("a", 0), topic("b", 1, number=2)), None)
    metadata.learn(response(topic("a", 1, 0, number=3), broker_count=1), ["a"])
    assert metadata.leader_of("a", 1) == 0
    # Its leader is not in the cluster any more, so it has none.
    assert metadata.leader_of("a", 0) == NO_LEADER
    assert metadata.name_of(uuid.UUID(int=1)) is None
    assert metadata.topic("b") is not None
    assert list(metadata.brokers) == [0]
    metadata.learn(response(topic("b", 1, number=2)), None)
    assert metadata.topic("a") is None


def test_a_leader_of_an_earlier_epoch_is_not_believed() -> None:
    metadata = ClusterMetadata()

    def tell(leader: int, epoch: int, number: int = 1) -> int:
        answer = topic("a", leader, number=number)
        answer.partitions[0].leader_epoch = epoch
        metadata.learn(response(answer), ["a"])
        return metadata.leader_of("a", 0)

    assert tell(0, 4) == 0
    assert tell(1, 5) == 1
    assert tell(0, 4) == 1  # By a broker that has not heard of the new one.
    assert tell(0, 5) == 0
    assert tell(1, -1) == 1  # Of a version that tells no epochs.
    assert tell(1, 9) == 1
    assert tell(0, 0, number=2) == 0  # Another topic of the same name.


def test_topics_that_are_not_there() -> None:
    metadata = ClusterMetadata()
    metadata.learn(
        response(
            topic("gone", error_code=3),
            topic("secret", error_code=29),
            topic("a", NO_LEADER, 0, number=5),
        ),
        ["gone", "secret", "a"],
    )
    with pytest.raises(UnknownTopicError, match="There is no topic 'gone'"):
        metadata.existing_topic("gone")
    with pytest.raises(UnknownTopicError, match="There is no topic 'never asked for'"):
        metadata.existing_topic("never asked for")
    with pytest.raises(KafkaError) as refused:
        metadata.existing_topic("secret")
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert metadata.leader_of("a", 0) == NO_LEADER
    assert not metadata.existing_topic("a").partition(0).has_leader
    with pytest.raises(UnknownTopicError, match="has no partition 2: it has partitions 0 to 1"):
        metadata.leader_of("a", 2)


def test_a_topic_may_lack_partitions_in_trouble() -> None:
    metadata = ClusterMetadata()
    partial = topic("a", 0, 1, 0)
    del partial.partitions[1]
    metadata.learn(response(partial), ["a"])
    assert metadata.leader_of("a", 2) == 0
    with pytest.raises(UnknownTopicError):
        metadata.leader_of("a", 1)
