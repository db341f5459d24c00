"""Who sends and handles while a tenth of all records fails: processes of their own.

A record's value begins with its number and the time at which it was sent; the number says what
becomes of it. The clock is one for all processes of a machine, so a handler can tell how long ago
that was, and of a retry how long ago it was due.
"""

from __future__ import annotations

import struct
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

from bench import job_process

RECORD_SIZE_BYTES = 100
#: Every so many fails once, and of those every so many fails always.
FAIL_EVERY = 10
DIE_EVERY = 100
DELAYS = ("500ms", "1s")
ATTEMPTS = len(DELAYS)

_HEAD = struct.Struct(">qq")
_PADDING = bytes(RECORD_SIZE_BYTES - _HEAD.size)
_TICK_S = 0.01
#: One of so many latencies is told: enough for a curve.
_SAMPLE_EVERY = 10


def start_job(job: str, **arguments: object) -> subprocess.Popen[bytes]:
    return job_process.start_job("bench.retry.failing_load", job, **arguments)


def send(bootstrap: str, topic: str, record_count: int, rate_per_s: int) -> float:
    """Send records at a rate; when it began, in seconds since 1970."""
    from headwater import Producer

    with Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        producer.partitions_for(topic)
        begun_at_s, begun_s = time.time(), time.perf_counter()
        sent_count = 0
        while sent_count < record_count:
            elapsed_s = time.perf_counter() - begun_s
            due_count = min(record_count, int((elapsed_s + _TICK_S) * rate_per_s))
            now_ns = time.time_ns()
            for number in range(sent_count, due_count):
                producer.send(topic, _HEAD.pack(number, now_ns) + _PADDING)
            sent_count = max(sent_count, due_count)
            time.sleep(max(0.0, sent_count / rate_per_s - (time.perf_counter() - begun_s)))
        producer.flush(60.0)
    return begun_at_s


class Failure(Exception):
    """What the handler raises for records whose number says so."""


@dataclass(slots=True)
class Outcomes:
    """What the handler saw, and what it should have seen."""

    topic: str
    record_count: int
    has_failures: bool
    good_ms: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    #: By number, how often a record was shown.
    shown_counts: bytearray = field(init=False)
    first_attempt_count: int = 0
    first_attempts_end_s: float = 0.0
    left_count: int = field(init=False)

    def __post_init__(self) -> None:
        self.shown_counts = bytearray(self.record_count)
        self.left_count = sum(map(self.expected_count, range(self.record_count)))

    def expected_count(self, number: int) -> int:
        """How often a record is shown: once, and again as its number says."""
        if not self.has_failures or number % FAIL_EVERY:
            return 1
        return 1 + (ATTEMPTS if number % DIE_EVERY == 0 else 1)

    def handle(self, record: Any) -> None:
        now_ns = time.time_ns()
        number, sent_ns = _HEAD.unpack_from(record.value)
        self.shown_counts[number] += 1
        self.left_count -= 1
        if record.topic == self.topic:
            self.first_attempt_count += 1
            if self.first_attempt_count == self.record_count:
                self.first_attempts_end_s = now_ns / 1e9
            if self.has_failures and number % FAIL_EVERY == 0:
                raise Failure("the first attempt")
            self.good_ms.append((now_ns - sent_ns) / 1e6)
            return
        # The time of a record that is shown again is that at which it was due.
        self.late_ms.append(now_ns / 1e6 - record.timestamp)
        if number % DIE_EVERY == 0:
            raise Failure("always")

    def check(self) -> None:
        """Each was shown as often as it had to be, and none early."""
        wrong = [
            number
            for number, count in enumerate(self.shown_counts)
            if count != self.expected_count(number)
        ]
        if wrong:
            first = wrong[0]
            raise RuntimeError(
                f"{len(wrong):,} records were not shown as often as they had to be, the first of "
                f"them number {first}: {self.shown_counts[first]} times"
            )
        early_count = sum(late < 0 for late in self.late_ms)
        if early_count:
            raise RuntimeError(f"{early_count:,} retries came before they were due")


def work(
    bootstrap: str, topic: str, group: str, record_count: int, has_failures: bool
) -> dict[str, Any]:
    """Handle all records until each has its outcome; what that was like."""
    from headwater.delivery import RetryPolicy, Worker

    outcomes = Outcomes(topic, record_count, has_failures)

    def handle(record: Any) -> None:
        try:
            outcomes.handle(record)
        finally:
            if outcomes.left_count == 0:
                worker.stop()

    worker = Worker(
        [topic],
        group=group,
        handler=handle,
        bootstrap_servers=bootstrap,
        retry=RetryPolicy(delays=DELAYS, attempts=ATTEMPTS),
        retry_partitions=4,
        create_topics=True,
        # In the end only those are left that always fail, which is no reason to stop here.
        circuit_failure_ratio=1.0,
    )
    worker.run()
    outcomes.check()
    metrics = worker.metrics()
    return {
        "good_ms": outcomes.good_ms[::_SAMPLE_EVERY],
        "late_ms": outcomes.late_ms,
        "ended_s": outcomes.first_attempts_end_s,
        "retried_count": metrics.retried_count,
        "transaction_count": metrics.transaction_count,
    }


def count_letters(bootstrap: str, topic: str, letter_count: int, wait_s: float = 30.0) -> int:
    """How many committed records a dead-letter topic has, once it has so many or time is over."""
    from headwater import Consumer, TopicPartition

    end_s = time.monotonic() + wait_s
    origins: list[bytes | None] = []
    settings = {
        "bootstrap.servers": bootstrap,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(origins) < letter_count and time.monotonic() < end_s:
            for record in consumer.poll(0.5, 10_000):
                origins.append(dict(record.headers).get("headwater-origin"))
    if len(set(origins)) != len(origins):
        raise RuntimeError("There are dead letters that came twice.")
    return len(origins)


if __name__ == "__main__":
    job_process.answer({"send": send, "work": work, "count_letters": count_letters})
