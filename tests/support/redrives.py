"""A dead-letter topic with letters, and the topics that they came from, on a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater import Admin, Consumer, NewTopic, Producer, TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery import RedrivePlan, Redrives, To
from tests.support.brokers.clusters import Cluster
from tests.support.values.dead_letters import our_headers

PARTITIONS = 2


class LetterBox:
    """Letters of a group of its own, whose messages were in a topic of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.bootstrap = cluster.bootstrap
        self.orders = cluster.new_name("orders")
        self.group = cluster.new_name("billing")
        self.retry = f"retry.{self.group}"
        self.dlq = f"dlq.{self.group}"
        self.create(self.orders, self.retry, self.dlq)
        self.redrives = Redrives(bootstrap_servers=cluster.bootstrap)

    def create(self, *topics: str) -> None:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics])

    def fill(self, numbers: Iterable[int], **told: Any) -> None:
        """A letter for each number, which is its value and the offset of its message."""
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for number in numbers:
                headers = our_headers(number, **{"topic": self.orders, "group": self.group} | told)
                producer.send(
                    self.dlq,
                    b"%d" % number,
                    b"key-%d" % number,
                    partition=number % PARTITIONS,
                    headers=headers,
                )

    def plan(self, to: To = To.ORIGIN, **given: Any) -> RedrivePlan:
        return RedrivePlan(source=self.dlq, to=to, **given)

    def read(self, topic: str) -> list[ConsumerRecord]:
        """All that is committed in a topic."""
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        with Consumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            records: list[ConsumerRecord] = []
            while any(consumer.position(each) < ends[each] for each in partitions):
                records += consumer.poll(timeout_s=0.2)
        return records

    def values(self, topic: str) -> list[int]:
        return sorted(int(record.value) for record in self.read(topic))
