"""Workers as processes on a cluster of processes, while both are killed.

Handlers fail by chance. Each writes down, in a file that all share, what it is about to say of its
record. In the end every record must have one outcome: it was handled, or it is a dead letter, and
on its way it was sent on once after each failure.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from headwater import Admin, Consumer, KafkaError, Producer, TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.java.processes import kill_process, start_process
from headwater.sim.handling.ledger import HandlerRun, HandlingLedger, Tenure, Verdict
from headwater.sim.handling.outcomes import (
    Outcomes,
    check_attempts,
    check_bodies,
    check_one_outcome,
    not_committed,
)
from headwater.testing.broker_process import wait_until
from tests.support.brokers.headwater_cluster import HeadwaterCluster
from tests.support.brokers.three_brokers import BROKER_IDS
from tests.support.traffic.traffic import PARTITION_COUNT

_ATTEMPTS_MAX: Final = 2
_TIMEOUT_S: Final = 180.0

_PROGRAM: Final = """
import os, random, sys
from headwater.client.failures.failed_record import origin_of
from headwater.delivery import DeadLetter, Worker
bootstrap, topic, group, path, instance, ratio = sys.argv[1:]

def handle(record):
    attempt = int(dict(record.headers).get("headwater-attempts", b"0"))
    chance = random.random() / float(ratio)
    verdict = "dead" if chance < 0.2 else "failed" if chance < 1 else "done"
    line = f"{origin_of(record)} {attempt} {verdict}\\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(file, line.encode())
    os.close(file)
    if verdict == "dead":
        raise DeadLetter("refused")
    if verdict == "failed":
        raise OSError("away")

Worker(topic, group=group, handler=handle, bootstrap_servers=bootstrap, instance=instance,
       session_timeout_ms=6000, heartbeat_interval_ms=500, commit_interval=0.1).run()
"""


class Figures(NamedTuple):
    """What a storm came to."""

    record_count: int
    run_count: int
    shown_count: int
    dead_count: int
    kill_count: int


class WorkerStorm:
    def __init__(
        self, cluster: HeadwaterCluster, group: str, path: Path, seed: int, worker_count: int = 2
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._path = path
        self._chance = random.Random(seed)
        self.topic, self.retry, self.dead = f"orders.{group}", f"retry.{group}", f"dlq.{group}"
        self._kill_count = 0
        self._sent_count = 0
        cluster.create_topic(self.topic, PARTITION_COUNT)
        cluster.create_topic(
            self.dead, PARTITION_COUNT, {"errors.deadletterqueue.group.enable": "true"}
        )
        policy = {
            "delay.mode": "retry",
            "retry.delays": "100ms,300ms",
            "retry.dead.letter.topic": self.dead,
        }
        cluster.create_topic(self.retry, PARTITION_COUNT, policy)
        path.touch()
        self._workers = [self._start(number) for number in range(worker_count)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        cluster = self._cluster
        arguments = [
            cluster.bootstrap,
            self.topic,
            self._group,
            str(self._path),
            f"worker-{number}",
        ]
        command = [sys.executable, "-c", _PROGRAM, *arguments, "0.4"]
        return start_process(command, stdout=None, stderr=None)

    def run(self, kill_count: int, record_count: int) -> Figures:
        try:
            for number in range(kill_count):
                self._send(record_count // kill_count)
                self._await_progress()
                if number % 2:
                    self._kill_broker()
                else:
                    self._kill_worker()
            self._cluster.heal()
            return self._check(self._await_end())
        finally:
            self._end()

    def _send(self, count: int) -> None:
        with Producer(bootstrap_servers=self._cluster.bootstrap) as producer:
            for _ in range(count):
                number = self._sent_count
                self._sent_count += 1
                producer.send(self.topic, b"%d" % number, b"%d" % (number % 11))

    def _line_count(self) -> int:
        return len(self._path.read_bytes().splitlines())

    def _await_progress(self) -> None:
        """Something of what was sent is being handled."""
        wanted = self._line_count() + self._chance.randint(1, 20)
        self._keep_up(lambda: self._line_count() >= wanted, "records are handled")

    def _keep_up(self, condition: Callable[[], bool], what: str) -> None:
        """Wait, and start workers anew that ended: nobody was there to talk to, say."""

        def holds() -> bool:
            for number, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    self._workers[number] = self._start(number)
            return condition()

        wait_until(holds, what, _TIMEOUT_S)

    def _kill_worker(self) -> None:
        number = self._chance.randrange(len(self._workers))
        kill_process(self._workers[number])
        self._kill_count += 1
        self._workers[number] = self._start(number)

    def _kill_broker(self) -> None:
        broker = self._cluster.brokers[self._chance.choice(BROKER_IDS)]
        broker.kill()
        self._kill_count += 1
        broker.start()
        for topic in (self.topic, self.retry, self.dead):
            for number in range(PARTITION_COUNT):
                self._cluster.wait_in_sync(topic, number, len(BROKER_IDS))

    def _end(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(30)
            kill_process(worker)

    # -- the end ---------------------------------------------------------------------------------

    def _await_end(self) -> list[ConsumerRecord]:
        """What is there once nobody lags behind, and each record has come to its end."""
        records: list[ConsumerRecord] = []

        def is_over() -> bool:
            records[:] = self._read()
            if not_committed(records, self._committed()):
                return False
            outcomes = self._outcomes(records)
            return outcomes.dead.total() + self._done_count(outcomes) >= self._sent_count

        self._keep_up(is_over, "each record has an outcome")
        time.sleep(1.0)  # What would come twice comes now.
        return self._read()

    def _outcomes(self, records: Sequence[ConsumerRecord]) -> Outcomes:
        return Outcomes.of(records, self.topic, self.retry, self.dead)

    def _done_count(self, outcomes: Outcomes) -> int:
        """Records that were handled where they were seen last."""
        done = {
            (run.origin, run.attempt) for run in self._ledger().runs if run.verdict is Verdict.DONE
        }
        return sum(
            (origin, attempt) in done and not outcomes.went_out(origin, attempt)
            for origin in outcomes.sources
            for attempt in range(_ATTEMPTS_MAX + 1)
            if outcomes.came_in(origin, attempt)
        )

    def _check(self, records: list[ConsumerRecord]) -> Figures:
        outcomes, ledger = self._outcomes(records), self._ledger()
        assert len(outcomes.sources) == self._sent_count
        check_bodies(outcomes)
        check_one_outcome(outcomes, ledger, _ATTEMPTS_MAX, has_deserializer=False)
        check_attempts(outcomes, ledger, _ATTEMPTS_MAX, has_deserializer=False)
        shown_count, dead_count = outcomes.shown.total(), outcomes.dead.total()
        return Figures(
            self._sent_count, len(ledger.runs), shown_count, dead_count, self._kill_count
        )

    def _ledger(self) -> HandlingLedger:
        """What handlers wrote; nobody knows here in whose time."""
        ledger = HandlingLedger(self._group)
        tenure = Tenure(0, "", TopicPartition(self.topic, 0), 0.0)
        for line in self._path.read_text().splitlines():
            origin, attempt, verdict = line.split()
            run = HandlerRun(tenure, -1, None, origin, int(attempt), 0.0, 0.0, Verdict(verdict))
            ledger.runs.append(run)
        return ledger

    def _partitions(self, *topics: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number) for topic in topics for number in range(PARTITION_COUNT)
        ]

    def _committed(self) -> dict[TopicPartition, int]:
        with Admin(bootstrap_servers=self._cluster.bootstrap) as admin:
            found = admin.list_group_offsets([self._group], require_stable=True)[self._group]
        assert not isinstance(found, KafkaError), found
        return {
            partition: found[partition].offset if partition in found else 0
            for partition in self._partitions(self.topic, self.retry)
        }

    def _read(self) -> list[ConsumerRecord]:
        """What a reader of committed data finds up to the end."""
        records: list[ConsumerRecord] = []
        partitions = self._partitions(self.topic, self.retry, self.dead)
        with Consumer(
            bootstrap_servers=self._cluster.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(each) < end for each, end in ends.items()):
                records += consumer.poll(0.2)
        return records
