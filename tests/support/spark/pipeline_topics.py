"""Writing values to topics with one partition and reading them back, for tests of pipelines."""

from __future__ import annotations

from collections.abc import Iterable

from headwater import Consumer, ConsumerRecord, Producer, TopicPartition


def send_values(bootstrap: str, topic: str, values: Iterable[bytes | None]) -> None:
    """Write values under the key `k`."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value, key=b"k")


def read_records(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """All committed records, up to the end as it is now."""
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning([partition])
        end = consumer.end_offsets([partition])[partition]
        found: list[ConsumerRecord] = []
        while consumer.position(partition) < end:
            found += consumer.poll(timeout_s=1)
        return found
