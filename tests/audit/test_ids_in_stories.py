"""Stories of docs/delivery-guarantees.md of which brokers can know nothing, told by ids exactly."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from headwater import Producer
from headwater.client.environment import in_environment
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker
from tests.support.command import run_command
from tests.support.proxies.produce_proxy import Fate, ProduceProxy
from tests.support.waiting import eventually

_ONE_BY_ONE: dict[str, object] = {
    "max.in.flight.requests.per.connection": 1,
    "retry.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
    "batch.size": 1,
    "linger.ms": 0,
    "enable.idempotence": False,
    "audit.ids.enable": True,
}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as one:
        yield one


@contextmanager
def sending(
    running: RunningBroker, topic: str, fates: Sequence[Fate], **settings: Any
) -> Iterator[Callable[[], None]]:
    """A call that sends a record, and waits until the producer believes in it."""
    with (
        ProduceProxy(running.bootstrap, ()) as proxy,
        in_environment(Producer, proxy.environment)(
            _ONE_BY_ONE, bootstrap_servers=proxy.bootstrap, **settings
        ) as producer,
    ):
        proxy.fates.extend(fates)

        def send() -> None:
            assert producer.send(topic, b"x").exception(30) is None

        yield send


def told(running: RunningBroker, topic: str) -> tuple[int, list[tuple[int, int]], list[Any]]:
    """The exit code, which numbers are missing, and which came more than once."""
    finished = run_command(
        *("audit", "ids", topic, "--grace", "0", "--json", "-b", running.bootstrap)
    )
    found = json.loads(finished.stdout)
    missing = [(each["first"], each["last"]) for each in found["missing"]]
    return finished.exit_code, missing, [each["first"] for each in found["doubled"]]


def test_what_was_lost_without_acknowledgements_is_missing(running: RunningBroker) -> None:
    topic = running.create_topic()
    with sending(running, topic, [Fate.PASS] * 3 + [Fate.LOSE_REQUEST], acks="0") as send:
        for _ in range(4):
            send()

        def missing_before_the_next() -> list[tuple[int, int]]:
            send()
            return told(running, topic)[1]

        # What else was on the way when the connection broke is lost with it, and nobody can miss
        # the last ones before another has come.
        [(first, _)] = eventually(missing_before_the_next)
    assert first == 3
    exit_code, _, doubled = told(running, topic)
    assert (exit_code, doubled) == (3, [])


def test_what_came_twice_without_idempotence_is_named(running: RunningBroker) -> None:
    topic = running.create_topic()
    with sending(running, topic, [Fate.PASS] * 4 + [Fate.LOSE_ANSWER]) as send:
        for _ in range(10):
            send()
    assert told(running, topic) == (3, [], [4])


def test_what_a_full_buffer_dropped_is_missing(running: RunningBroker) -> None:
    topic = running.create_topic()
    with Producer(
        bootstrap_servers=running.bootstrap,
        audit_ids_enable=True,
        buffer_memory=20_000,
        batch_size=10_000,
        linger_ms=200,
        buffer_full_policy="drop",
    ) as producer:
        futures = [producer.send(topic, bytes(5_000)) for _ in range(20)]
        producer.flush(30)
        dropped = sum(future.exception(30) is not None for future in futures)
        assert producer.send(topic, b"last").exception(30) is None
        metrics = producer.metrics()
    assert 0 < dropped < 20
    assert metrics["audit-given-up-total"] == dropped
    exit_code, missing, doubled = told(running, topic)
    assert sum(last - first + 1 for first, last in missing) == dropped
    assert (exit_code, doubled) == (3, [])
