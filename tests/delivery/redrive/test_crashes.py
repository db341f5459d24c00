"""A redrive that is killed at any moment and resumed sends each letter exactly once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from headwater.base.clocks import SystemClock
from headwater.delivery.redrive.tasks import task as task_module
from headwater.delivery.redrive.tasks.task import State
from tests.support.brokers.clusters import KINDS, Cluster, running_cluster
from tests.support.redrives import LetterBox
from tests.support.tiers import rounds

LETTERS = rounds(small=600, full=6_000)
KILLS = rounds(small=3, full=12)

#: Small transactions, so that there are many moments; it says when it has begun.
RUNNER = """
import sys
from headwater.delivery import RedrivePlan, Redrives, To
from headwater.delivery.redrive import pace
from headwater.delivery.redrive.tasks import task as task_module
pace.BATCH_LETTERS_MAX = 7
task_module.SILENCE_MS = 0
bootstrap, source, task = sys.argv[1:]
redrives = Redrives(bootstrap_servers=bootstrap)
def tell(task):
    print(task.id, flush=True)
if task:
    redrives.resume(task, on_progress=tell)
else:
    redrives.run(RedrivePlan(source=source, to=To.ORIGIN), on_progress=tell)
"""


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"))


def test_killed_at_random_and_resumed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody waits here until a runner is missed.
    monkeypatch.setattr(task_module, "SILENCE_MS", 0)
    box = LetterBox(cluster)
    box.fill(range(LETTERS))
    chance = random.Random(7)
    task_id = ""
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, box.bootstrap, box.dlq, task_id],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            task_id = process.stdout.readline().strip() or task_id
            time.sleep(chance.uniform(0, 0.15))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        state = box.redrives.task(task_id).state(SystemClock().wall_ms())
        if state is State.DONE:
            break
        assert state is State.INTERRUPTED
    if box.redrives.task(task_id).progress.state is not State.DONE:
        done = box.redrives.resume(task_id)
        assert done.progress.state is State.DONE
    counts = box.redrives.task(task_id).progress.counts
    assert (counts.read, counts.sent) == (LETTERS, LETTERS)
    assert box.values(box.orders) == list(range(LETTERS))
    assert box.redrives.run(box.plan()).progress.counts.already == LETTERS
