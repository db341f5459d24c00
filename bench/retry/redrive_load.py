"""Dead letters that are written for a redrive, and a count of what came of it."""

from __future__ import annotations

import subprocess
import time

from bench import job_process

_VALUE = bytes(100)
_WAIT_S = 30.0


def start_job(job: str, **arguments: object) -> subprocess.Popen[bytes]:
    return job_process.start_job("bench.retry.redrive_load", job, **arguments)


def write_letters(bootstrap: str, topic: str, origin: str, letter_count: int) -> int:
    """Dead letters with the headers that brokers give them."""
    from headwater import Producer

    group = topic.encode()
    origin_bytes = origin.encode()
    now = b"%d" % (time.time_ns() // 1_000_000)
    with Producer(bootstrap_servers=bootstrap, linger_ms=10) as producer:
        for number in range(letter_count):
            headers = (
                ("headwater-origin", f"{origin}-0@{number}".encode()),
                ("headwater-error", b"the bank is closed"),
                ("headwater-attempts", b"6"),
                ("headwater-first-failure", now),
                ("headwater-last-failure", now),
                ("__dlq.errors.topic", origin_bytes),
                ("__dlq.errors.partition", b"0"),
                ("__dlq.errors.offset", b"%d" % number),
                ("__dlq.errors.group", group),
                ("__dlq.errors.delivery.count", b"6"),
                ("__dlq.errors.message", b"the bank is closed"),
            )
            producer.send(topic, _VALUE, b"key-%d" % number, headers=headers)
        producer.flush(120.0)
    return letter_count


def count_arrived(bootstrap: str, topic: str, partition_count: int, letter_count: int) -> int:
    """How many committed records a topic has, none of them twice."""
    from headwater import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    keys: set[bytes] = set()
    count = 0
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(partition_count)])
        silent_s = time.monotonic() + _WAIT_S
        while count < letter_count and time.monotonic() < silent_s:
            records = consumer.poll(1.0, 10_000)
            if records:
                silent_s = time.monotonic() + _WAIT_S
            count += len(records)
            keys.update(record.key for record in records)
        count += len(consumer.poll(1.0, 10_000))
    if len(keys) != count:
        raise RuntimeError(f"of {count:,} letters {count - len(keys):,} came twice")
    return count


if __name__ == "__main__":
    job_process.answer({"write_letters": write_letters, "count_arrived": count_arrived})
