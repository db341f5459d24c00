"""`headwater perf partitions`: what is measured, that nothing of it stays, and what it advises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.cli.perf.partition_counts import CountLoad, CountResult, measure_count
from headwater.cli.perf.partition_report import advice, draw_chart
from headwater.client.connection.cluster_connection import ClusterConnection
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.clusters import Cluster
from tests.support.command import run_command


def _result(count: int, written_per_s: float, failover_s: float | None = None) -> CountResult:
    return CountResult(count, 3, 0.1, written_per_s, 5e6, 1.0, 9.0, failover_s, 0.2)


def test_each_number_is_measured_and_its_topic_deleted(cluster: Cluster) -> None:
    where = ("-b", cluster.bootstrap)
    done = run_command(
        "perf", "partitions", "--partitions", "3,1", "--seconds", 0.1, "--json", *where
    )
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [each["partitions"] for each in document["results"]] == [1, 3]
    for each in document["results"]:
        assert each["bytes_written_per_second"] > 0
        assert each["bytes_read_per_second"] > 0
        assert each["latency_p99_ms"] >= each["latency_p50_ms"] > 0
        # There is nobody else to lead.
        assert each["failover_seconds"] is None
    assert "headwater-perf" not in run_command("topics", "list", *where).stdout
    shown = run_command("perf", "partitions", "--partitions", 2, "--seconds", 0.1, *where)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "Take 2: " in shown.lines[-1]


def test_leaders_change_where_there_are_others(tmp_path: Path) -> None:
    async def scenario(brokers: BrokerCluster) -> None:
        async with ClusterConnection(brokers.bootstrap, timeout_s=30.0) as connection:
            load = CountLoad(0.1, 100, "all", 3)
            done: list[str] = []
            result = await measure_count(connection, brokers.bootstrap, 4, load, done.append)
        assert result.failover_s is not None and result.failover_s > 0
        assert "led by others" in done
        await brokers.until(
            lambda: not any(name.startswith("headwater-perf") for name in brokers.image.topics)
        )

    run_cluster_scenario(tmp_path, scenario)


def test_what_cannot_be_made_is_told_in_a_sentence(cluster: Cluster) -> None:
    refused = run_command("perf", "partitions", "--replication-factor", 99, "-b", cluster.bootstrap)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("headwater: ")
    assert "Traceback" not in refused.stderr


def test_the_fewest_that_do_are_advised() -> None:
    results = [_result(1, 40e6, 0.1), _result(4, 95e6, 0.2), _result(16, 100e6, 2.5)]
    told = advice(results, None)
    assert told.startswith("Take 4: ")
    assert "16 would fail over in 2.50 s instead of 0.20 s" in told
    assert advice(results, 99e6).startswith("Take 16: ")
    assert advice(results, 30e6).startswith("Take 1: ")
    assert advice(results, 900e6).startswith("None reaches 900.0 MB/s: 16 come nearest")


def test_the_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"
    draw_chart([_result(1, 40e6), _result(4, 95e6)], path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--partitions", "1,many"), "should be like 1,4,16"),
        (("--partitions", "0,1"), "1 to 10,000 partitions"),
        (("--partitions", ",".join(map(str, range(1, 40)))), "20 numbers at most"),
        (("--acks", "2"), "--acks"),
        (("--chart", "curve.txt"), ".png or .svg"),
    ],
)
def test_a_command_line_that_makes_no_sense(arguments: tuple[str, ...], fault: str) -> None:
    refused = run_command("perf", "partitions", *arguments, "-b", "127.0.0.1:1")
    assert refused.exit_code == 2
    assert fault in refused.stderr
