"""Our client and confluent-kafka understand each other: records, keys' partitions, one group."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headwater import Consumer, Producer, TopicPartition
from tests.support.brokers.clusters import Cluster
from tests.support.kafka.node import require_confluent_kafka
from tests.support.other_clients.users import (
    Poller,
    create_topic,
    numbers,
    partitions_of,
    read_all,
    values_of,
    wait_for,
)


@pytest.fixture(scope="module")
def confluent() -> Any:
    return require_confluent_kafka()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_we_send_it_reads(cluster: Cluster, confluent: Any, codec: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(
        {"compression.type": codec}, bootstrap_servers=cluster.bootstrap, linger_ms=20
    ) as producer:
        for number in range(100):
            producer.send(
                topic,
                b"%d" % number * 20 if number % 10 else None,
                b"key" if number % 3 else None,
                headers=[("name", b"value"), ("null", None)] if number % 2 else (),
                timestamp_ms=1_700_000_000_000 + number,
            )
    reader = confluent.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused"})
    reader.assign([confluent.TopicPartition(topic, 0, 0)])
    messages: list[Any] = []
    while len(messages) < 100:
        found = reader.consume(100 - len(messages), 30.0)
        assert found
        messages += found
    reader.close()
    for number, message in enumerate(messages):
        assert message.error() is None
        assert message.offset() == number
        assert message.value() == (b"%d" % number * 20 if number % 10 else None)
        assert message.key() == (b"key" if number % 3 else None)
        assert message.headers() == ([("name", b"value"), ("null", None)] if number % 2 else None)
        assert message.timestamp() == (1, 1_700_000_000_000 + number)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_it_sends_we_read(cluster: Cluster, confluent: Any, codec: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "compression.type": codec,
            "linger.ms": 20,
            "enable.idempotence": True,
        }
    )
    for number in range(100):
        producer.produce(
            topic,
            b"%d" % number * 20 if number % 10 else None,
            b"key" if number % 3 else None,
            headers=[("name", b"value"), ("null", None)] if number % 2 else None,
            timestamp=1_700_000_000_000 + number,
        )
    assert producer.flush(30) == 0
    for number, record in enumerate(read_all(cluster.bootstrap, topic)):
        assert record.offset == number
        assert record.value == (b"%d" % number * 20 if number % 10 else None)
        assert record.key == (b"key" if number % 3 else None)
        assert list(record.headers) == ([("name", b"value"), ("null", None)] if number % 2 else [])
        assert record.timestamp == 1_700_000_000_000 + number


def test_ten_thousand_keys_land_where_its_do(cluster: Cluster, confluent: Any) -> None:
    [ours, theirs] = [create_topic(cluster.bootstrap, cluster.new_name(), 7) for _ in range(2)]
    generator = random.Random(7)
    keys = {generator.randbytes(generator.randrange(1, 40)) for _ in range(10_000)}
    other = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random", "linger.ms": 20}
    )
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=20) as producer:
        for key in keys:
            producer.send(ours, None, key)
            other.produce(theirs, None, key)
        assert other.flush(30) == 0
    placed = [
        {(record.key, record.partition) for record in read_all(cluster.bootstrap, topic, 7)}
        for topic in (ours, theirs)
    ]
    assert len(placed[0]) == len(keys)
    assert placed[0] == placed[1]


class ConfluentPoller:
    """A member of a group on librdkafka, polled by a thread."""

    def __init__(self, confluent: Any, settings: dict[str, object], topic: str) -> None:
        self.owned: frozenset[TopicPartition] = frozenset()
        self.values: list[bytes] = []
        self._consumer = confluent.Consumer(settings)
        self._consumer.subscribe([topic])
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def close(self) -> None:
        self._is_ending.set()
        self._thread.join(30)

    def _poll(self) -> None:
        while not self._is_ending.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(message.value())
            self.owned = frozenset(
                TopicPartition(each.topic, each.partition) for each in self._consumer.assignment()
            )
        self._consumer.close()


@pytest.fixture(params=["range", "roundrobin", "cooperative-sticky"])
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


@pytest.mark.parametrize("we_lead", [True, False])
def test_one_group_of_both(cluster: Cluster, confluent: Any, strategy: str, we_lead: bool) -> None:
    """Whoever leads, the other understands what it has assigned."""
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 4)
    group = cluster.new_name("group")
    theirs: dict[str, object] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": strategy,
        "heartbeat.interval.ms": 300,
    }

    def our_member() -> Poller:
        consumer = Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            partition_assignment_strategy=strategy,
            heartbeat_interval_ms=300,
        )
        consumer.subscribe([topic])
        return Poller(consumer)

    members: list[Poller | ConfluentPoller] = []
    try:
        for is_ours in (we_lead, not we_lead):
            members.append(our_member() if is_ours else ConfluentPoller(confluent, theirs, topic))
            wait_for(lambda: all(member.owned for member in members), "it has joined")
        wait_for(
            lambda: (
                sorted(each for member in members for each in member.owned)
                == partitions_of(topic, 4)
                and all(len(member.owned) == 2 for member in members)
            ),
            "both have two partitions",
        )
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for index, value in enumerate(numbers(0, 40)):
                producer.send(topic, value, partition=index % 4)

        def seen() -> list[bytes]:
            return [
                value or b""
                for member in members
                for value in (
                    values_of(member.records) if isinstance(member, Poller) else member.values
                )
            ]

        wait_for(lambda: len(seen()) >= 40, "all records have come")
        assert sorted(seen()) == sorted(numbers(0, 40))
    finally:
        for member in members:
            member.close()
