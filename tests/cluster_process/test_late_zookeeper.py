"""Brokers that start before their ZooKeeper does, as after a power cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing.broker_process import BrokerProcess, answers, wait_until
from headwater.zookeeper.ensemble import free_ports
from headwater.zookeeper.server import ZooKeeperServer
from tests.support.brokers.zookeeper import require_zookeeper

#: Short, so that what a killed broker left behind is gone soon.
SESSION_MS = "2000"


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Not started yet."""
    [port] = free_ports(1)
    server = ZooKeeperServer(
        tmp_path / "zookeeper", port=port, flush=False, program=require_zookeeper()
    )
    yield server
    server.kill()


@pytest.fixture
def waiting(tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[BrokerProcess]:
    """A broker that has said that it waits."""
    broker = BrokerProcess(
        tmp_path / "broker",
        settings={"zookeeper.session.timeout.ms": SESSION_MS},
        arguments=("--zookeeper", f"{zookeeper.address}/late"),
    )
    broker.launch()
    try:
        wait_until(lambda: "has not answered for 1 s" in broker.tail(), "the broker says so")
        yield broker
    finally:
        broker.kill()


def test_a_broker_waits_for_its_zookeeper(
    waiting: BrokerProcess, zookeeper: ZooKeeperServer
) -> None:
    zookeeper.start()
    wait_until(lambda: answers(waiting.port), "the broker serves")
    assert waiting.stop() == 0
    assert "Traceback" not in waiting.tail()


def test_a_broker_that_waits_can_be_stopped(waiting: BrokerProcess) -> None:
    assert waiting.stop(timeout_s=10.0) == 0
    assert "Headwater was stopped before it was ready." in waiting.tail().splitlines()


@pytest.mark.full
def test_a_cluster_comes_back_from_a_power_cut_in_any_order(
    waiting: BrokerProcess, zookeeper: ZooKeeperServer
) -> None:
    zookeeper.start()
    wait_until(lambda: answers(waiting.port), "the broker serves")
    for _ in range(2):
        zookeeper.kill()
        waiting.kill()
        waiting.launch()
        zookeeper.start()
        wait_until(lambda: answers(waiting.port), "the broker serves again")
