"""Clusters for tests that use the client as its users do."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess
from tests.support.brokers.clusters import HEADWATER, KINDS, Cluster, running_cluster
from tests.support.kafka.node import small_node

#: Short, so that tests see a session end, and hear soon what a coordinator has decided.
SETTINGS = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture(scope="module", params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster to use the real thing on."""
    yield from running_cluster(request.param, tmp_path_factory.mktemp("cluster"), SETTINGS)


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess | KafkaNode]:
    """One for this test alone, which it may stop, kill and start again."""
    node: AbstractContextManager[BrokerProcess | KafkaNode] = (
        BrokerProcess(tmp_path / "broker")
        if request.param == HEADWATER
        else small_node(tmp_path / "broker")
    )
    with node as running:
        yield running
