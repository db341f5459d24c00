"""Exactly once with a real Spark that is killed: at each halt point, in part or as a whole.

A query copies a topic in several batches. In the second one a process halts at a point of the
protocol, and something is killed: that process, which Spark notices; all of Spark; all of Spark but
that process, which later goes on; an executor of a cluster; or the broker. Then the query goes on,
or is started again. What readers of committed records see must be what there was, each record once,
and no transaction may be left open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.client.admin import Admin
from headwater.client.producer.producer import Producer
from headwater.pipeline.sink.exactly_once.halt_points import AFTER_WRITE, HALT_POINTS
from headwater.testing.running_broker import RunningBroker
from headwater.testing.spark_cluster import SparkCluster
from tests.support.brokers.serve_process import ServeProcess, serving
from tests.support.spark.exactly_once_copy import CopyJob, start_copy
from tests.support.spark.process import SparkProcess, parent_of
from tests.support.values.whole_topic import create_topic, read_topic

PROGRAM = "tests.support.spark.exactly_once_copy"
ROW_COUNT = 60
ROWS_PER_BATCH = 20
HALT_BATCH = 1


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """A Spark of which only parts are killed."""
    with SparkProcess(PROGRAM, tmp_path_factory.mktemp("spark")) as process:
        yield process


def make_job(bootstrap: str, directory: Path) -> CopyJob:
    name = f"copy-{uuid.uuid4()}"
    create_topic(bootstrap, f"{name}-in")
    create_topic(bootstrap, f"{name}-out")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(ROW_COUNT):
            producer.send(f"{name}-in", b"row %d" % number, partition=number % 2)
    return CopyJob(
        bootstrap, f"{name}-in", f"{name}-out", str(directory / "checkpoint"), ROWS_PER_BATCH
    )


def start_halting(process: SparkProcess, job: CopyJob, point: str) -> int:
    """The process that halts at the point."""
    process.arm(point, HALT_BATCH)
    process.send(job.to_line())
    return process.wait_halted(point)


def run_to_the_end(job: CopyJob, spark: SparkSession) -> None:
    """Start the query again, in a Spark that nobody disturbs."""
    query = start_copy(spark, job)
    query.awaitTermination()
    assert query.exception() is None


def check_copy(job: CopyJob) -> None:
    copied = read_topic(job.bootstrap, job.target)
    found = Counter(value for values in copied.values() for value in values)
    assert found == Counter(b"row %d" % number for number in range(ROW_COUNT))
    with Admin(bootstrap_servers=job.bootstrap) as admin:
        assert admin.open_transactions(r"headwater-spark\..*") == {}


@pytest.mark.full
@pytest.mark.parametrize("point", HALT_POINTS)
def test_all_of_spark_is_killed(
    point: str, broker: RunningBroker, spark: SparkSession, tmp_path: Path
) -> None:
    job = make_job(broker.bootstrap, tmp_path)
    with SparkProcess(PROGRAM, tmp_path) as process:
        start_halting(process, job, point)
    run_to_the_end(job, spark)
    check_copy(job)


@pytest.mark.full
@pytest.mark.parametrize("point", HALT_POINTS)
def test_one_process_is_killed(
    point: str, broker: RunningBroker, lasting: SparkProcess, tmp_path: Path
) -> None:
    job = make_job(broker.bootstrap, tmp_path)
    os.kill(start_halting(lasting, job, point), signal.SIGKILL)
    if point == AFTER_WRITE:
        # The task is tried again, and the query does not even notice.
        assert lasting.answer() == "done"
    else:
        # What commits is gone, so the query fails, and is started again.
        assert lasting.answer().startswith("failed:")
        lasting.send(job.to_line())
        assert lasting.answer() == "done"
    check_copy(job)


@pytest.mark.full
@pytest.mark.parametrize("point", HALT_POINTS)
def test_one_process_lives_on(
    point: str, broker: RunningBroker, spark: SparkSession, tmp_path: Path
) -> None:
    job = make_job(broker.bootstrap, tmp_path)
    with SparkProcess(PROGRAM, tmp_path) as process:
        late = start_halting(process, job, point)
        process.kill(but=late)
        run_to_the_end(job, spark)
        check_copy(job)
        process.let_go(point)
        process.wait_gone(late)
    check_copy(job)


@pytest.mark.full
@pytest.mark.parametrize("point", HALT_POINTS)
def test_the_broker_is_killed(point: str, lasting: SparkProcess, tmp_path: Path) -> None:
    with serving(tmp_path / "broker") as first:
        job = make_job(first.address, tmp_path)
        start_halting(lasting, job, point)
        first.stop(signal.SIGKILL)
    second = ServeProcess("--listen", job.bootstrap, "--data-dir", str(tmp_path / "broker"))
    try:
        second.wait_ready()
        lasting.let_go(point)
        # It may have been too much for the query: then it is started again.
        while lasting.answer() != "done":
            lasting.send(job.to_line())
        check_copy(job)
    finally:
        second.stop()


@pytest.mark.full
@pytest.mark.parametrize("is_spared", [False, True])
def test_an_executor_is_killed(is_spared: bool, broker: RunningBroker, tmp_path: Path) -> None:
    """On a cluster of two workers; with its task, or without, which then lives on."""
    job = make_job(broker.bootstrap, tmp_path)
    with (
        SparkCluster(tmp_path / "cluster") as cluster,
        SparkProcess(PROGRAM, tmp_path, cluster.master) as process,
    ):
        task = start_halting(process, job, AFTER_WRITE)
        forker = parent_of(task)
        executor = parent_of(forker)
        assert executor in cluster.executor_pids()
        # Without the process that started it, a task does not hear that its executor is gone.
        for victim in [forker, executor] if is_spared else [executor, forker, task]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        assert process.answer() == "done"
        check_copy(job)
        process.let_go(AFTER_WRITE)
        process.wait_gone(task)
    check_copy(job)
