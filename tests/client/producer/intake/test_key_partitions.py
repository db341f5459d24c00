"""Keys go to the partitions that librdkafka's `murmur2_random` gives them, and so Java's client."""

import random
import time

import confluent_kafka

from headwater.base.ids import TopicPartition
from headwater.client.admin import NewTopic, require_all
from headwater.client.admin.admin import Admin
from headwater.client.consumer.consumer import Consumer
from headwater.client.producer.producer import Producer
from tests.support.brokers.clusters import Cluster

KEY_COUNT = 10_000
PARTITION_COUNT = 7
TIMEOUT_S = 60.0


def random_keys() -> list[bytes]:
    generator = random.Random(20)
    keys: set[bytes] = set()
    while len(keys) < KEY_COUNT:
        # An empty key is one to us and to Java, and none to librdkafka.
        keys.add(generator.randbytes(generator.randrange(1, 41)))
    return sorted(keys)


def partitions_by_key(cluster: Cluster, topic: str) -> dict[bytes, int]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", max_poll_records=5000
    ) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITION_COUNT)])
        found: dict[bytes, int] = {}
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(found) < KEY_COUNT and time.monotonic() < deadline_s:
            found |= {record.key: record.partition for record in consumer.poll(0.5)}
        return found


def test_keys_go_where_confluents_producer_sends_them(cluster: Cluster) -> None:
    ours, theirs = cluster.new_name("ours"), cluster.new_name("theirs")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        topics = [NewTopic(name, partition_count=PARTITION_COUNT) for name in (ours, theirs)]
        require_all(admin.create_topics(topics))
    keys = random_keys()
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        futures = [producer.send(ours, b"value", key) for key in keys]
        producer.flush(TIMEOUT_S)
        partitions = {
            key: future.result().partition for key, future in zip(keys, futures, strict=True)
        }
    confluent = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "partitioner": "murmur2_random",
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    for key in keys:
        confluent.produce(theirs, value=b"value", key=key)
        confluent.poll(0)
    assert confluent.flush(TIMEOUT_S) == 0
    expected = partitions_by_key(cluster, theirs)
    assert len(expected) == KEY_COUNT
    assert partitions == expected
    assert partitions_by_key(cluster, ours) == expected
