"""The benchmark of retries works from end to end; what it measures in this form means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.bench_command import BenchReport
from bench.curves import as_json, as_markdown
from bench.retry import __main__ as bench_main
from bench.retry import failing
from bench.retry.failing_load import ATTEMPTS, Failure, Outcomes, send
from bench.retry.readers import JOBS
from bench.retry.report import draw
from bench.retry.run import RetryResults, Run
from bench.retry.sizes import TINY
from bench.rounds import Comparison
from bench.table import Goal, Row
from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import TimestampType
from tests.support.tiers import full_tier


def _record(topic: str, number: int) -> ConsumerRecord:
    value = number.to_bytes(8, "big") + bytes(8)
    return ConsumerRecord(topic, 0, 0, 0, TimestampType.CREATE_TIME, None, value, (), 0)


def test_results_are_told_and_drawn(tmp_path: Path) -> None:
    results = RetryResults(failures=["redrive: no disk"])
    row = Row.compared(
        "Worker, 100 B", "records/s", Comparison([95.0], [100.0]), "consumer", Goal(0.9)
    )
    results.rows.append(row)
    results.curves["retries"] = [1.0, 2.0, 0.0]
    BenchReport("retry", tmp_path, results, {}, as_markdown, as_json, draw).save()
    text = (tmp_path / "retry.md").read_text()
    assert "| Worker, 100 B | 95 records/s" in text and "| yes |" in text
    assert "Not measured: redrive: no disk" in text
    assert json.loads((tmp_path / "retry.json").read_text())["percentiles"]["retries"]["0.5"] == 1.0
    assert (tmp_path / "retry.png").exists()


def test_every_outcome_is_checked() -> None:
    outcomes = Outcomes("orders", 20, has_failures=True)
    # Number 0 fails always, 10 once, the others never.
    for number in range(20):
        if number % 10:
            outcomes.handle(_record("orders", number))
        else:
            with pytest.raises(Failure):
                outcomes.handle(_record("orders", number))
    outcomes.handle(_record("retry.billing", 10))
    with pytest.raises(RuntimeError, match="1 records were not shown"):
        outcomes.check()
    for _ in range(ATTEMPTS):
        with pytest.raises(Failure, match="always"):
            outcomes.handle(_record("retry.billing", 0))
    outcomes.check()
    assert outcomes.left_count == 0 and outcomes.first_attempts_end_s > 0
    outcomes.late_ms[0] = -1.0
    with pytest.raises(RuntimeError, match="before they were due"):
        outcomes.check()


def test_workers_and_plain_consumers_read_the_same(tmp_path: Path) -> None:
    run = Run(RetryResults(), TINY, tmp_path)
    with run.broker() as broker, broker.topic("orders", 2) as topic:
        send(broker.bootstrap, topic, record_count=300, rate_per_s=10_000)
        for kind, job in JOBS.items():
            assert job(broker.bootstrap, topic, f"group-{kind}", 300) > 0


if full_tier():

    def test_a_tenth_fails(tmp_path: Path) -> None:
        results = RetryResults()
        failing.measure(Run(results, TINY, tmp_path))
        assert not results.failures
        assert results.rows[0].what.endswith(": handled")
        assert results.curves["retries"]

    def test_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert bench_main.main(["--tiny", "--directory", str(tmp_path)]) == 0
        shown = capsys.readouterr().out
        for words in ("Worker, 100 B", "AsyncWorker", "latency of the others", "Redrive"):
            assert words in shown
