"""The broker's benchmark works from end to end; what it measures in this form means nothing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.broker import __main__ as bench_main
from bench.broker import profile, request_load, start
from bench.broker.chart import draw
from bench.broker.client_run import ClientRun, ServerRun
from bench.broker.group_crowd import disband, form_groups, heartbeat_frames
from bench.broker.groups import commit_frames
from bench.broker.growth import _topics
from bench.broker.java_clients import parse_consumer_report, parse_producer_report
from bench.broker.process_usage import cpu_seconds, resident_bytes
from bench.broker.raw_client import wait_until
from bench.broker.report import as_json, as_markdown
from bench.broker.request_load import RequestLoad, produce_frame
from bench.broker.results import (
    CPU,
    MEMORY,
    START,
    THROUGHPUT,
    Curve,
    Results,
    Row,
    Verdict,
)
from bench.broker.run import take_turns
from bench.broker.servers import HeadwaterServer, Server
from bench.broker.transaction_load import run_transactions
from bench.rounds import Comparison, Spread
from headwater.testing.apache_kafka import ToolFailedError
from tests.support.kafka.node import require_apache_kafka

ABOUT = {"machine": "Some CPU", "headwater": "1", "apache_kafka": "2", "clients": "3"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HeadwaterServer]:
    running = HeadwaterServer(tmp_path / "server")
    running.start()
    try:
        yield running
    finally:
        running.kill()


def row(ours: float, peer: float, **changes: object) -> Row:
    values = {"goal": THROUGHPUT, "cores": (0.9, 0.9), **changes}
    return Row("Throughput", "Produce", "MB/s", Comparison([ours], [peer]), **values)  # type: ignore[arg-type]


# -- verdicts and reports --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "cores", "verdict"),
    [
        (16.0, 0.9, Verdict.REACHED),
        (16.0, 0.3, Verdict.REACHED),
        (12.0, 0.9, Verdict.FLOOR_REACHED),
        (12.0, 0.3, Verdict.CLIENT_BOUND),
        (9.0, 0.9, Verdict.MISSED),
        (9.0, 0.3, Verdict.CLIENT_BOUND),
    ],
)
def test_a_server_that_waits_for_its_client_has_missed_nothing(
    ours: float, cores: float, verdict: Verdict
) -> None:
    assert row(ours, 10.0, cores=(cores, 2.0)).verdict is verdict


def test_goals_bound_the_ratio_the_figure_or_both() -> None:
    assert row(7.0, 10.0, goal=CPU).verdict is Verdict.REACHED
    assert row(7.1, 10.0, goal=CPU, cores=None).verdict is Verdict.MISSED
    assert row(0.4, 2.0, goal=START).verdict is Verdict.REACHED
    assert row(0.6, 4.0, goal=START, cores=None).verdict is Verdict.MISSED
    assert row(0.4, 1.0, goal=START, cores=None).verdict is Verdict.MISSED
    assert row(79.0, 1.0, goal=MEMORY).verdict is Verdict.REACHED
    assert row(81.0, 999.0, goal=MEMORY, cores=None).verdict is Verdict.MISSED
    assert row(1.0, 1.0, goal=None).verdict is Verdict.NONE
    assert START.text("s") == "<= 0.2 and < 0.5 s"
    assert THROUGHPUT.text("MB/s") == ">= 1, aim 1.5"


def test_a_ratio_is_taken_within_each_round_and_leaves_nothing_out() -> None:
    found = Row("s", "w", "u", Comparison([8.0, 0.8, 20.0], [10.0, 1.0, 10.0])).ratio
    assert found == Spread(0.8, 0.8, 2.0)


def filled_results() -> Results:
    results = Results("Headwater", "Apache Kafka", [row(12.0, 10.0), row(5.0, 10.0)])
    curve = Curve("Stop", "s", "partitions")
    curve.add(1, [0.1, 0.3, 0.2], [1.0])
    curve.add(1_000, [0.5], [2.0])
    results.curves += [curve, Curve("Nothing yet", "s", "connections")]
    return results


def test_the_report_says_what_was_found() -> None:
    results = filled_results()
    results.failures.append("Consume: no luck")
    text = as_markdown(results, ABOUT)
    assert "- Machine: Some CPU" in text
    assert "| Produce    | 12 MB/s   | 10 MB/s      | 1.20             |" in text
    assert re.search(r"^\| 1 +\| 0\.20 \(0\.10\.\.0\.30\) \| 1 ", text, re.M)
    assert "Nothing yet" not in text
    assert "Not measured: Consume: no luck" in text
    assert "Of 2 goals: 1 floor reached, 1 missed." in text
    found = json.loads(json.dumps(as_json(results, ABOUT)))
    assert [each["verdict"] for each in found["rows"]] == ["floor reached", "missed"]
    assert found["rows"][0]["ours"]["values"] == [12.0]
    assert found["curves"][0]["counts"] == [1, 1_000]


def test_the_picture_is_drawn_from_whatever_there_is(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    draw(Results("A", "B"), path)
    assert not path.exists()
    results = filled_results()
    draw(results, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    draw(Results("A", "B", curves=results.curves), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1_000


def test_a_run_of_a_client_in_other_units() -> None:
    run = ServerRun(ClientRun(1_000, 500_000_000, 2.0), 1.0)
    assert (run.megabytes_per_s, run.records_per_s) == (250.0, 500.0)
    assert (run.cpu_s_per_gigabyte, run.cores) == (2.0, 0.5)


# -- what tools print ------------------------------------------------------------------------------


def test_the_producers_report_ends_with_a_line_about_all() -> None:
    text = (
        "300 records sent, 60.0 records/sec (0.06 MB/sec), 1.0 ms avg latency, 2.0 ms max.\n"
        "1000 records sent, 250.000000 records/sec (0.24 MB/sec), 10.5 ms avg latency, 99.0 ms max "
        "latency, 5 ms 50th, 30 ms 95th, 60 ms 99th, 99 ms 99.9th.\n"
    )
    assert parse_producer_report(text, 100) == ClientRun(1_000, 100_000, 4.0)
    with pytest.raises(ToolFailedError):
        parse_producer_report("nothing\n", 100)


def test_the_consumers_report_is_about_fetching() -> None:
    text = (
        "2026-01-01 00:00:00:000, 2026-01-01 00:00:05:000, 100.0, 20.0, 1000, 200.0, 3000, 2000, "
        "50.0, 500.0\n"
    )
    assert parse_consumer_report(text) == ClientRun(1_000, 100 << 20, 2.0)
    with pytest.raises(ToolFailedError):
        parse_consumer_report("WARNING: Exiting before consuming\n")


def test_stacks_are_counted_by_function() -> None:
    found = profile.summarise("main;a;b 30\nmain;a 10\nmain;c;c 60\n")
    assert found.sample_count == 100
    assert found.self_shares == [("c", 0.6), ("b", 0.3), ("a", 0.1)]
    assert found.total_shares == [("c", 0.6), ("a", 0.4), ("b", 0.3)]


def test_partitions_are_spread_over_topics_that_kafka_takes() -> None:
    assert list(_topics(1).values()) == [1]
    assert len({len(name) for name in _topics(10_000)}) == 1
    assert sum(_topics(10_000).values()) == 10_000
    assert max(_topics(10_000).values()) == 1_000
    assert list(_topics(1_001).values()) == [1_000, 1]


# -- loads and servers -----------------------------------------------------------------------------


def test_every_request_of_a_load_is_counted_once(server: HeadwaterServer) -> None:
    with server.topic("loaded", 2) as topic, server.connect() as client:
        frames = [produce_frame(topic, index, 50, 3) for index in range(2)]
        with RequestLoad(server.port, frames, connection_count=3, in_flight=4) as load:
            counted = load.run(60.0, 101)
            assert counted.answer_count == counted.total_count == 101
            timed = load.run(0.05)
            assert 0 < timed.answer_count <= timed.total_count
            requests = load.probe_count + counted.total_count + timed.total_count
        assert client.record_count(topic, 2) == 3 * requests


def test_a_load_that_is_refused_says_so(server: HeadwaterServer) -> None:
    frame = produce_frame("no-such-topic", 7, 50, 1)
    with pytest.raises(RuntimeError, match="refuses"):
        RequestLoad(server.port, [frame], connection_count=1, in_flight=1)


def test_an_error_among_the_answers_is_seen(server: HeadwaterServer) -> None:
    with server.topic("loaded", 1) as topic:
        good, bad = produce_frame(topic, 0, 50, 1), produce_frame(topic, 5, 50, 1)
        load = RequestLoad(server.port, [good, bad], connection_count=1, in_flight=2)
        with load, pytest.raises(RuntimeError, match="with an error"):
            load.run(10.0, 10)


def test_a_load_keeps_its_rate_and_tells_what_each_answer_took(server: HeadwaterServer) -> None:
    with server.topic("paced", 1) as topic, server.connect() as client:
        frame = produce_frame(topic, 0, 50, 1)
        with RequestLoad(server.port, [frame], connection_count=3, in_flight=1) as load:
            start_s = time.perf_counter()
            latencies_ms = load.run_at_rate(0.2, 100.0)
            seconds = time.perf_counter() - start_s
        assert len(latencies_ms) == 20
        assert seconds >= 0.19
        assert all(0 < each <= 1000 * seconds for each in latencies_ms)
        assert client.record_count(topic, 1) == 20 + load.probe_count


def test_groups_come_together_and_their_members_are_heard(server: HeadwaterServer) -> None:
    group_ids = [f"crowd-{number}" for number in range(5)]
    members = form_groups(server.port, group_ids, member_count=3, crew_count=2)
    assert sorted(member.group_id for member in members) == sorted(3 * group_ids)
    assert len({member.member_id for member in members}) == 15
    frames = heartbeat_frames(members)
    with RequestLoad(
        server.port, frames, connection_count=2, in_flight=3, kind=request_load.HEARTBEAT
    ) as load:
        assert load.run(30.0, 60).answer_count == 60
    disband(server.port, members)
    with pytest.raises(RuntimeError, match="refuses"):
        RequestLoad(
            server.port, frames, connection_count=1, in_flight=1, kind=request_load.HEARTBEAT
        )


def test_commits_are_counted_and_a_refused_one_is_seen(server: HeadwaterServer) -> None:
    disband(server.port, form_groups(server.port, ["maker"], member_count=1, crew_count=1))
    with server.topic("committed", 10) as topic:
        frames = commit_frames(topic, 1)
        with RequestLoad(
            server.port, frames, connection_count=2, in_flight=2, kind=request_load.OFFSET_COMMIT
        ) as load:
            assert load.run(30.0, 50).answer_count == 50
        bad = commit_frames("no-such-topic", 2)
        with (
            RequestLoad(
                server.port,
                [frames[0], bad[0]],
                connection_count=1,
                in_flight=2,
                kind=request_load.OFFSET_COMMIT,
            ) as load,
            pytest.raises(RuntimeError, match="with an error"),
        ):
            load.run(10.0, 10)


def test_transactions_of_many_producers_are_all_committed(server: HeadwaterServer) -> None:
    with server.topic("transactions", 3) as topic, server.connect() as client:
        count = run_transactions(server.port, topic, ["one", "two", "three"], 0.3)
        assert 0 < count.answer_count == count.total_count - 3
        # A record and a marker each; the last markers are on their way when the client has left.
        wait_until(
            lambda: client.record_count(topic, 3) == 2 * count.total_count, "markers are missing"
        )


def test_a_server_starts_again_on_its_data_and_tells_its_cost(server: HeadwaterServer) -> None:
    with server.connect() as client:
        client.create_topic("first", 1)
    server.set_durable(True)
    server.stop()
    assert 0 < start.start_to_first_ack_s(server, "first") < 60
    with server.connect() as client:
        assert client.record_count("first", 1) == 1
    assert 5 < resident_bytes(server.pid) / 1e6 < 500
    assert cpu_seconds(server.pid) > 0


def test_sides_take_turns_at_going_first(server: HeadwaterServer) -> None:
    turns: list[Server] = []
    other = HeadwaterServer(Path("never-started"))

    def take_turn(one: Server) -> int:
        turns.append(one)
        return len(turns)

    values = take_turns((server, other), 2, take_turn)
    assert turns == [server, other, other, server]
    assert values == ([1, 4], [2, 3])


def test_measurements_are_chosen_by_name() -> None:
    chosen = bench_main._parse(["--only", "groups,start", "--only", "latency"]).only
    assert chosen == ["groups", "start", "latency"]
    assert bench_main._parse([]).only == bench_main.MEASUREMENTS
    assert bench_main.MEASUREMENTS.count("groups") == 1
    with pytest.raises(SystemExit):
        bench_main._parse(["--only", "groups,nothing"])


# -- the whole -------------------------------------------------------------------------------------


@pytest.mark.full
def test_every_row_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--tiny", "--sides", "headwater", "headwater", "--client", "librdkafka"]
    directory = tmp_path / "bench"
    assert bench_main.main([*arguments, "--directory", str(directory)]) == 0
    assert sorted(path.name for path in directory.iterdir()) == [
        "broker.json",
        "broker.md",
        "broker.png",
    ]
    found = json.loads((directory / "broker.json").read_text())
    assert [each["what"] for each in found["rows"] if each["section"] == "Throughput"] == [
        "Produce 1 KB, acks=1, librdkafka",
        "Produce 1 KB, acks=all, no fsync, librdkafka",
        "Produce 1 KB, acks=all, on disk, librdkafka",
        "Consume 1 KB, librdkafka",
    ]
    sections = list(dict.fromkeys(each["section"] for each in found["rows"]))
    assert sections == [
        "Throughput",
        "Broker CPU",
        "One record per request",
        "Latency, produce to consume",
        "First poll to first record",
        "Consumer groups",
        "Transactions",
        "Start",
        "Idle memory",
    ]
    assert all(each["ours"]["median"] > 0 < each["peer"]["median"] for each in found["rows"])
    assert {each["axis"]: each["counts"] for each in found["curves"]} == {
        "connections": [1, 10],
        "partitions": [1, 20],
    }
    assert found["failures"] == []
    assert capsys.readouterr().out.strip() == (directory / "broker.md").read_text().strip()


@pytest.mark.full
@pytest.mark.kafka
def test_apache_kafka_beside_headwater(tmp_path: Path) -> None:
    require_apache_kafka()
    arguments = ["--tiny", "--client", "java", "--only", "requests,transactions"]
    assert bench_main.main([*arguments, "--directory", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "broker.json").read_text())
    assert found["sides"] == ["Headwater", "Apache Kafka"]
    assert [each["what"] for each in found["rows"]] == [
        "1 connection, 5 in flight each",
        "8 connections, 5 in flight each",
        "Java, 5 in flight",
        "16 producers, 1 record each, no fsync",
        "16 producers, 1 record each, on disk",
    ]


def test_what_fails_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setitem(bench_main.FROM_START, "start", fail)
    monkeypatch.setitem(bench_main.FROM_START, "partitions", lambda run: run.say("done"))
    arguments = ["--tiny", "--only", "start", "--only", "partitions", "--directory", str(tmp_path)]
    assert bench_main.main(arguments) == 1
    assert json.loads((tmp_path / "broker.json").read_text())["failures"] == ["start: no luck"]


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    arguments = ["--tiny", "--sides", "headwater", "headwater", "--client", "librdkafka"]
    command = [sys.executable, "-m", "bench.broker", *arguments, "--directory", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        _wait_for_line(process.stderr.readline, "acks=all, no fsync, librdkafka")
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "The run was interrupted" in printed
    assert "| Produce 1 KB, acks=1, librdkafka" in printed
    assert json.loads((tmp_path / "broker.json").read_text())["is_interrupted"] is True
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def _wait_for_line(read_line: Callable[[], str], part: str) -> None:
    deadline = time.monotonic() + 120
    while part not in (line := read_line()):
        assert line, "the run ended too soon"
        assert time.monotonic() < deadline


def test_a_response_has_its_error_where_the_load_looks(server: HeadwaterServer) -> None:
    with server.topic("shape", 1) as topic, server.connect() as client:
        frame = produce_frame(topic, 0, 10, 1)
        size, error_position = request_load._answer_shape(server.port, frame)
        bad = client.ask_bytes(produce_frame(topic, 9, 10, 1))
        # An answer to a refused request may be longer, but up to its error code it is the same.
        code = int.from_bytes(bad[error_position - 4 : error_position - 2], "big")
        assert code == 3
        assert size == len(client.ask_bytes(frame)) + 4
