"""`Producer(spool_dir=...)` as its users see it."""

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import KafkaError, Producer, RecordMetadata
from headwater.base.errors import ErrorCode
from headwater.client.environment import in_environment
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.producer.errors import BufferExhaustedError
from headwater.client.spool.errors import SpoolLockedError
from headwater.client.spool.files.refused_log import read_refused
from headwater.testing.broker_process import free_port
from headwater.testing.running_broker import RunningBroker
from tests.support.other_clients.users import numbers, read_all, values_of
from tests.support.proxies.produce_proxy import Fate, ProduceProxy

_NOBODY = "127.0.0.1:9"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        yield running


def test_records_arrive_as_they_were_sent(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.create_topic(partitions=2)
    timestamp_ms = time.time_ns() // 1_000_000 - 5_000
    heard: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    with Producer(
        bootstrap_servers=broker.bootstrap, spool_dir=tmp_path, value_serializer=str.encode
    ) as producer:
        future = producer.send(
            topic,
            "value",
            b"key",
            partition=1,
            headers={"h": "1", "n": None},
            timestamp_ms=timestamp_ms,
            on_delivery=lambda metadata, error: heard.append((metadata, error)),
        )
        assert future.result(30) == RecordMetadata(topic, 1, 0, timestamp_ms)
        assert future.done()
        producer.flush(30)
        assert heard == [(future.result(0), None)]
        assert producer.metrics()["spool-delivered-total"] == 1
        assert producer.metrics()["spool-waiting-records"] == 0
    [record] = read_all(broker.bootstrap, topic, 2)
    assert (record.key, record.value, record.partition) == (b"key", b"value", 1)
    assert list(record.headers) == [("h", b"1"), ("n", None)]
    assert record.timestamp == timestamp_ms


def test_a_broker_that_is_away_while_records_are_sent(tmp_path: Path) -> None:
    port = free_port()
    producer = Producer(bootstrap_servers=f"127.0.0.1:{port}", spool_dir=tmp_path / "spool")
    futures = [producer.send("t", value) for value in numbers(0, 200)]
    assert not futures[0].done()
    with pytest.raises(DeadlineError):
        producer.flush(0.1)
    with RunningBroker(tmp_path / "broker", port=port) as broker:
        assert futures[-1].result(60).offset == 199
        broker.stop()
        later = [producer.send("t", value) for value in numbers(200, 400)]
        broker.start()
        assert later[-1].result(60).offset == 399
        producer.close()
        assert values_of(read_all(broker.bootstrap, "t")) == numbers(0, 400)


def test_a_bad_network_alone_doubles_nothing(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.create_topic()
    fates = [Fate.PASS, Fate.LOSE_ANSWER, Fate.REFUSE, Fate.LOSE_REQUEST] * 4
    with (
        ProduceProxy(broker.bootstrap, fates) as proxy,
        in_environment(Producer, proxy.environment)(
            {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "batch.size": 100},
            bootstrap_servers=proxy.bootstrap,
            spool_dir=tmp_path,
            spool_fsync="never",
        ) as producer,
    ):
        for value in numbers(0, 300):
            producer.send(topic, value)
        producer.flush(60)
        assert proxy.fates == []
    assert values_of(read_all(broker.bootstrap, topic)) == numbers(0, 300)


def test_what_one_producer_could_not_ship_the_next_one_does(
    broker: RunningBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    first = Producer(bootstrap_servers=_NOBODY, spool_dir=tmp_path)
    futures = [first.send(topic, value) for value in numbers(0, 50)]
    with pytest.raises(SpoolLockedError):
        Producer(bootstrap_servers=_NOBODY, spool_dir=tmp_path)
    first.close(0)
    with pytest.raises(ClientClosedError, match="the next producer on it sends it"):
        futures[0].result(0)
    with pytest.raises(ClientClosedError):
        first.send(topic, b"too late")
    with Producer(bootstrap_servers=broker.bootstrap, spool_dir=tmp_path) as second:
        second.send(topic, b"50")
    assert values_of(read_all(broker.bootstrap, topic)) == numbers(0, 51)


def test_a_future_that_nobody_keeps_costs_nothing_and_its_callback_is_called(
    tmp_path: Path,
) -> None:
    port = free_port()
    heard = threading.Event()
    producer = Producer(bootstrap_servers=f"127.0.0.1:{port}", spool_dir=tmp_path / "spool")
    for value in numbers(0, 100):
        producer.send("t", value)
    producer.send("t", b"100").add_done_callback(lambda _: heard.set())
    gc.collect()
    outcomes = producer._engine._spool._outcomes  # type: ignore[union-attr]
    assert len(outcomes._seen) == 1
    with RunningBroker(tmp_path / "broker", port=port) as late:
        assert late.is_running
        assert heard.wait(60)
        producer.close()


def test_what_a_broker_refuses_for_good_is_kept_with_the_reason(
    broker: RunningBroker, tmp_path: Path
) -> None:
    small = broker.create_topic(configs={"max.message.bytes": "1000"})
    compacted = broker.create_topic(configs={"cleanup.policy": "compact"})
    with Producer(bootstrap_servers=broker.bootstrap, spool_dir=tmp_path) as producer:
        large = producer.send(small, bytes(5000))
        futures = [producer.send(small, value) for value in numbers(0, 20)]
        producer.send(compacted, b"no key")
        keyed = producer.send(compacted, b"value", b"key")
        producer.flush(60)
        assert keyed.exception(0) is None
        error = large.exception(0)
        assert error is not None
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        assert all(future.exception(0) is None for future in futures)
        assert producer.metrics()["spool-refused-total"] == 2
    assert values_of(read_all(broker.bootstrap, small)) == numbers(0, 20)
    refused = read_refused(str(tmp_path))
    assert [(each.record.topic, each.code) for each in refused] == [
        (small, ErrorCode.MESSAGE_TOO_LARGE),
        (compacted, ErrorCode.INVALID_RECORD),
    ]
    assert refused[0].record.value == bytes(5000)


def test_a_full_spool_drops_if_it_is_told_to(tmp_path: Path) -> None:
    dropped: list[object] = []
    producer = Producer(
        bootstrap_servers=_NOBODY,
        spool_dir=tmp_path,
        spool_max_bytes=4096,
        buffer_full_policy="drop",
        on_drop=lambda topic, key, value: dropped.append(value),
    )
    futures = [producer.send("t", bytes([number]) * 200) for number in range(30)]
    failed = [future for future in futures if future.done()]
    assert 0 < len(failed) == len(dropped) < 30
    assert isinstance(failed[0].exception(0), BufferExhaustedError)
    assert producer.metrics()["spool-dropped-total"] == len(dropped)
    producer.close(0)


def test_a_full_spool_blocks_by_default(tmp_path: Path) -> None:
    producer = Producer(
        bootstrap_servers=_NOBODY, spool_dir=tmp_path, spool_max_bytes=4096, max_block_ms=50
    )
    with pytest.raises(BufferExhaustedError, match="is full"):
        for _ in range(30):
            producer.send("t", bytes(200))
    producer.close(0)


def test_a_topic_that_is_not_there_or_no_longer_does_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    settings = {"auto.create.topics.enable": "false"}
    with RunningBroker(tmp_path / "broker", settings=settings) as broker:
        topic, deleted = broker.create_topic(), broker.create_topic()
        with Producer(
            bootstrap_servers=broker.bootstrap,
            spool_dir=tmp_path / "spool",
            max_block_ms=500,
            linger_ms=500,
        ) as producer:
            producer.send(deleted, b"0").result(30)
            producer.send("typo", b"misdirected")
            producer.send(deleted, b"too late")
            future = producer.send(topic, b"right")
            broker.delete_topic(deleted)
            assert future.result(60).offset == 0
            producer.flush(60)
        assert values_of(read_all(broker.bootstrap, topic)) == [b"right"]
    refused = read_refused(str(tmp_path / "spool"))
    assert {each.code for each in refused} <= {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert sorted(each.record.value or b"" for each in refused) == [b"misdirected", b"too late"]
