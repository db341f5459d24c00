"""`headwater cluster status`: what is seen of a cluster that is well, and of one that is not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from headwater.base.ids import TopicPartition
from headwater.cli.cluster.broker_status import Reading
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command

_T0, _T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def _status(bootstrap: str, *arguments: object) -> Finished:
    return run_command("cluster", "status", *arguments, "-b", bootstrap)


def test_a_cluster_that_is_well(cluster: Cluster, topic: str, group: str) -> None:
    shown = _status(cluster.bootstrap)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.lines[-1].startswith("All is well")
    assert f"controller {cluster.broker_id}" in shown.lines[0]
    # It is one record behind in one of the partitions, in which there are two.
    [row] = [line.split() for line in shown.lines if line.startswith(f"{group} ")]
    assert row[-2:] == ["1", "1"]


def test_watching_tells_traffic(cluster: Cluster) -> None:
    watched = _status(cluster.bootstrap, "--watch", "--count", 2, "--interval", "100ms", "--json")
    assert (watched.exit_code, watched.stderr) == (0, "")
    first, second = (json.loads(line)["brokers"][0] for line in watched.lines)
    assert first["bytes_in_per_second"] is None
    assert second["bytes_in_per_second"] >= 0
    plain = _status(cluster.bootstrap, "--watch", "--count", 1)
    assert plain.exit_code == 0
    assert "All is well" in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [(("--count", 2), "--watch"), (("--watch", "--interval", "soon"), "no length of time")],
)
def test_a_command_line_that_makes_no_sense(arguments: tuple[object, ...], fault: str) -> None:
    refused = _status("127.0.0.1:1", *arguments)
    assert refused.exit_code == 2
    assert fault in refused.stderr


def test_nobody_answers() -> None:
    silent = _status("127.0.0.1:1")
    assert silent.exit_code == 1
    assert silent.stderr.startswith("headwater: ")
    assert "Traceback" not in silent.stderr


def test_a_broker_that_is_gone_and_comes_back(tmp_path: Path) -> None:
    async def scenario(brokers: BrokerCluster) -> None:
        async def document() -> tuple[int, dict[str, Any]]:
            done = await asyncio.to_thread(_status, brokers.bootstrap, "--json")
            return done.exit_code, json.loads(done.stdout)

        await brokers.create_topic("orders", [[3, 1], [1, 3], [1, 2]])
        await brokers.create_topic("strict", [[1, 3]], {"min.insync.replicas": "2"})
        await brokers.create_topic("alone", [[3]])
        await brokers.until_in_sync("strict")
        assert (await document())[0] == 0

        await brokers.stop(3)
        await brokers.until(lambda: brokers.leader_of("orders", 0) == 1)
        code, found = await document()
        assert code == 3
        assert not found["healthy"]
        assert found["offline"] == ["alone-0"]
        assert found["under_replicated"] == ["orders-0", "orders-1", "strict-0"]
        assert found["under_min_isr"] == ["strict-0"]
        by_id = {each["broker"]: each for each in found["brokers"]}
        assert [by_id[each]["is_up"] for each in (1, 2, 3)] == [True, True, False]
        assert by_id[3]["address"] is by_id[3]["size_bytes"] is None
        assert by_id[3]["out_of_sync"] == ["orders-0", "orders-1", "strict-0"]
        for words in ("Broker 3 is missing", "without a leader: alone-0", "`headwater doctor`"):
            assert words in found["conclusion"]
        shown = await asyncio.to_thread(_status, brokers.bootstrap)
        assert any("missing" in line.split() for line in shown.lines)

        await brokers.start(3)
        await brokers.until_in_sync("orders")
        await brokers.until_in_sync("strict")
        await brokers.until_in_sync("alone")
        code, found = await document()
        assert code == 0
        assert found["not_preferred"] == ["orders-0"]
        assert "`headwater elect-leaders --all-topic-partitions`" in found["conclusion"]

    settings = {"min.insync.replicas": "1", "auto.leader.rebalance.enable": "false"}
    run_cluster_scenario(tmp_path, scenario, settings)


def test_traffic_is_what_led_logs_grow_by() -> None:
    before = Reading(10.0, {_T0: 1_000, _T1: 9_000})
    after = Reading(12.0, {_T0: 5_000, _T1: 100})
    assert after.bytes_in(before, [_T0]) == 2_000
    # One that was deleted from hides nothing of the others, and one that is new is not known yet.
    assert after.bytes_in(before, [_T0, _T1, TopicPartition("new", 0)]) == 2_000
    assert after.bytes_in(before, []) == 0
    assert after.bytes_in(None, [_T0]) is None
