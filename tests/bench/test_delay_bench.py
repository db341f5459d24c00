"""The benchmark of delays works from end to end; what it measures in this form means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.bench_command import BenchReport
from bench.broker.raw_client import RawClient
from bench.curves import as_json, as_markdown
from bench.delay import __main__ as bench_main
from bench.delay.load import due_batches, now_ms, produce, receive_due
from bench.delay.report import draw
from bench.delay.run import DelayResults, Run
from bench.delay.sizes import TINY
from bench.rounds import Comparison
from bench.table import Goal, Row
from tests.support.tiers import full_tier


def test_results_are_told_and_drawn(tmp_path: Path) -> None:
    results = DelayResults(failures=["a burst: no disk"])
    values = Comparison([1.5], [1.0])
    results.rows.append(
        Row.compared("Lateness p99", "ms", values, "acknowledged", Goal(2.0, is_upper=True))
    )
    results.curves["1,000 due a second"] = [1.0, 2.0, 0.0]
    about = {"Machine": "Some CPU"}
    BenchReport("delay", tmp_path, results, about, as_markdown, as_json, draw).save()
    text = (tmp_path / "delay.md").read_text()
    assert "| Lateness p99 | 1.50 ms" in text and "| yes |" in text
    assert "Not measured: a burst: no disk" in text
    found = json.loads((tmp_path / "delay.json").read_text())
    assert found["percentiles"]["1,000 due a second"]["0.5"] == 1.0
    assert (tmp_path / "delay.png").exists()


def test_a_reader_tells_how_late_messages_are(tmp_path: Path) -> None:
    run = Run(DelayResults(), TINY, tmp_path)
    with run.broker() as broker:
        topic = run.topic(broker, is_delayed=True)
        with RawClient(broker.port) as client:
            for batch in due_batches([now_ms() + 300, now_ms() + 200]):
                produce(client, topic, 0, batch)
            with pytest.raises(RuntimeError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                produce(client, topic, 1, batch)
        late = receive_due(broker.port, topic, 1, 2)
    assert len(late) == 2 and min(late) >= 0


if full_tier():

    def test_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = Path(__file__).parents[2]
        arguments = ["--tiny", "--directory", str(tmp_path), "--before", str(source)]
        assert bench_main.main(arguments) == 0
        shown = capsys.readouterr().out
        for words in ("Lateness p99", "Largest rate", "Memory more", "first delivery", "Bytes"):
            assert words in shown
