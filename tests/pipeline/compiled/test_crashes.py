"""A driver that is killed again and again, and tables that are those of one that never was."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headwater.pipeline.lake.lake_table import LakeTable
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.pipeline_rows import Event, make_events, tumbling
from tests.support.spark.pipeline_topics import read_records, send_values
from tests.support.tiers import rounds

PIPELINE = """
name: crashes
bootstrap_servers: ${bootstrap}
state_dir: ${folder}/state
variables: {bootstrap: "", folder: ""}
sources:
  events:
    topics: events
    schema: number BIGINT NOT NULL, who STRING, amount BIGINT, time_s BIGINT NOT NULL
    metadata: [offset]
    dead_letter: events-dead
    max_records_per_batch: 25
steps:
  timed:
    sql: SELECT *, timestamp_seconds(time_s) AS at FROM events
    watermark: {column: at, delay: 10 seconds}
  sliding:
    sql: |
      SELECT unix_seconds(window.start) AS begin_s, who, count(*) AS count, sum(amount) AS amount
      FROM timed GROUP BY window(at, '20 seconds', '10 seconds'), who
  once: {from: timed, deduplicate: [number]}
sinks:
  sliding: {from: sliding, lake: "${folder}/sliding", mode: update, upsert: [begin_s, who]}
  once: {from: once, lake: "${folder}/once"}
  copies: {from: events, topic: copies, exactly_once: true}
"""
RUN_TIMEOUT_S = 600


def _start(file: Path, broker: RunningBroker, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.spark.pipeline_run_program"]
    with (folder / "run.log").open("ab") as log:
        return subprocess.Popen(
            [*command, str(file), broker.bootstrap, str(folder)],
            cwd=Path(__file__).parents[3],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def _planned_count(folder: Path) -> int:
    """How many batches have been planned so far, by all queries."""
    return sum(1 for path in folder.glob("state/checkpoints/*/offsets/*") if path.name.isdigit())


def _kill_soon(process: subprocess.Popen[bytes], folder: Path, generator: random.Random) -> None:
    """Kill driver and Java at some moment after some batches, if they are not done before."""
    wanted = _planned_count(folder) + generator.randrange(1, 5)
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while process.poll() is None and _planned_count(folder) < wanted:
        assert time.monotonic() < deadline, "the run does nothing"
        time.sleep(0.02)
    time.sleep(generator.random())
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = LakeTable(path).read_arrow().to_pylist()
    return rows


@pytest.mark.full
def test_killed_drivers_leave_the_tables_of_one_that_was_not(tmp_path: Path) -> None:
    seed = 17
    generator = random.Random(seed)
    file = tmp_path / "crashes.yaml"
    file.write_text(PIPELINE)
    kill_count = rounds(2, 8)
    events = make_events(seed, 60 * kill_count, late_from=1 << 30)
    with RunningBroker() as broker:
        for topic in ("events", "events-dead", "copies"):
            broker.create_topic(topic)
        for number in range(kill_count):
            values: list[bytes | None] = [
                event.value() for event in events[60 * number : 60 * number + 60]
            ]
            values.insert(generator.randrange(60), b"bad %d" % number)
            send_values(broker.bootstrap, "events", values)
            _kill_soon(_start(file, broker, tmp_path), tmp_path, generator)
        last = _start(file, broker, tmp_path)
        assert last.wait(RUN_TIMEOUT_S) == 0, (tmp_path / "run.log").read_text()[-3000:]
        _check_tables(broker, tmp_path, events, kill_count)


def _check_tables(
    broker: RunningBroker, folder: Path, events: list[Event], kill_count: int
) -> None:
    sliding = _rows(folder / "sliding")
    totals = {(row["begin_s"], row["who"]): (row["count"], row["amount"]) for row in sliding}
    assert len(totals) == len(sliding)
    assert totals == tumbling(events, 20, 10)
    assert sorted(row["number"] for row in _rows(folder / "once")) == sorted(
        {event.number for event in events}
    )
    copies = [json.loads(record.value) for record in read_records(broker.bootstrap, "copies")]
    assert sorted(row["_offset"] for row in copies) == sorted(
        record.offset
        for record in read_records(broker.bootstrap, "events")
        if not record.value.startswith(b"bad")
    )
    dead = [record.value for record in read_records(broker.bootstrap, "events-dead")]
    assert sorted(dead) == sorted(b"bad %d" % number for number in range(kill_count))
