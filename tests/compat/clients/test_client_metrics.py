"""Stock clients push their metrics by themselves, and these are on the broker's page."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.testing.broker_process import HOST, free_port
from tests.support.metric_figures import Figures, read
from tests.support.other_clients.brokers import HEADWATER, running_broker
from tests.support.other_clients.contract import require_package
from tests.support.other_clients.java_client import JavaClient
from tests.support.other_clients.raw import RawConnection
from tests.support.values.pushed_metrics import subscription
from tests.support.waiting import eventually

TOPIC = "orders"


class Page:
    """A broker that asks for all metrics often, and what it shows."""

    def __init__(self, bootstrap: str, port: int) -> None:
        self.bootstrap = bootstrap
        self.url = f"http://{HOST}:{port}/metrics"

    def figures(self) -> Figures:
        with urllib.request.urlopen(self.url, timeout=10) as page:
            return read([page.read().decode()])

    def pushed_by(self, instance: str) -> dict[str, float]:
        """What that instance has pushed, by name: the largest value of each."""
        found: dict[str, float] = {}
        for (name, names), value in self.figures().items():
            if dict(names).get("client_instance_id") == instance:
                short = name.removeprefix("headwater_client_")
                found[short] = max(value, found.get(short, value))
        return found

    def instances(self, software: str) -> list[str]:
        """Who has pushed anything with that software."""
        return [
            dict(names)["client_instance_id"]
            for name, names in self.figures()
            if name == "headwater_client_info" and software in dict(names)["client_software_name"]
        ]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    port = free_port()
    settings = {"metrics.listen": f"{HOST}:{port}"}
    with running_broker(HEADWATER, tmp_path / "broker", settings) as broker:
        with RawConnection(broker.bootstrap) as connection:
            connection.ask(subscription(metrics="*", interval_ms="500"), 1)
        yield Page(broker.bootstrap, port)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    with JavaClient(tmp_path_factory.mktemp("java") / "log") as running:
        yield running


def test_librdkafka(page: Page) -> None:
    confluent: Any = require_package("confluent_kafka", "confluent-kafka")
    producer = confluent.Producer({"bootstrap.servers": page.bootstrap, "client.id": "shop"})
    for _ in range(10):
        producer.produce(TOPIC, b"x")
    producer.flush()
    (instance,) = eventually(lambda: page.instances("confluent-kafka"))
    pushed = page.pushed_by(instance)
    assert pushed["info"] == 1
    assert pushed["producer_connection_creation_total"] >= 1
    assert "producer_request_latency_avg" in pushed


@pytest.mark.kafka
def test_the_java_client(page: Page, java: JavaClient) -> None:
    told = java.run("metrics", page.bootstrap, page.url, TOPIC, "billing")
    for client in ("producer", "consumer"):
        pushed = page.pushed_by(told[client])
        assert pushed["info"] == 1
        assert pushed[f"{client}_connection_creation_total"] >= 1
