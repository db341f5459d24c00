"""`format("headwater")` on a Spark cluster: the same code, with another master.

It is a program of its own, in a process of its own, because a process has one Spark at a time and
the other tests use that one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater import Producer
from headwater.testing.running_broker import RunningBroker
from headwater.testing.spark_cluster import SparkCluster

PROGRAM = Path(__file__).parents[2] / "support" / "spark" / "copy_program.py"
ROW_COUNT = 5000
TIMEOUT_S = 300.0


@pytest.mark.full
def test_records_are_read_and_written_by_executors_and_survive_the_loss_of_one(
    headwater_broker: RunningBroker, tmp_path: Path
) -> None:
    origin = headwater_broker.create_topic(partitions=4)
    target = headwater_broker.create_topic(partitions=2)
    with Producer(bootstrap_servers=headwater_broker.bootstrap) as producer:
        for number in range(ROW_COUNT):
            producer.send(origin, str(number).encode(), key=str(number % 10).encode())

    with SparkCluster(tmp_path / "cluster") as cluster:
        arguments = [cluster.master, headwater_broker.bootstrap, origin, target, str(tmp_path)]
        command = [sys.executable, str(PROGRAM), *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
            try:
                assert program.stdin is not None and program.stdout is not None
                assert program.stdout.readline() == "executors 2\n"
                killed = cluster.executor_pids()[0]
                os.kill(killed, signal.SIGKILL)
                program.stdin.write("go on\n")
                program.stdin.flush()
                told = program.communicate(timeout=TIMEOUT_S)[0]
            finally:
                program.kill()
        assert told.splitlines() == [f"read {ROW_COUNT}", f"copied {ROW_COUNT}"]
        pids = cluster.process_pids
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
