import asyncio
import json
from collections.abc import Iterator

import pytest

from headwater.cli.app import main
from headwater.cli.perf.report import Latencies, PerfResult
from headwater.cli.perf.runs import Pace, random_values
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.brokers.clusters import Cluster


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as made:
        yield made


def test_percentiles_count_records_and_not_batches() -> None:
    latencies = Latencies()
    latencies.add(0.001, 98)
    latencies.add(0.100, 1)
    latencies.add(0.010, 1)
    summary = latencies.summary_ms()
    assert summary["p50"] == summary["p95"] == pytest.approx(1)
    assert summary["p99"] == pytest.approx(10)
    assert summary["p99.9"] == summary["max"] == pytest.approx(100)
    assert summary["mean"] == pytest.approx(2.08)
    assert Latencies().summary_ms() == {}


def test_a_result_in_figures() -> None:
    result = PerfResult("x", 1000, 100_000, 2.0, [("way", Latencies())]).as_dict()
    assert (result["records_per_second"], result["bytes_per_second"]) == (500, 50_000)
    assert result["latency_ms"] == {"way": {}}


def test_values_are_of_the_size_that_was_asked_for() -> None:
    values = random_values(37, 5)
    assert len(values) == 5 and {len(value) for value in values} == {37}
    assert len(set(values)) == 5
    assert random_values(0, 1) == [b""]


def test_a_pace_is_kept_though_the_program_falls_behind() -> None:
    async def run() -> list[float]:
        pace = Pace(1000)
        due = [await pace.next() for _ in range(5)]
        await asyncio.sleep(0.02)  # Busy with something else.
        due += [await pace.next() for _ in range(10)]
        return [each - due[0] for each in due]

    assert asyncio.run(run()) == pytest.approx([number / 1000 for number in range(15)])


def test_produce_and_consume_are_measured(
    running: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    count = ["--num-records", "3000"]
    server = ["--bootstrap-server", running.bootstrap]
    produce = ["perf", "produce", "perf", *count, "--record-size", "50", "--partitions", "3"]
    assert main([*produce, "--json", "--compression-codec", "lz4", *server]) == 0
    produced = json.loads(capsys.readouterr().out)
    assert (produced["records"], produced["bytes"]) == (3000, 150_000)
    [summary] = produced["latency_ms"].values()
    assert 0 < summary["p50"] <= summary["p99"] <= summary["max"]
    assert main(["perf", "consume", "--topic", "perf", *count, "--json", *server]) == 0
    consumed = json.loads(capsys.readouterr().out)
    assert (consumed["records"], consumed["bytes"]) == (3000, 150_000)
    assert main([*produce, "--acks", "1", *server]) == 0
    shown = capsys.readouterr().out
    assert "Produced to perf" in shown and "3,000" in shown and "P99" in shown


def test_any_cluster_is_measured(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    server = ["--json", "-b", cluster.bootstrap]
    count = ["--num-records", "500"]
    assert main(["perf", "produce", "any-perf", *count, *server]) == 0
    assert main(["perf", "consume", "any-perf", *count, *server]) == 0
    assert main(["perf", "latency", "any-perf", *count, *server]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result["records"] for result in results] == [500, 500, 500]


def test_a_rate_is_kept_to(running: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--num-records", "300", "--throughput", "1000", "--json", "-b", running.bootstrap]
    assert main(["perf", "produce", "slow", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] > 0.29


def test_latency_is_measured_to_the_answer_and_to_a_consumer(
    running: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--num-records", "200", "--throughput", "500", "-b", running.bootstrap]
    # What is in the topic before does not count.
    assert main(["perf", "produce", "way", "--num-records", "50", "-b", running.bootstrap]) == 0
    capsys.readouterr()
    assert main(["perf", "latency", "way", *arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["records"] == 200
    assert set(result["latency_ms"]) == {"due to answered", "due to consumed"}
    assert all(summary["p50"] > 0 for summary in result["latency_ms"].values())
    assert main(["perf", "latency", "way", *arguments]) == 0
    assert "Latency in ms" in capsys.readouterr().out


def test_fewer_records_than_wanted_are_a_failure(
    running: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["-b", running.bootstrap]
    assert main(["perf", "produce", "few", "--num-records", "10", *server]) == 0
    wanted = ["--num-records", "11", "--timeout", "300"]
    assert main(["perf", "consume", "few", *wanted, *server]) == 1
    assert "Only 10 of 11 records came." in capsys.readouterr().out
    assert main(["perf", "consume", "few", "--timeout", "300", *server]) == 0


def test_records_that_were_not_written_are_a_failure(
    running: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["-b", running.bootstrap]
    create = ["topics", "create", "compacted", "--config", "cleanup.policy=compact"]
    assert main([*create, *server]) == 0
    for command in ("produce", "latency"):
        capsys.readouterr()
        assert main(["perf", command, "compacted", "--num-records", "20", *server]) == 1
        assert "A compacted topic takes no record without a key" in capsys.readouterr().err


def test_mistakes_are_told(running: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    server = ["-b", running.bootstrap]
    assert main(["perf", "consume", "absent", *server]) == 1
    assert "There is no topic 'absent'." in capsys.readouterr().err
    assert main(["perf", "produce", "perf", "--acks", "two", *server]) == 2
    assert main(["perf", "produce", "perf", "--compression-codec", "zip", *server]) == 2
    assert main(["perf", "latency", "perf", "--throughput", "0", *server]) == 2
    assert main(["perf", "produce", *server]) == 2
    assert main(["perf", "produce", "perf", "-b", "127.0.0.1:1"]) == 1
