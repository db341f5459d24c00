"""`Producer` on a real cluster, from threads."""

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingError
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.errors import ClientClosedError
from headwater.client.kafka_errors.record_errors import MessageTooLargeError
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.errors import TopicNotKnownError
from headwater.client.producer.intake.interceptors import ProducerInterceptor
from headwater.client.producer.intake.serializers import JsonSerializer, StringSerializer
from headwater.client.producer.producer import Producer
from headwater.client.producer.record_metadata import RecordMetadata
from tests.support.brokers.clusters import Cluster

TIMEOUT_S = 30.0


def read_all(cluster: Cluster, topic: str, count: int, partition: int = 0) -> list[ConsumerRecord]:
    """The first records of a partition."""
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, partition)])
        found: list[ConsumerRecord] = []
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(found) < count and time.monotonic() < deadline_s:
            found += consumer.poll(0.5)
        return found


def test_records_arrive_with_all_that_belongs_to_them(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        future = producer.send(
            topic, b"value", b"key", headers=[("name", b"content")], timestamp_ms=1_700_000_000_000
        )
        tombstone = producer.send(topic, None, b"key")
        metadata = future.result(TIMEOUT_S)
        assert metadata == (topic, 0, 0, 1_700_000_000_000)
        assert tombstone.result(TIMEOUT_S).offset == 1
    first, second = read_all(cluster, topic, 2)
    assert (first.key, first.value, first.timestamp) == (b"key", b"value", 1_700_000_000_000)
    assert list(first.headers) == [("name", b"content")]
    assert (second.key, second.value) == (b"key", None)


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_many_records_arrive_in_order(cluster: Cluster, acks: object) -> None:
    topic = cluster.new_name()
    told: list[int] = []

    def tell(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        assert error is None
        assert metadata is not None
        told.append(metadata.offset)

    config = {"bootstrap.servers": cluster.bootstrap, "acks": acks}
    with Producer(config, batch_size=2000) as producer:
        futures = [
            producer.send(topic, b"%d" % number, partition=0, on_delivery=tell)
            for number in range(2000)
        ]
        producer.flush(TIMEOUT_S)
        assert all(future.done() for future in futures)
        metrics = producer.metrics()
    expected = [-1] * 2000 if acks == 0 else list(range(2000))
    assert [future.result().offset for future in futures] == expected
    assert told == expected
    assert metrics["record-send-total"] == 2000
    assert metrics["record-error-total"] == 0
    assert metrics["batch-size-max"] <= 2000
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    found = read_all(cluster, topic, 2000)
    assert [record.value for record in found] == [b"%d" % number for number in range(2000)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_arrives_and_saves_space(cluster: Cluster, codec: str) -> None:
    topic = cluster.new_name()
    config = {"bootstrap.servers": cluster.bootstrap, "compression.type": codec}
    with Producer(config) as producer:
        for number in range(200):
            producer.send(topic, b"%03d" % number * 20)
        producer.flush(TIMEOUT_S)
        saved = producer.metrics()["compression-rate-avg"]
    assert [record.value for record in read_all(cluster, topic, 200)] == [
        b"%03d" % number * 20 for number in range(200)
    ]
    assert saved > 0.9 if codec == "none" else saved < 0.7


@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("zstd", 19), ("lz4", 12)])
def test_a_level_of_compression_can_be_chosen(cluster: Cluster, codec: str, level: int) -> None:
    topic = cluster.new_name()
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "compression.type": codec,
        f"compression.{codec}.level": level,
    }
    with Producer(config) as producer:
        assert producer.send(topic, b"abc" * 1000).result(TIMEOUT_S).offset == 0


def test_serializers_and_interceptors_do_their_work(cluster: Cluster) -> None:
    topic = cluster.new_name()
    acknowledged: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    closed: list[bool] = []

    class Noting(ProducerInterceptor):
        def on_acknowledgement(
            self, metadata: RecordMetadata | None, error: KafkaError | None
        ) -> None:
            acknowledged.append((metadata, error))

        def close(self) -> None:
            closed.append(True)

    with Producer(
        bootstrap_servers=cluster.bootstrap,
        key_serializer=StringSerializer(),
        value_serializer=JsonSerializer(),
        interceptors=[Noting()],
    ) as producer:
        producer.send(topic, {"number": 5}, "schlüssel").result(TIMEOUT_S)
    assert [metadata.offset for metadata, _ in acknowledged if metadata is not None] == [0]
    assert closed == [True]
    (record,) = read_all(cluster, topic, 1)
    assert (record.key, record.value) == ("schlüssel".encode(), b'{"number":5}')


def test_threads_share_a_producer(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=1000) as producer:

        def work(thread: int) -> None:
            for number in range(300):
                producer.send(topic, b"%d-%d" % (thread, number))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [record.value for record in read_all(cluster, topic, 1200)]
    assert len(values) == len(set(values)) == 1200
    for thread_number in range(4):
        prefix = b"%d-" % thread_number
        own = [value for value in values if value.startswith(prefix)]
        assert own == [b"%d-%d" % (thread_number, number) for number in range(300)]


def test_a_topic_that_does_not_come_is_waited_for_and_told() -> None:
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=300) as producer:
        began_s = time.monotonic()
        with pytest.raises(TopicNotKnownError, match=r"'topic' was not found.*refused"):
            producer.send("topic", b"value")
        assert 0.2 < time.monotonic() - began_s < 10


def test_a_topic_that_cannot_be_is_told_at_once(cluster: Cluster) -> None:
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        pytest.raises(KafkaError) as raised,
    ):
        producer.send("no spaces allowed", b"value")
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_partition_that_does_not_exist_is_told(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        assert [each.partition for each in producer.partitions_for(topic)] == [0]
        with pytest.raises(KafkaError) as raised:
            producer.send(topic, b"value", partition=7)
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_record_that_is_too_large_is_refused_here_or_by_the_broker(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(bootstrap_servers=cluster.bootstrap, max_request_size=5_000_000) as producer:
        with pytest.raises(MessageTooLargeError, match=r"max.request.size"):
            producer.send(topic, b"x" * 5_000_000)
        refused = producer.send(topic, b"x" * 2_000_000)
        error = refused.exception(TIMEOUT_S)
        assert error is not None
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        # The producer goes on.
        assert producer.send(topic, b"small").result(TIMEOUT_S).offset == 0


def test_a_batch_that_is_too_large_for_the_topic_is_split(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(
        bootstrap_servers=cluster.bootstrap,
        batch_size=4_000_000,
        max_request_size=5_000_000,
        linger_ms=1000,
    ) as producer:
        futures = [producer.send(topic, b"%04d" % number * 25_000) for number in range(30)]
        assert [future.result(TIMEOUT_S).offset for future in futures] == list(range(30))
        assert producer.metrics()["batch-split-total"] > 0


def test_a_full_buffer_blocks_and_goes_on(cluster: Cluster) -> None:
    topic = cluster.new_name()
    with Producer(
        bootstrap_servers=cluster.bootstrap, batch_size=1000, buffer_memory=4000
    ) as producer:
        for _ in range(500):
            producer.send(topic, b"x" * 200)
        producer.flush(TIMEOUT_S)
        assert producer.metrics()["record-send-total"] == 500


def test_a_send_from_a_callback_works(cluster: Cluster) -> None:
    topic = cluster.new_name()
    second: list[DeliveryFuture] = []
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:

        def again(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            second.append(producer.send(topic, b"second"))

        producer.send(topic, b"first", on_delivery=again).result(TIMEOUT_S)
        wait_until(lambda: bool(second))
        assert second[0].result(TIMEOUT_S).offset == 1


def test_a_failing_callback_disturbs_nobody(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.new_name()

    def fail(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        raise RuntimeError("broken")

    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        futures = [producer.send(topic, b"value", on_delivery=fail) for _ in range(3)]
        assert [future.result(TIMEOUT_S).offset for future in futures] == [0, 1, 2]
        producer.flush(TIMEOUT_S)
    assert sum("callback failed" in record.message for record in caplog.records) == 3


def test_closing_writes_what_was_sent_and_refuses_more(cluster: Cluster) -> None:
    topic = cluster.new_name()
    producer = Producer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000)
    future = producer.send(topic, b"value")
    producer.close()
    assert future.result().offset == 0
    producer.close()
    for call in (
        lambda: producer.send(topic, b"value"),
        lambda: producer.partitions_for(topic),
        lambda: producer.flush(),
    ):
        with pytest.raises(ClientClosedError):
            call()


def test_closing_gives_up_after_its_time(cluster: Cluster) -> None:
    topic = cluster.new_name()
    producer = Producer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000)
    producer.partitions_for(topic)
    future = producer.send(topic, b"value")
    producer.close(0)
    assert isinstance(future.exception(), ClientClosedError)


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(SettingError, match=r"linger.ms"):
        Producer({"linger.mss": 5})
    with pytest.raises(SettingError, match="acks=all"):
        Producer(enable_idempotence=True, acks=1)


def test_futures_call_back(cluster: Cluster) -> None:
    topic = cluster.new_name()
    called: Counter[str] = Counter()
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        future = producer.send(topic, b"value")
        future.add_done_callback(lambda found: called.update([f"before {found is future}"]))
        future.result(TIMEOUT_S)
        producer.flush(TIMEOUT_S)
        future.add_done_callback(lambda found: called.update([f"after {found is future}"]))
    assert called == {"before True": 1, "after True": 1}


def test_its_thread_has_its_name_and_ends_with_it(cluster: Cluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, client_id="named"):
        assert "named-producer" in [thread.name for thread in threading.enumerate()]
    assert "named-producer" not in [thread.name for thread in threading.enumerate()]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
