"""The Spark benchmark works from end to end; what it measures in this form means nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.broker.chart import draw
from bench.broker.results import LATENCY, Row, Verdict
from bench.rounds import Comparison
from bench.spark import reading
from bench.spark.latency import DoneBatch, done_batch, latencies_ms
from bench.spark.report import as_json, as_markdown
from bench.spark.run import CostRow, Costs, SparkResults
from bench.spark.sides import HEADWATER, OFFICIAL
from bench.spark.sizes import FULL, QUICK
from tests.support.requirements import skip_or_fail
from tests.support.spark.session import connector_jars

ABOUT = {"Machine": "Some CPU"}


def test_a_record_is_done_with_the_batch_that_has_its_offset() -> None:
    batches = [DoneBatch(3, 101.0), DoneBatch(1, 100.5), DoneBatch(4, 103.0)]
    sent_s = [100.0, 100.6, 100.7, 100.8]
    assert latencies_ms(sent_s, batches) == pytest.approx([500.0, 400.0, 300.0, 2_200.0])


@pytest.mark.parametrize(
    "end_offset", [{"orders": {"0": 7}, "@headwater": {"group": ""}}, '{"orders": {"0": 7}}']
)
def test_a_batch_is_done_when_its_trigger_is(end_offset: object) -> None:
    progress = {
        "timestamp": "1970-01-01T00:00:10.250Z",
        "durationMs": {"triggerExecution": 500, "addBatch": 300},
        "sources": [{"endOffset": end_offset}],
    }
    assert done_batch(progress, "orders") == DoneBatch(7, 10.75)


def test_the_report_has_figures_goals_costs_and_failures(tmp_path: Path) -> None:
    found = SparkResults("ours", "theirs")
    found.rows += [
        Row("Reading", "100 B", "rows/s", Comparison([600.0], [400.0]), reading.GOAL),
        Row("Micro-batches", "p50", "ms", Comparison([30.0], [20.0]), LATENCY),
    ]
    found.costs += [
        CostRow("Reading: 100 B", side, 1_000_000, [Costs(2.0, java_s, python_s, 0.5)])
        for side, java_s, python_s in ((HEADWATER, 1.0, 0.5), (OFFICIAL, 3.0, 0.0))
    ]
    found.failures.append("Writing: it hung")
    text = as_markdown(found, ABOUT)
    assert "| 100 B   | 600 rows/s | 400 rows/s | 1.50             | >= 1 | reached |" in text
    assert "| p50           | 30 ms | 20 ms  | 1.50             | <= 1 | missed |" in text
    assert "| Reading: 100 B | headwater | 1    | 0.50           | 0.50   | 1.00 cores |" in text
    assert "Not measured: Writing: it hung" in text
    told = as_json(found, ABOUT)
    assert [row["verdict"] for row in told["rows"]] == [Verdict.REACHED, Verdict.MISSED]
    assert told["costs"][1]["rounds"] == [
        {"clock_s": 2.0, "java_s": 3.0, "python_s": 0.0, "broker_s": 0.5}
    ]
    draw(found, tmp_path / "spark.png")
    assert (tmp_path / "spark.png").read_bytes().startswith(b"\x89PNG")


def test_both_sizes_of_records_are_read_and_written() -> None:
    for sizes in (FULL, QUICK):
        assert set(sizes.read_bytes) == set(sizes.written_rows) == {100, 1_000}
        assert sizes.rounds > 1


@pytest.mark.full
def test_a_small_run(tmp_path: Path) -> None:
    """From the start of a broker and of a Spark to the picture, in a process of its own."""
    if connector_jars() is None:
        skip_or_fail("this test needs Spark's own connector for Kafka")
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark", "--tiny", "--directory", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("100 B, into noop", "100 B, into Parquet", "100 B, no keys", "batch done, p99"):
        assert what in done.stdout
    told = json.loads((tmp_path / "spark.json").read_text())
    assert told["failures"] == []
    assert len(told["costs"]) == 8
    assert (tmp_path / "spark.png").exists()
