"""Stock clients push their metrics by themselves, and these are on the broker's page."""

from __future__ import annotations

import itertools
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
        self._port = port
        self._names = (f"orders-{number}" for number in itertools.count())

    def new_name(self) -> str:
        """Of a topic or a group that nobody has used."""
        return next(self._names)

    def figures(self) -> Figures:
        with urllib.request.urlopen(f"http://{HOST}:{self._port}/metrics", timeout=10) as page:
            return read([page.read().decode()])

    def pushed_by(self, software: str) -> dict[str, float]:
        """What instances of that software have pushed, by name: the largest value of each."""
        figures = self.figures()
        instances = {
            dict(names)["client_instance_id"]
            for name, names in figures
            if name == "headwater_client_info" and software in dict(names)["client_software_name"]
        }
        found: dict[str, float] = {}
        for (name, names), value in figures.items():
            if dict(names).get("client_instance_id") in instances:
                short = name.removeprefix("headwater_client_")
                found[short] = max(value, found.get(short, value))
        return found


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
    pushed = eventually(lambda: page.pushed_by("confluent-kafka"))
    assert pushed["info"] == 1
    assert pushed["producer_connection_creation_total"] >= 1
    assert "producer_request_latency_avg" in pushed


@pytest.mark.kafka
def test_the_java_client(page: Page, java: JavaClient) -> None:
    # What it pushes as it closes is there when it has closed; one that lived too short to be asked
    # for anything pushes nothing.
    topic = ""
    while "info" not in page.pushed_by("apache-kafka-java"):
        topic = page.new_name()
        java.run("produce", page.bootstrap, topic, "200")
    pushed = page.pushed_by("apache-kafka-java")
    assert pushed["info"] == 1
    assert pushed["producer_connection_creation_total"] >= 1
    while "consumer_connection_creation_total" not in page.pushed_by("apache-kafka-java"):
        java.run("consume", page.bootstrap, "consumer", topic, page.new_name(), "200")
    pushed = page.pushed_by("apache-kafka-java")
    assert pushed["consumer_connection_creation_total"] >= 1
