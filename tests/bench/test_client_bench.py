"""The client's benchmark works from end to end; what it measures in this form means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.broker.results import Verdict
from bench.client import __main__ as bench_main
from bench.client.cases import ALL_CASES, CONSUME, FULL, PRODUCE, QUICK, TINY, Case
from bench.client.chart import draw
from bench.client.contenders import TITLES
from bench.client.job import JOBS
from bench.client.load import CHUNK_COUNT, KEY_COUNT, Load
from bench.client.report import as_json, as_markdown
from bench.client.results import CaseResults, ClientFigures, ClientResults

ABOUT = {"Machine": "Some CPU"}


def figures(records_per_s: float) -> ClientFigures:
    return ClientFigures(
        record_count=int(records_per_s),
        seconds=1.0,
        cpu_s=0.5,
        resident_bytes=40_000_000,
        broker_cpu_s=0.25,
    )


def results(case: Case, **speeds: float) -> CaseResults:
    runs = {job.replace("_", "-"): [figures(speed)] for job, speed in speeds.items()}
    return CaseResults(case, runs)


def test_goals_are_for_records_without_keys() -> None:
    speeds = {"headwater_produce": 500.0, "kafka_python_produce": 99.0, "aiokafka_produce": 300.0}
    plain = results(Case(PRODUCE, 100), **speeds).rows()
    assert [(row.peer_name, row.row.verdict) for row in plain] == [
        ("kafka-python", Verdict.REACHED),
        ("aiokafka", Verdict.MISSED),
    ]
    keyed = results(Case(PRODUCE, 100, is_keyed=True), **speeds).rows()
    assert [row.row.verdict for row in keyed] == [Verdict.NONE, Verdict.NONE]


def test_arrow_is_measured_by_the_quickest_way_of_its_peer() -> None:
    [row] = results(
        Case(CONSUME, 100),
        headwater_poll_arrow=900.0,
        confluent_consume=400.0,
        confluent_poll=500.0,
    ).rows()
    assert row.peer_name == "confluent-kafka, poll"
    assert row.row.ratio.median == pytest.approx(1.8)
    assert row.row.verdict is Verdict.MISSED


def test_every_way_that_is_compared_exists() -> None:
    assert set(TITLES) == set(JOBS)
    for sizes in (FULL, QUICK, TINY):
        for case in sizes.cases:
            jobs = {each.job for each in case.contenders}
            assert jobs >= {match.ours for match in case.matches}
            assert jobs >= {peer for match in case.matches for peer in match.peers}
    assert len({case.title for case in ALL_CASES}) == len(ALL_CASES)


def test_all_clients_get_the_same_records() -> None:
    load = Load("", "topic", 6, 100, is_keyed=True, acks="all", is_tuned=True, run_s=1.0)
    assert load.values() == load.values()
    assert {len(value) for value in load.values()} == {100}
    pairs = [pair for chunk in load.keyed_chunks() for pair in chunk]
    assert len({key for key, _ in pairs}) == KEY_COUNT
    assert [value for _, value in pairs[:CHUNK_COUNT]] == load.values()


def test_the_report_has_figures_goals_and_failures(tmp_path: Path) -> None:
    found = ClientResults(
        [results(Case(CONSUME, 1_000), headwater_poll=600_000.0, aiokafka_get_many=400_000.0)],
        failures=["Consume, kafka-python: it hung"],
    )
    text = as_markdown(found, ABOUT)
    assert "| Headwater, Consumer, poll | 600,000 " in text
    assert "1.50 " in text
    assert ">= 1.2 | reached |" in text
    assert "Not measured: Consume, kafka-python: it hung" in text
    [case] = as_json(found, ABOUT)["cases"]
    assert case["runs"]["headwater-poll"][0]["records_per_s"] == 600_000
    draw(found, tmp_path / "client.png")
    assert (tmp_path / "client.png").read_bytes().startswith(b"\x89PNG")


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours in all ways and none at all, from the start of a broker to the picture."""
    ours = [job for job in JOBS if job.startswith(("headwater", "wire"))]
    arguments = ["--tiny", "--directory", str(tmp_path)]
    code = bench_main.main([*arguments, *(word for job in ours for word in ("--client", job))])
    printed = capsys.readouterr().out
    assert code == 0, printed
    for job in ours:
        assert f"| {TITLES[job]}" in printed
    told = json.loads((tmp_path / "client.json").read_text())
    assert told["failures"] == []
    assert (tmp_path / "client.png").exists()
