"""Topics are created, listed, grown and deleted by every client that can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.testing.broker_process import wait_until
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import AdminClient, Client, ClientError, Message
from tests.support.other_clients.kafka_python import KafkaPythonClient

MakeTopic = Callable[..., str]
NewName = Callable[[], str]


def wait_for(client: Client, topic: str, partitions: int | None) -> None:
    """Until the broker lists the topic with so many partitions, or does not list it at all."""
    wait_until(
        lambda: client.partition_counts().get(topic) == partitions, f"{topic} has {partitions}"
    )


def test_create_use_and_delete(admin: AdminClient, new_name: NewName) -> None:
    topic = new_name()
    admin.create_topic(topic, 3, settings={"retention.ms": "86400000"})
    wait_for(admin, topic, 3)
    admin.produce(topic, [Message(b"in the last one", partition=2)])
    admin.delete_topic(topic)
    wait_for(admin, topic, None)
    admin.create_topic(topic, 1)
    wait_for(admin, topic, 1)
    assert admin.end_offsets(topic) == (0, 0)
    assert admin.topic_settings(topic)["retention.ms"].value == "604800000"


def test_every_client_lists(client: Client, make_topic: MakeTopic) -> None:
    topics = [make_topic(partitions) for partitions in (1, 4)]
    counts = client.partition_counts()
    assert [counts[topic] for topic in topics] == [1, 4]


# aiokafka insists on numbers.
@pytest.mark.parametrize("admin", [ConfluentClient, KafkaPythonClient], indirect=True, ids=str)
def test_the_brokers_defaults(admin: AdminClient, new_name: NewName) -> None:
    topic = new_name()
    admin.create_topic(topic, -1, replicas=-1)
    wait_for(admin, topic, 1)


def test_validation_only(admin: AdminClient, new_name: NewName) -> None:
    topic = new_name()
    admin.create_topic(topic, 3, validate_only=True)
    assert topic not in admin.partition_counts()
    with pytest.raises(ClientError) as refusal:
        admin.create_topic(topic, 3, replicas=3, validate_only=True)
    assert refusal.value.name == "INVALID_REPLICATION_FACTOR"


@pytest.mark.parametrize("name", [".", "..", "a b", "a/b", "ä", "x" * 250])
def test_names_that_are_not_allowed(name: str, admin: AdminClient) -> None:
    with pytest.raises(ClientError) as refusal:
        admin.create_topic(name)
    assert refusal.value.name == "INVALID_TOPIC_EXCEPTION"


def test_the_longest_name(admin: AdminClient, new_name: NewName) -> None:
    topic = new_name().ljust(249, "x")
    admin.create_topic(topic)
    wait_for(admin, topic, 1)
    admin.produce(topic, [Message(b"1")])
    assert [record.value for record in admin.consume(topic, "earliest")] == [b"1"]
    admin.delete_topic(topic)


def test_names_that_collide(admin: AdminClient, new_name: NewName) -> None:
    """A dot and an underscore become the same character in the names of metrics."""
    base = new_name()
    admin.create_topic(f"{base}.x_y")
    with pytest.raises(ClientError) as refusal:
        admin.create_topic(f"{base}_x.y")
    assert refusal.value.name == "INVALID_TOPIC_EXCEPTION"


@pytest.mark.parametrize(
    ("partitions", "replicas", "settings", "error"),
    [
        (0, 1, {}, "INVALID_PARTITIONS"),
        (1, 0, {}, "INVALID_REPLICATION_FACTOR"),
        (1, 2, {}, "INVALID_REPLICATION_FACTOR"),
        (1, 1, {"retention.ms": "soon"}, "INVALID_CONFIG"),
        (1, 1, {"retention.ms": "-2"}, "INVALID_CONFIG"),
        (1, 1, {"cleanup.policy": "shred"}, "INVALID_CONFIG"),
        (1, 1, {"compression.type": "rar"}, "INVALID_CONFIG"),
        (1, 1, {"no.such.setting": "1"}, "INVALID_CONFIG"),
    ],
    ids=str,
)
def test_topics_that_cannot_be(
    partitions: int,
    replicas: int,
    settings: dict[str, str],
    error: str,
    admin: AdminClient,
    new_name: NewName,
) -> None:
    topic = new_name()
    with pytest.raises(ClientError) as refusal:
        admin.create_topic(topic, partitions, replicas=replicas, settings=settings)
    assert refusal.value.name == error
    assert topic not in admin.partition_counts()


def test_a_topic_that_exists(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with pytest.raises(ClientError) as refusal:
        admin.create_topic(topic)
    assert refusal.value.name == "TOPIC_ALREADY_EXISTS"


def test_a_topic_that_does_not_exist(admin: AdminClient, new_name: NewName) -> None:
    topic = new_name()
    calls: list[Callable[[], None]] = [
        lambda: admin.delete_topic(topic),
        lambda: admin.grow_topic(topic, 3),
        lambda: admin.alter_topic(topic, {"retention.ms": "1000"}),
    ]
    for call in calls:
        with pytest.raises(ClientError) as refusal:
            call()
        assert refusal.value.name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_more_partitions_and_never_fewer(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    admin.produce(topic, [Message(b"first", partition=1)])
    admin.grow_topic(topic, 4)
    wait_for(admin, topic, 4)
    admin.produce(topic, [Message(b"in a new one", partition=3)])
    assert [record.value for record in admin.consume(topic, 0, 3)] == [b"in a new one"]
    assert [record.value for record in admin.consume(topic, 0, 1)] == [b"first"]
    for count in (3, 4):
        with pytest.raises(ClientError) as refusal:
            admin.grow_topic(topic, count)
        assert refusal.value.name == "INVALID_PARTITIONS"
    assert admin.partition_counts()[topic] == 4
