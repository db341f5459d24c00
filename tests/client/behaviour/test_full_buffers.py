"""What becomes of records while the broker is away: they wait, are dropped, or take too long."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from headwater import KafkaError, Producer
from headwater.base.errors import ErrorCode
from headwater.testing.apache_kafka import KafkaNode
from headwater.testing.broker_process import BrokerProcess
from tests.support.other_clients.users import create_topic, read_all, values_of

QUICK: Mapping[str, object] = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
VALUES = [b"%4d" % number * 1_000 for number in range(30)]

Broker = BrokerProcess | KafkaNode


def test_a_full_buffer_blocks_and_then_says_so(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "topic")
    with Producer(
        QUICK, bootstrap_servers=broker.bootstrap, buffer_memory=40_000, max_block_ms=500
    ) as producer:
        producer.send(topic, b"first").result(30)
        broker.kill()
        futures = []
        start_s = time.monotonic()
        with pytest.raises(KafkaError) as full:
            for value in VALUES:
                start_s = time.monotonic()
                futures.append(producer.send(topic, value))
        assert full.value.code == ErrorCode.REQUEST_TIMED_OUT
        assert 0.4 < time.monotonic() - start_s < 10
        assert 5 < len(futures) < 11
        assert not any(future.done() for future in futures)
        broker.start()
        producer.flush(60)
        assert [future.result(0).offset for future in futures] == list(range(1, 1 + len(futures)))
        # There is room again.
        assert producer.send(topic, b"last").result(30).offset == 1 + len(futures)
    expected = [b"first", *VALUES[: len(futures)], b"last"]
    assert values_of(read_all(broker.bootstrap, topic)) == expected


def test_a_full_buffer_drops_where_that_is_wanted(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "topic")
    dropped: list[bytes] = []
    with Producer(
        QUICK,
        bootstrap_servers=broker.bootstrap,
        buffer_memory=40_000,
        buffer_full_policy="drop",
        on_drop=lambda _topic, _key, value: dropped.append(value),
    ) as producer:
        producer.send(topic, b"first").result(30)
        broker.kill()
        start_s = time.monotonic()
        for value in VALUES:
            producer.send(topic, value)
        assert time.monotonic() - start_s < 2
        assert 18 < len(dropped) < 25
        assert producer.metrics()["record-drop-total"] == len(dropped)
        broker.start()
        producer.flush(60)
    kept = [value for value in VALUES if value not in dropped]
    assert values_of(read_all(broker.bootstrap, topic)) == [b"first", *kept]


def test_a_record_that_takes_too_long_fails(broker: Broker) -> None:
    topic = create_topic(broker.bootstrap, "topic")
    with Producer(
        QUICK,
        bootstrap_servers=broker.bootstrap,
        linger_ms=0,
        request_timeout_ms=2_000,
        delivery_timeout_ms=3_000,
    ) as producer:
        producer.send(topic, b"first").result(30)
        broker.kill()
        start_s = time.monotonic()
        error = producer.send(topic, b"late").exception(30)
        assert error is not None
        assert error.code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION)
        assert 2.9 < time.monotonic() - start_s < 10
        broker.start()
        # What was given up leaves no gap behind: the producer goes on.
        producer.send(topic, b"next").result(30)
    assert values_of(read_all(broker.bootstrap, topic)) == [b"first", b"next"]
