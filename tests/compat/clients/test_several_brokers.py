"""Other people's clients on a cluster of three brokers: each broker stays where it is.

What a client does with brokers that contradict each other about addresses differs: librdkafka
renames its nodes without an end, kafkajs hangs up on itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.support.brokers.serve_process import ServeProcess, serving
from tests.support.command import run_command
from tests.support.other_clients.kafkajs import round_trip

_PARTITION_COUNT = 6
_METADATA_ANSWERS = 40
_TIMEOUT_S = 60.0
#: What librdkafka says of a broker that it knew by another name.
_RENAMED = re.compile(r"Nodename changed from \S+:\d+ to ")


@pytest.fixture(scope="module", params=["localhost", "0.0.0.0"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("cluster")
    arguments = ("--brokers", "3", "--set", "acks.all.flush=off")
    with serving(directory, *arguments, listen=f"{request.param}:0") as running:
        yield running


def bootstrap(cluster: ServeProcess, host: str) -> str:
    """All brokers, dialled by a name of one's own."""
    return ",".join(f"{host}:{address.rpartition(':')[2]}" for address in cluster.addresses)


def make_topic(cluster: ServeProcess, name: str) -> None:
    created = run_command(
        *("topics", "create", name, "-p", str(_PARTITION_COUNT), "--replication-factor", "3"),
        *("--bootstrap-server", bootstrap(cluster, "127.0.0.1")),
    )
    assert created.exit_code == 0, created.stderr


class _Lines(logging.Handler):
    """What a client logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def matching(self, pattern: str | re.Pattern[str]) -> list[str]:
        return [line for line in self.lines if re.search(pattern, line)]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_librdkafka_never_renames_a_broker(cluster: ServeProcess, host: str) -> None:
    topic = f"librdkafka-{host}"
    make_topic(cluster, topic)
    log = _Lines()
    logger = logging.Logger(__name__, logging.DEBUG)
    logger.addHandler(log)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap(cluster, host),
            "debug": "broker,metadata",
            "topic.metadata.refresh.interval.ms": 20,
            "message.timeout.ms": int(_TIMEOUT_S * 1000),
        },
        logger=logger,
    )
    number = 0
    # Any broker is asked, so as many answers come from all of them.
    while len(log.matching("Received metadata")) < _METADATA_ANSWERS:
        producer.produce(topic, b"value", partition=number % _PARTITION_COUNT)
        assert producer.flush(_TIMEOUT_S) == 0
        number += 1
    assert log.matching(_RENAMED) == []


def test_kafkajs_writes_and_reads(cluster: ServeProcess) -> None:
    make_topic(cluster, "kafkajs")
    report = round_trip(bootstrap(cluster, "localhost"), "kafkajs", "readers", message_count=60)
    assert (report["failure"], report["complaints"]) == (None, [])
    assert sorted(report["consumed"]) == sorted(f"message {number}" for number in range(60))
