"""A producer that writes steadily with acks=all and notes when each record was acknowledged.

`python -m bench.cluster.writer write ARGUMENTS` is the process; `SteadyWriter` is for whoever
breaks something meanwhile. The client is librdkafka, told to look for new leaders quickly, so that
what is seen is the cluster's doing and not the client's patience.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from bench import job_process
from bench.broker.raw_client import wait_until
from bench.cluster.clusters import Cluster
from headwater.java.processes import kill_process

_NANOSECONDS = 1_000_000_000
_BEGIN_TIMEOUT_S = 120.0
_FLUSH_TIMEOUT_S = 120.0
#: The file that says that a record was acknowledged is called like the one that ends the writing.
_BEGUN = ".begun"
_RECORD_SIZE_BYTES = 100


class Acknowledged(NamedTuple):
    """A record's partition and its two moments, on the clock of all processes of the machine."""

    partition: int
    sent_ns: int
    acknowledged_ns: int


class SteadyWriter:
    """Writes until `finish`; it is entered when the first record was acknowledged."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        stop_path: Path,
        *,
        partition_count: int = 1,
        rate_per_s: float,
    ) -> None:
        self._stop_path, self._begun_path = stop_path, stop_path.with_suffix(_BEGUN)
        self._forget_files()
        self._process = job_process.start_job(
            __name__,
            "write",
            bootstrap=cluster.bootstrap,
            topic=topic,
            partition_count=partition_count,
            rate_per_s=rate_per_s,
            stop_path=str(stop_path),
        )

    def __enter__(self) -> Self:
        def has_begun() -> bool:
            if self._process.poll() is not None:
                job_process.finish_job(self._process)
            return self._begun_path.exists()

        try:
            wait_until(has_begun, "No record was acknowledged", _BEGIN_TIMEOUT_S)
        except BaseException:
            kill_process(self._process)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            kill_process(self._process)
        self._forget_files()

    def finish(self) -> list[Acknowledged]:
        """Let it end; everything that it sent has been acknowledged, or RuntimeError."""
        self._stop_path.touch()
        return [Acknowledged(*each) for each in job_process.finish_job(self._process)]

    def _forget_files(self) -> None:
        for path in (self._stop_path, self._begun_path):
            path.unlink(missing_ok=True)


def longest_gap_ms(acknowledged: list[Acknowledged], since_ns: int = 0) -> float:
    """The longest time that passed in a partition between two acknowledgements."""
    last_ns: dict[int, int] = {}
    longest_ns = 0
    for each in sorted(acknowledged, key=lambda each: each.acknowledged_ns):
        before_ns = last_ns.get(each.partition)
        if before_ns is not None and each.acknowledged_ns > since_ns:
            longest_ns = max(longest_ns, each.acknowledged_ns - before_ns)
        last_ns[each.partition] = each.acknowledged_ns
    return longest_ns / 1e6


def write(
    bootstrap: str, topic: str, partition_count: int, rate_per_s: float, stop_path: str
) -> list[tuple[int, int, int]]:
    """Write to the partitions in turn until the file is there; when each record was safe."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 100,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.fast.interval.ms": 50,
        }
    )
    producer.list_topics(topic, 30)
    acknowledged: list[tuple[int, int, int]] = []
    errors: list[object] = []

    def on_delivery(partition: int, sent_ns: int, error: object, _message: object) -> None:
        if error is None:
            if not acknowledged:
                Path(stop_path).with_suffix(_BEGUN).touch()
            acknowledged.append((partition, sent_ns, time.monotonic_ns()))
        else:
            errors.append(error)

    payload = b"x" * _RECORD_SIZE_BYTES
    step_ns = _NANOSECONDS / rate_per_s
    start_ns = time.monotonic_ns()
    number = 0
    while not os.path.exists(stop_path):
        wait_ns = start_ns + number * step_ns - time.monotonic_ns()
        if wait_ns > 0:
            producer.poll(wait_ns / _NANOSECONDS)
            continue
        partition, sent_ns = number % partition_count, time.monotonic_ns()
        producer.produce(
            topic,
            payload,
            partition=partition,
            on_delivery=partial(on_delivery, partition, sent_ns),
        )
        number += 1
        producer.poll(0)
    left = producer.flush(_FLUSH_TIMEOUT_S)
    if left or errors:
        raise RuntimeError(f"{left} records were not acknowledged, errors: {errors[:3]}")
    return acknowledged


if __name__ == "__main__":
    job_process.answer({"write": write})
