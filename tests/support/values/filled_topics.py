"""Topics with records in them, for tests of consumers on a running cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.admin import NewTopic
from headwater.client.admin.admin import Admin
from headwater.client.admin.outcomes import require_all
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.producer import Producer
from tests.support.brokers.clusters import Cluster

TIMEOUT_S = 30.0


def new_topic(cluster: Cluster, partition_count: int = 1, **configs: str) -> str:
    """An empty topic; settings have underscores for dots."""
    name = cluster.new_name("consumed")
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        topic = NewTopic(name, partition_count=partition_count, configs=settings)
        require_all(admin.create_topics([topic]))
    return name


def fill(cluster: Cluster, topic: str, count: int, *, partition: int = 0, start: int = 0) -> None:
    """Records whose values are numbers from `start` on, with timestamps of 1000 times as much."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(start, start + count):
            producer.send(
                topic, b"%d" % number, partition=partition, timestamp_ms=1000 * (number + 1)
            )


def delete_before(cluster: Cluster, partition: TopicPartition, offset: int) -> None:
    """Delete the records before an offset."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        require_all(admin.delete_records({partition: offset}))


def read(consumer: Consumer, count: int, **how: Any) -> list[ConsumerRecord]:
    """Poll until there are so many records; no more may come with them."""
    records: list[ConsumerRecord] = []
    end_s = time.monotonic() + TIMEOUT_S
    while len(records) < count and time.monotonic() < end_s:
        records += consumer.poll(1.0, **how)
    assert len(records) == count
    return records


def poll_until(consumer: Consumer, is_true: Callable[[], bool]) -> list[ConsumerRecord]:
    """Poll until something is so."""
    records: list[ConsumerRecord] = []
    end_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end_s:
        records += consumer.poll(0.05)
        if is_true():
            return records
    raise AssertionError("it did not come true")


def numbers(records: list[ConsumerRecord]) -> list[int]:
    return [int(record.value) for record in records]
