"""Whole runs: from a topic through Spark to a topic, their status, failures, and an orderly end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater import Admin, Consumer, Producer
from headwater.pipeline.runs.run_directory import RunDirectory
from headwater.pipeline.runs.run_record import RunState
from headwater.testing.running_broker import RunningBroker
from tests.support.command import Finished, run_command
from tests.support.spark.patience import patiently
from tests.support.spark.session import SETTINGS

PIPELINE = """\
name: doubling
sources:
  orders:
    topic: ${source}
    schema: id STRING NOT NULL, amount DOUBLE
    dead_letter: ${source}-bad
steps:
  doubled: SELECT id, amount * 2 AS amount FROM orders WHERE amount > 0
sinks:
  out: {topic: "${source}-doubled", key: id}
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        yield running


def make_topics(broker: RunningBroker, *names: str) -> None:
    for name in names:
        broker.create_topic(name, partitions=2)


def send(broker: RunningBroker, topic: str, values: Sequence[str]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value.encode())


def received(broker: RunningBroker, topic: str, count: int) -> list[bytes]:
    """The values of a topic's records, of which there are so many."""
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        group_id=f"reader-of-{topic}-{count}",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe([topic])
        found: list[bytes] = []

        def look() -> bool:
            found.extend(record.value or b"" for record in consumer.poll(0.2))
            return len(found) >= count

        patiently(look)
        return found


def order(number: int) -> str:
    return json.dumps({"id": str(number), "amount": number})


def test_a_pipeline_from_topic_to_topic(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker, "orders", "orders-bad", "orders-doubled")
    file = tmp_path / "pipe.yaml"
    file.write_text(PIPELINE)

    def run(*arguments: str) -> Finished:
        return run_command(
            "pipeline", "run", file, "--once", "--state-dir", tmp_path / "state",
            "--bootstrap-server", broker.bootstrap, "--set", "source=orders", *arguments,
        )  # fmt: skip

    send(broker, "orders", [order(number) for number in range(5)] + ["broken"])
    first = run()
    assert first.exit_code == 0, first.stderr
    told = first.stderr.splitlines()
    assert told[0] == "Planning the pipeline and starting its queries."
    assert told[1].startswith("The query 'orders-dead-letters' has started after ")
    # An order over nothing is no row of the step, and is not rejected either.
    assert told[-1] == "Pipeline 'doubling' has finished: 6 rows read, 4 written, 1 rejected."
    assert any("out: batch 0: 6 rows read, 4 written, 1 rejected, " in line for line in told)
    values = [json.loads(value) for value in received(broker, "orders-doubled", 4)]
    assert sorted(value["amount"] for value in values) == [2.0, 4.0, 6.0, 8.0]
    assert received(broker, "orders-bad", 1) == [b"broken"]

    send(broker, "orders", [order(10)])
    assert run().exit_code == 0
    assert json.loads(received(broker, "orders-doubled", 5)[-1])["amount"] in (20.0, 8.0)

    status = run_command(
        "pipeline", "status", "doubling", "--state-dir", tmp_path / "state", "--json"
    )
    record = json.loads(status.stdout)
    assert (status.exit_code, record["state"], record["mode"]) == (0, "finished", "once")
    [out] = [query for query in record["queries"] if query["name"] == "out"]
    assert (out["batch_id"], out["lag"]) == (1, {"orders": 0})
    # What the run before has counted is not counted again.
    assert record["rows"] == {"read": 1, "written": 1, "rejected": 0} == out["batch_rows"]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        groups = {listing.group_id for listing in admin.list_groups()}
    assert "doubling" in groups
    # The session was there before, and is there still.
    assert spark.range(3).count() == 3


def test_a_run_that_rejects_every_row_is_no_success(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker, "numbers")
    file = tmp_path / "pipe.yaml"
    # A sink that is written batch by batch, and a source that is read twice.
    file.write_text(
        "name: rejecting\n"
        "sources: {numbers: {topic: numbers, schema: id STRING NOT NULL, bad_records: skip}}\n"
        "steps: {both: SELECT id FROM numbers UNION ALL SELECT id FROM numbers}\n"
        f"sinks: {{table: {{lake: {tmp_path}/lake}}}}\n"
    )
    arguments = ("--bootstrap-server", broker.bootstrap, "--state-dir", tmp_path / "state")
    for options, exit_code in ((), 3), (("--allow-all-rejected",), 0):
        send(broker, "numbers", ["1", "2", "3"])
        finished = run_command("pipeline", "run", file, "--once", *arguments, *options)
        assert finished.exit_code == exit_code, finished.stderr
        assert finished.stderr.splitlines()[-2:] == [
            "Pipeline 'rejecting' has finished: 3 rows read, 0 written, 3 rejected.",
            "headwater: warning: 'rejecting' rejected every row that it read and wrote nothing; "
            "check the format and the schema of its source.",
        ]
    send(broker, "numbers", ['{"id": "a"}', '{"id": "b"}', "4"])
    finished = run_command("pipeline", "run", file, "--once", *arguments)
    assert finished.exit_code == 0
    assert finished.stderr.endswith("has finished: 3 rows read, 4 written, 1 rejected.\n")

    # A backfill reads all of it in one batch.
    finished = run_command("pipeline", "run", file, "--from", "1 hour ago", *arguments)
    assert finished.exit_code == 0, finished.stderr
    assert finished.stderr.endswith("has finished: 9 rows read, 4 written, 7 rejected.\n")


def test_a_screen_shows_a_few_rows_of_a_query_that_remembers_many(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker, "many")
    send(broker, "many", [order(number) for number in range(100)])
    file = tmp_path / "counting.yaml"
    file.write_text(
        "sources: {many: {topic: many, schema: id STRING}}\n"
        "steps: {counts: 'SELECT id, count(*) AS orders FROM many GROUP BY id'}\n"
        "sinks: {seen: {screen: true, mode: update, rows: 3}}\n"
    )
    arguments = ("--bootstrap-server", broker.bootstrap, "--state-dir", tmp_path / "state")
    finished = run_command("pipeline", "run", file, "--once", *arguments)
    assert finished.exit_code == 0, finished.stderr
    assert finished.lines[0] == "seen, batch 0"
    assert len(finished.lines) == 8 and finished.lines[6] == "... and 97 more rows"
    assert finished.stderr.endswith("has finished: 100 rows read, 100 written, 0 rejected.\n")


def test_a_query_that_fails_is_a_sentence(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker, "failing")
    send(broker, "failing", ["broken"])
    file = tmp_path / "failing.yaml"
    file.write_text(
        "sources: {failing: {topic: failing, schema: id STRING NOT NULL}}\n"
        "sinks: {seen: {screen: true}}\n"
    )
    arguments = ("--bootstrap-server", broker.bootstrap, "--state-dir", tmp_path / "state")
    finished = run_command("pipeline", "run", file, "--once", *arguments)
    assert finished.exit_code == 1 and "Traceback" not in finished.stderr
    told = finished.stderr.splitlines()[-1]
    assert told.startswith("headwater: 'seen' failed: ")
    record = RunDirectory(tmp_path / "state" / "failing").read()
    assert record is not None and record.state is RunState.FAILED
    assert record.error.rstrip(".") in told

    # What only Spark can find is told with its line.
    file.write_text(file.read_text() + "steps: {x: SELECT nothing FROM failing}\n")
    refused = run_command("pipeline", "run", file, "--once", *arguments)
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1].startswith(f"headwater: {file}:3: step 'x': ")


@pytest.mark.full
def test_a_run_that_is_ended_by_a_signal_goes_on_without_loss(
    broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker, "long", "long-doubled")
    file = tmp_path / "pipe.yaml"
    text = PIPELINE.replace("key: id", "key: id, exactly_once: true")
    file.write_text(text.replace("dead_letter: ${source}-bad", "max_records_per_batch: 30"))
    state = RunDirectory(tmp_path / "state" / "doubling")
    command = [
        *(sys.executable, "-m", "headwater", "pipeline", "run", str(file), "--set", "source=long"),
        *("--bootstrap-server", broker.bootstrap, "--state-dir", str(tmp_path / "state")),
        *("--master", "local[2]"),
        *(f"--conf={name}={value}" for name, value in SETTINGS.items()),
    ]
    environment = {name: value for name, value in os.environ.items() if "BYTECODE" not in name}
    count = 0
    for ending in ("term", "stop", "kill"):
        send(broker, "long", [order(number) for number in range(count + 1, count + 61)])
        count += 60
        with (tmp_path / "run.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        with process:
            try:
                await_batches(process, state)
                if ending == "stop":
                    arguments = ("doubling", "--state-dir", tmp_path / "state", "--timeout", 300)
                    assert run_command("pipeline", "stop", *arguments).exit_code == 0
                else:
                    process.send_signal(signal.SIGTERM if ending == "term" else signal.SIGKILL)
                exit_code = process.wait(300)
            finally:
                process.kill()
        output = (tmp_path / "run.log").read_text()
        record = state.read()
        assert record is not None
        if ending == "kill":
            assert record.state is RunState.CRASHED
        else:
            assert (exit_code, record.state) == (0, RunState.STOPPED), output
    once = subprocess.run([*command, "--once"], env=environment, capture_output=True, timeout=600)
    assert once.returncode == 0, once.stderr
    values = [json.loads(value) for value in received(broker, "long-doubled", count)]
    assert sorted(value["amount"] for value in values) == [2.0 * n for n in range(1, count + 1)]


def await_batches(process: subprocess.Popen[bytes], state: RunDirectory) -> None:
    patiently(lambda: process.poll() is not None or has_batches(state))


def has_batches(state: RunDirectory) -> bool:
    record = state.read()
    if record is None or record.state is not RunState.RUNNING:
        return False
    return any(query.name == "out" and query.batch_id is not None for query in record.queries)
