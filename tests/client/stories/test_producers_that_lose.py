"""How messages are lost before they reach a broker, and what to do about each of these ways."""

import subprocess
import sys
from pathlib import Path

import pytest

from headwater import KafkaError, Producer, RecordMetadata
from headwater.base.errors import ErrorCode
from headwater.client.environment import in_environment
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, numbers, read_all, values_of
from tests.support.proxies.produce_proxy import Fate, ProduceProxy

_QUICK: dict[str, object] = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10}


def _send_one_by_one(producer: Producer, topic: str, count: int) -> list[bool]:
    """One request for each record; whether the producer believes that it was written."""
    believed = []
    for value in numbers(0, count):
        future = producer.send(topic, value)
        producer.flush(30)
        believed.append(future.exception(0) is None)
    return believed


# -- fire and forget -----------------------------------------------------------------------------


def test_without_acknowledgements_a_broken_connection_loses_what_was_sent(
    cluster: Cluster,
) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    fates = [Fate.PASS] * 3 + [Fate.LOSE_REQUEST]
    with (
        ProduceProxy(cluster.bootstrap, fates) as proxy,
        in_environment(Producer, proxy.environment)(
            _QUICK, bootstrap_servers=proxy.bootstrap, acks="0", enable_idempotence=False
        ) as producer,
    ):
        believed = _send_one_by_one(producer, topic, 8)
    found = values_of(read_all(cluster.bootstrap, topic))
    assert believed == [True] * 8
    assert b"3" not in found
    assert len(found) < 8


def test_with_acknowledgements_a_broken_connection_loses_nothing(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    fates = [Fate.PASS] * 3 + [Fate.LOSE_REQUEST]
    with (
        ProduceProxy(cluster.bootstrap, fates) as proxy,
        in_environment(Producer, proxy.environment)(
            _QUICK, bootstrap_servers=proxy.bootstrap
        ) as producer,
    ):
        believed = _send_one_by_one(producer, topic, 8)
        assert proxy.fates == []
    assert believed == [True] * 8
    assert values_of(read_all(cluster.bootstrap, topic)) == numbers(0, 8)


def test_who_never_looks_at_the_future_does_not_hear_of_a_refusal(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), max_message_bytes="1000")
    heard: list[KafkaError | None] = []

    def note(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        heard.append(error)

    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        # Fire and forget: no trying again helps against a record that is too large.
        producer.send(topic, bytes(5000))
        producer.send(topic, b"small")
        producer.flush(30)
        # The same with somebody who listens, by a callback and by the future.
        producer.send(topic, bytes(5000), on_delivery=note)
        with pytest.raises(KafkaError) as refused:
            producer.send(topic, bytes(5000)).result(30)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert [error.code for error in heard if error] == [ErrorCode.MESSAGE_TOO_LARGE]
    assert values_of(read_all(cluster.bootstrap, topic)) == [b"small"]


# -- the producer's memory -----------------------------------------------------------------------

_BUFFER: dict[str, object] = {"buffer.memory": 32_768, "batch.size": 16_384, "linger.ms": 0}


def test_a_full_buffer_that_drops_loses_messages(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    dropped: list[object] = []
    with Producer(
        _BUFFER,
        bootstrap_servers=cluster.bootstrap,
        buffer_full_policy="drop",
        on_drop=lambda topic, key, value: dropped.append(value),
    ) as producer:
        for value in numbers(0, 200):
            producer.send(topic, value.zfill(8_000))
        producer.flush(30)
    found = values_of(read_all(cluster.bootstrap, topic))
    assert len(dropped) > 0
    assert len(found) == 200 - len(dropped)


def test_a_full_buffer_that_blocks_slows_the_sender_down_instead(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(
        _BUFFER, bootstrap_servers=cluster.bootstrap, buffer_full_policy="block"
    ) as producer:
        for value in numbers(0, 200):
            producer.send(topic, value.zfill(8_000))
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [value.zfill(8_000) for value in numbers(0, 200)]


# -- the producer's end --------------------------------------------------------------------------

_DYING = """
import os, signal, sys
from headwater import Producer

bootstrap, topic, spool_dir, waits = sys.argv[1:]
settings = {"spool_dir": spool_dir} if spool_dir else {}
producer = Producer(bootstrap_servers=bootstrap, linger_ms=60_000, batch_size=100_000, **settings)
if waits:
    producer.send(topic, b"to find the topic")
for number in range(10):
    future = producer.send(topic, b"%d" % number)
    if waits:
        producer.flush(30)
        future.result(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _die_after_sending(cluster: Cluster, topic: str, spool_dir: str = "", waits: str = "") -> None:
    """A process that sends ten messages and is killed when the last `send` has returned."""
    arguments = [cluster.bootstrap, topic, spool_dir, waits]
    finished = subprocess.run(
        [sys.executable, "-c", _DYING, *arguments], capture_output=True, timeout=120, check=False
    )
    assert finished.returncode == -9, finished.stderr.decode()


def test_what_is_in_memory_is_lost_with_the_process(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    _die_after_sending(cluster, topic)
    assert values_of(read_all(cluster.bootstrap, topic)) == []


def test_who_waits_for_each_message_loses_none(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    _die_after_sending(cluster, topic, waits="yes")
    found = values_of(read_all(cluster.bootstrap, topic))
    assert found == [b"to find the topic", *numbers(0, 10)]


def test_what_is_in_a_spool_survives_the_process(cluster: Cluster, tmp_path: Path) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    _die_after_sending(cluster, topic, spool_dir=str(tmp_path))
    assert values_of(read_all(cluster.bootstrap, topic)) == []
    with Producer(bootstrap_servers=cluster.bootstrap, spool_dir=tmp_path) as producer:
        producer.flush(30)
    assert values_of(read_all(cluster.bootstrap, topic)) == numbers(0, 10)
