import socket
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.testing import broker
from headwater.testing.unsynced_files import UnsyncedFiles


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    try:
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None and message.error() is None
            values.append(message.value())
    finally:
        consumer.close()
    return values


def test_any_client_can_use_it_through_its_port() -> None:
    with broker() as running:
        assert running.create_topic("orders", partitions=3) == "orders"
        produce(running.bootstrap, "orders", b"one")
        metadata = Producer({"bootstrap.servers": running.bootstrap}).list_topics(timeout=30)
        assert len(metadata.topics["orders"].partitions) == 3
        assert list(metadata.brokers) == [0]
        assert running.topics() == ["orders"]
        data_dir = running.data_dir
        assert (data_dir / "orders-0").is_dir()
    assert not data_dir.exists()
    assert not running.is_running


def test_a_restart_keeps_port_and_data() -> None:
    with broker() as running:
        topic = running.create_topic()
        produce(running.bootstrap, topic, b"before")
        port = running.port
        running.restart()
        assert running.port == port
        produce(running.bootstrap, topic, b"after")
        assert consume(running.bootstrap, topic, 2) == [b"before", b"after"]


def test_a_directory_of_the_callers_own_is_kept(tmp_path: Path) -> None:
    with broker(tmp_path) as running:
        running.create_topic("kept")
    with broker(tmp_path) as running:
        assert running.topics() == ["kept"]
    assert (tmp_path / "kept-0").is_dir()


def test_settings_and_topic_configs_are_taken() -> None:
    with broker(settings={"num.partitions": "5", "message.max.bytes": "2000"}) as running:
        running.create_topic("large", configs={"max.message.bytes": "9000"})
        producer = Producer({"bootstrap.servers": running.bootstrap})
        assert len(producer.list_topics("auto", timeout=30).topics["auto"].partitions) in (0, 5)
        with pytest.raises(KafkaError) as refused:
            running.create_topic("wrong", configs={"max.message.bytes": "many"})
        assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_names_are_made_up_where_none_is_given() -> None:
    with broker() as running:
        names = [running.create_topic() for _ in range(3)]
        assert len(set(names)) == 3
        running.delete_topic(names[0])
        assert running.topics() == sorted(names[1:])
        with pytest.raises(KafkaError) as refused:
            running.delete_topic(names[0])
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError) as refused:
            running.create_topic(names[1])
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_while_it_is_stopped_nobody_answers() -> None:
    with broker() as running:
        running.stop()
        with pytest.raises(OSError):
            socket.create_connection((running.host, running.port), timeout=5)
        with pytest.raises(RuntimeError, match="not running"):
            running.create_topic("orders")
        running.start()
        running.create_topic("orders")


def test_what_keeps_it_from_starting_is_raised_here_and_leaves_nothing() -> None:
    before = threading.active_count()
    with pytest.raises(SettingError, match="did you mean"):
        broker(settings={"num.partition": "3"})
    with broker() as running, pytest.raises(OSError, match="in use"):
        broker(port=running.port)
    assert threading.active_count() == before


def test_the_interpreters_settings_are_as_before() -> None:
    before = sys.getswitchinterval()
    with broker():
        pass
    assert sys.getswitchinterval() == before


def test_a_closed_broker_does_not_hold_its_clients_up() -> None:
    with broker() as running:
        topic = running.create_topic()
        consumer = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "none"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.3) is None
    consumer.close()
    with pytest.raises(KafkaException):
        Producer({"bootstrap.servers": running.bootstrap}).list_topics(timeout=0.3)


def test_unsynced_files_are_files_in_all_else(tmp_path: Path) -> None:
    files = UnsyncedFiles()
    file = files.open(str(tmp_path / "a"), create=True)
    file.write_at(0, b"content")
    file.sync()
    files.sync_dir(str(tmp_path))
    assert (tmp_path / "a").read_bytes() == b"content"
    file.close()
    with pytest.raises(OSError):
        file.sync()
    with pytest.raises(FileNotFoundError):
        files.sync_dir(str(tmp_path / "absent"))
