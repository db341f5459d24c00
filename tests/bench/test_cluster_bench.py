"""The benchmark of clusters works from end to end; what it measures in this form means nothing."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bench_command import BenchReport
from bench.broker.chart import draw
from bench.broker.results import Goal, Row
from bench.cluster import __main__ as bench_main
from bench.cluster import latency
from bench.cluster.clusters import BROKER_IDS, HeadwaterCluster
from bench.cluster.pair import Pair
from bench.cluster.questions import controller_id, leader_of, topic
from bench.cluster.report import as_json, as_markdown
from bench.cluster.run import ClusterResults
from bench.cluster.writer import Acknowledged, longest_gap_ms
from bench.rounds import Comparison
from tests.support.brokers.zookeeper import require_zookeeper
from tests.support.kafka.node import require_apache_kafka
from tests.support.tiers import full_tier

ABOUT = {"machine": "Some CPU", "headwater": "1", "apache_kafka": "2", "clients": "3"}


@given(st.lists(st.integers(0, 10**12), min_size=2, unique=True))
def test_the_longest_gap_of_one_partition(moments_ns: list[int]) -> None:
    acknowledged = [Acknowledged(0, 0, moment_ns) for moment_ns in moments_ns]
    ordered = sorted(moments_ns)
    longest_ns = max(later - earlier for earlier, later in pairwise(ordered))
    assert longest_gap_ms(acknowledged) == longest_ns / 1e6


def test_gaps_are_looked_for_in_each_partition_and_after_a_moment() -> None:
    found = [
        Acknowledged(partition, 0, int(moment_ms * 1e6))
        for partition, moments in {0: (0, 50, 60, 90), 1: (10, 20, 95)}.items()
        for moment_ms in moments
    ]
    assert longest_gap_ms(found) == 75
    assert longest_gap_ms(found[:4], since_ns=int(50e6)) == 30
    # A gap counts if it is over after the moment, whenever it began.
    assert longest_gap_ms(found[:4], since_ns=int(40e6)) == 50
    assert longest_gap_ms([]) == 0


def test_what_only_one_side_was_measured_for_is_told_behind_the_tables(tmp_path: Path) -> None:
    goal = Goal(ratio_max=1.0)
    rows = [Row("Failures", "kill -9", "s", Comparison([6.0], [6.5]), goal)]
    results = ClusterResults("Headwater", "Apache Kafka", rows)
    assert "Headwater alone" not in as_markdown(results, ABOUT)
    results.alone.append(("kill -9 of the controller", "6.5 s"))
    BenchReport("cluster", tmp_path, results, ABOUT, as_markdown, as_json, draw).save()
    text = (tmp_path / "cluster.md").read_text()
    assert text.index("| kill -9 of the controller |") > text.index("| kill -9 ")
    assert json.loads((tmp_path / "cluster.json").read_text())["alone"][0][1] == "6.5 s"
    assert (tmp_path / "cluster.png").exists()


def test_a_cluster_is_written_to_hurt_and_mended(tmp_path: Path) -> None:
    require_zookeeper()
    with Pair(tmp_path, [HeadwaterCluster]).one(0) as cluster:
        with topic(cluster, "orders", 2) as name:
            assert leader_of(cluster, name) in BROKER_IDS
            victim = next(each for each in BROKER_IDS if each != controller_id(cluster))
            cluster.stop_broker(victim)
            assert len(cluster.broker_pids()) == 2
            cluster.start_broker(victim)
        found = latency.latencies_ms(cluster, 0.2, tmp_path / "stop")
        assert found and all(each > 0 for each in found)
        assert cluster.brokers_resident_bytes() > 3 * 20e6
        assert cluster.coordination_resident_bytes() > 20e6
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


if full_tier():

    def test_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        require_apache_kafka()
        require_zookeeper()
        assert bench_main.main(["--tiny", "--directory", str(tmp_path)]) == 0
        shown = capsys.readouterr().out
        for words in ("Produce 1 KB, librdkafka", "p99", "kill -9 of the leader", "Three brokers"):
            assert words in shown
        assert "0.002 GB to another broker" in shown and "20 empty partitions, CPU" in shown
        assert "20 partitions, 3 replicas" in shown and "kill -9 of the controller" in shown
