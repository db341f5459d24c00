"""A redrive in a cluster of processes, while its runner and the brokers that it needs are killed.

A runner that is gone, killed or with an error, is started anew and carries on with the task, as
somebody at a terminal would have it. In the end each letter must have been sent back once, for
readers of what is committed, and the task must know it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from headwater import Producer
from headwater.delivery import Redrives
from headwater.delivery.redrive.tasks.task_topic import TASK_TOPIC
from headwater.java.processes import kill_process, start_process
from headwater.testing.broker_process import wait_until
from tests.support.brokers.three_brokers import BROKER_IDS, ThreeBrokers
from tests.support.traffic.traffic import PARTITION_COUNT
from tests.support.values.dead_letters import our_headers
from tests.support.values.whole_topic import read_topic

_TIMEOUT_S: Final = 180.0
#: How many letters go between two kills, at least.
_PROGRESS_MAX: Final = 60
#: It tells of each transaction, and ends when the task has.
_PROGRAM: Final = """
import sys
from headwater.delivery import RedrivePlan, Redrives, To
from headwater.delivery.redrive import pace
from headwater.delivery.redrive.tasks import task as task_module
pace.BATCH_LETTERS_MAX = 10
task_module.SILENCE_MS = 0  # Nobody waits here until a runner is missed.
bootstrap, source, target, path, task = sys.argv[1:]
redrives = Redrives(bootstrap_servers=bootstrap)

def tell(told):
    with open(path, "a") as file:
        file.write(f"{told.id} {told.progress.counts.sent}\\n")

if not task:
    redrives.run(RedrivePlan(source=source, to=To.TOPIC, topic=target, rate=100.0),
                 on_progress=tell)
elif not redrives.task(task).progress.state.is_final:
    redrives.resume(task, on_progress=tell)
"""


class Figures(NamedTuple):
    """What a storm came to."""

    letter_count: int
    kill_count: int
    runner_count: int


class RedriveStorm:
    def __init__(self, cluster: ThreeBrokers, name: str, path: Path, seed: int) -> None:
        self._cluster = cluster
        self._path = path
        self._chance = random.Random(seed)
        self.source, self.target = f"dlq.{name}", f"orders.{name}"
        for topic in (self.source, self.target):
            cluster.create_topic(topic, PARTITION_COUNT)
        path.touch()
        self._kill_count = self._runner_count = 0

    def run(self, kill_count: int, letter_count: int) -> Figures:
        self._fill(letter_count)
        runner = self._start()
        try:
            while self._kill_count < kill_count:
                sent_count = self._sent_count() + self._chance.randint(1, _PROGRESS_MAX)
                runner = self._keep_up(runner, lambda: self._sent_count() >= sent_count)  # noqa: B023
                if runner.poll() == 0:
                    break
                if self._kill_count % 2:
                    self._kill_broker()
                else:
                    kill_process(runner)
                    self._kill_count += 1
            self._cluster.heal()
            runner = self._keep_up(runner, lambda: False)
        finally:
            kill_process(runner)
        self._check(letter_count)
        return Figures(letter_count, self._kill_count, self._runner_count)

    def _fill(self, letter_count: int) -> None:
        with Producer(bootstrap_servers=self._cluster.bootstrap) as producer:
            for number in range(letter_count):
                text = b"%d" % number
                producer.send(self.source, text, text, headers=our_headers(number))

    def _lines(self) -> list[list[str]]:
        return [line.split() for line in self._path.read_text().splitlines()]

    def _sent_count(self) -> int:
        lines = self._lines()
        return int(lines[-1][1]) if lines else 0

    def _start(self) -> subprocess.Popen[bytes]:
        lines = self._lines()
        task = lines[0][0] if lines else ""
        arguments = [self._cluster.bootstrap, self.source, self.target, str(self._path), task]
        self._runner_count += 1
        return start_process(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _keep_up(
        self, runner: subprocess.Popen[bytes], condition: Callable[[], bool]
    ) -> subprocess.Popen[bytes]:
        """Wait for it, or until the task is at its end; a runner that is gone is started anew."""

        def holds() -> bool:
            nonlocal runner
            if runner.poll() not in (None, 0):
                time.sleep(0.5)
                runner = self._start()
            return runner.poll() == 0 or condition()

        wait_until(holds, "the redrive goes on", _TIMEOUT_S)
        return runner

    def _kill_broker(self) -> None:
        """One that the task cannot do without at this moment."""
        cluster = self._cluster
        partition = self._chance.randrange(PARTITION_COUNT)
        needed = self._chance.choice([self.source, self.target, TASK_TOPIC, None])
        if needed is None:
            leader = cluster.coordinator_of_transactions(f"__redrive.{self.source}")
        else:
            leader = cluster.leader_of(needed, 0 if needed == TASK_TOPIC else partition)
        node = cluster.nodes[leader if leader in BROKER_IDS else self._chance.choice(BROKER_IDS)]
        node.kill()
        self._kill_count += 1
        time.sleep(self._chance.uniform(0, 1))
        node.start()
        for topic in (self.source, self.target):
            for number in range(PARTITION_COUNT):
                cluster.wait_in_sync(topic, number, len(BROKER_IDS))
        cluster.wait_in_sync(TASK_TOPIC, 0, len(BROKER_IDS))

    def _check(self, letter_count: int) -> None:
        found = read_topic(self._cluster.bootstrap, self.target, PARTITION_COUNT)
        sent = sorted(int(value) for values in found.values() for value in values)
        assert sent == list(range(letter_count))
        redrives = Redrives(bootstrap_servers=self._cluster.bootstrap)
        tasks = [task for task in redrives.tasks() if task.plan.source == self.source]
        counts = [task.progress.counts for task in tasks]
        assert sum(each.sent for each in counts) == letter_count
        assert counts[-1].sent + counts[-1].already == counts[-1].read == letter_count
