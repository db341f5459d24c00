"""Delta tables written by a pipeline, where there is a Delta for this Spark, read by hand."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headwater.pipeline.compiled.compile_error import PipelineCompileError
from headwater.pipeline.compiled.sinks.table_formats import session_configs
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.pipeline_rows import make_events, tumbling
from tests.support.spark.pipeline_topics import send_values

PIPELINE = """
name: delta
bootstrap_servers: ${bootstrap}
state_dir: ${folder}/state
variables: {bootstrap: "", folder: ""}
sources:
  events:
    topics: events
    schema: number BIGINT NOT NULL, who STRING, amount BIGINT, time_s BIGINT NOT NULL
steps:
  totals:
    sql: |
      SELECT unix_seconds(window.start) AS begin_s, who, count(*) AS count, sum(amount) AS amount
      FROM (SELECT *, timestamp_seconds(time_s) AS at FROM events)
      GROUP BY window(at, '20 seconds'), who
sinks:
  rows: {from: events, delta: "${folder}/rows"}
  totals: {from: totals, delta: "${folder}/totals", mode: update, upsert: [begin_s, who]}
"""


def _delta_rows(table: Path) -> list[dict[str, Any]]:
    """What a table holds by its log: files that were added and not removed."""
    live: dict[str, None] = {}
    for log in sorted((table / "_delta_log").glob("*.json")):
        for line in log.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                live[action["add"]["path"]] = None
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
    return [row for path in live for row in _file_rows(table / path)]


def _file_rows(path: Path) -> list[dict[str, Any]]:
    with pq.ParquetFile(path) as file:  # type: ignore[no-untyped-call]
        rows: list[dict[str, Any]] = file.read().to_pylist()
    return rows


@pytest.mark.full
def test_rows_are_added_and_totals_replaced(tmp_path: Path) -> None:
    file = tmp_path / "delta.yaml"
    file.write_text(PIPELINE)
    with RunningBroker() as broker:
        broker.create_topic("events")
        variables = {"bootstrap": broker.bootstrap, "folder": str(tmp_path)}
        try:
            session_configs(load_pipeline(file, variables))
        except PipelineCompileError as refusal:
            assert "Delta" in str(refusal)
            pytest.skip(str(refusal))
        events = make_events(seed=3, count=80, late_from=1 << 30)
        for part in (events[:50], events[50:]):
            send_values(broker.bootstrap, "events", [event.value() for event in part])
            command = [sys.executable, "-m", "tests.support.spark.pipeline_run_program", str(file)]
            done = subprocess.run(
                [*command, broker.bootstrap, str(tmp_path)],
                cwd=Path(__file__).parents[3],
                stderr=subprocess.PIPE,
                timeout=900,
            )
            assert done.returncode == 0, done.stderr.decode()[-3000:]
    rows = [row["number"] for row in _delta_rows(tmp_path / "rows")]
    assert sorted(rows) == sorted(event.number for event in events)
    totals = _delta_rows(tmp_path / "totals")
    found = {(row["begin_s"], row["who"]): (row["count"], row["amount"]) for row in totals}
    assert len(found) == len(totals)
    assert found == tumbling(events, 20)
