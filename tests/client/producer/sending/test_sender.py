from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.errors import BatchExpiredError
from headwater.client.producer.intake.serializers import SerializationError
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.messages.produce import ProduceRequest
from headwater.wire.records import Compression, decode_records, read_batch_header
from tests.support.fakes.cluster import TOPIC, TOPIC_ID, FakeCluster


def send(
    cluster: FakeCluster, value: bytes, partition: int = 0, timestamp_ms: int = 5
) -> DeliveryFuture:
    return cluster.send(value, partition, timestamp_ms=timestamp_ms)


def partitions_of(request: object) -> list[int]:
    assert isinstance(request, ProduceRequest)
    return [data.index for topic in request.topic_data for data in topic.partition_data]


def values_of(request: object) -> list[bytes]:
    assert isinstance(request, ProduceRequest)
    return [
        record.value or b""
        for topic in request.topic_data
        for data in topic.partition_data
        if isinstance(data.records, tuple)
        for record in decode_records(b"".join(data.records))
    ]


def test_a_batch_waits_for_company_and_then_goes() -> None:
    cluster = FakeCluster(linger_s=0.005, is_idempotent=False)
    cluster.step()
    send(cluster, b"one")
    cluster.advance(0.004)
    send(cluster, b"two")
    assert cluster.requests == []
    cluster.advance(0.002)
    assert [values_of(ask.request) for _, ask in cluster.requests] == [[b"one", b"two"]]


def test_a_full_batch_goes_at_once() -> None:
    cluster = FakeCluster(linger_s=10.0, batch_size_bytes=200, is_idempotent=False)
    cluster.step()
    for _ in range(3):
        send(cluster, b"x" * 60)
    cluster.step()
    assert [len(values_of(ask.request)) for _, ask in cluster.requests] == [1, 1]


def test_a_flush_makes_batches_go() -> None:
    cluster = FakeCluster(linger_s=10.0, is_idempotent=False)
    cluster.step()
    send(cluster, b"one")
    cluster.step()
    assert not cluster.requests
    cluster.accumulator.begin_flush()
    cluster.step()
    assert len(cluster.requests) == 1


def test_one_request_for_a_broker_has_one_batch_of_each_partition() -> None:
    cluster = FakeCluster(partition_count=4, is_idempotent=False)
    cluster.step()
    for partition in range(4):
        send(cluster, b"value", partition)
    cluster.advance(0.01)
    assert {broker_id: partitions_of(ask.request) for broker_id, ask in cluster.requests} == {
        0: [0, 2],
        1: [1, 3],
    }


def test_a_request_is_no_larger_than_allowed() -> None:
    cluster = FakeCluster(partition_count=6, request_bytes_max=400, is_idempotent=False)
    cluster.step()
    for partition in (0, 2, 4):
        send(cluster, b"x" * 100, partition)
    cluster.advance(0.01)
    assert [partitions_of(ask.request) for _, ask in cluster.requests] == [[0, 2], [4]]


def test_a_broker_owes_no_more_answers_than_allowed() -> None:
    cluster = FakeCluster(in_flight_max=2, batch_size_bytes=0, is_idempotent=False)
    cluster.step()
    for number in range(5):
        send(cluster, b"%d" % number)
    cluster.advance(0.01)
    assert len(cluster.wire[0]) == 2
    cluster.answer(0)
    cluster.step()
    assert len(cluster.wire[0]) == 2
    cluster.settle()
    assert cluster.logs[0].values == [b"0", b"1", b"2", b"3", b"4"]


def test_topics_without_ids_are_named_in_an_older_version() -> None:
    for has_topic_ids, version_max in ((True, None), (False, 12)):
        cluster = FakeCluster(has_topic_ids=has_topic_ids, is_idempotent=False)
        cluster.step()
        send(cluster, b"value")
        cluster.advance(0.01)
        ((_, ask),) = cluster.requests
        assert ask.version_max == version_max
        assert isinstance(ask.request, ProduceRequest)
        assert ask.request.topic_data[0].name == TOPIC
        assert (ask.request.topic_data[0].topic_id == TOPIC_ID) == has_topic_ids


def test_futures_tell_offset_and_timestamp() -> None:
    cluster = FakeCluster()
    cluster.step()
    futures = [send(cluster, b"%d" % number, timestamp_ms=100 + number) for number in range(3)]
    assert not futures[0].done()
    cluster.settle()
    assert [future.result() for future in futures] == [
        (TOPIC, 0, 0, 100),
        (TOPIC, 0, 1, 101),
        (TOPIC, 0, 2, 102),
    ]


def test_a_batch_that_is_too_large_is_sent_in_parts() -> None:
    cluster = FakeCluster()
    cluster.step()
    cluster.logs[0].record_count_max = 2
    futures = [send(cluster, b"%d" % number) for number in range(7)]
    cluster.settle()
    assert cluster.logs[0].values == [b"%d" % number for number in range(7)]
    assert [future.result().offset for future in futures] == list(range(7))
    assert cluster.metrics.figures(cluster.now_s)["batch-split-total"] > 0


def test_one_record_that_is_too_large_fails() -> None:
    cluster = FakeCluster()
    cluster.step()
    cluster.logs[0].record_count_max = 0
    future = send(cluster, b"value")
    cluster.settle()
    error = future.exception()
    assert error is not None
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    # What comes later is not held up by the missing number.
    cluster.logs[0].record_count_max = 10
    later = send(cluster, b"later")
    cluster.settle()
    assert later.result().offset == 0


def test_it_goes_to_the_new_leader_when_the_leader_moves() -> None:
    cluster = FakeCluster()
    cluster.step()
    first = send(cluster, b"first")
    cluster.advance(0.01)
    cluster.leaders[0] = 1
    cluster.answer(0)
    cluster.settle()
    assert first.result().offset == 0
    assert [broker_id for broker_id, _ in cluster.requests] == [0, 1]


def test_a_retry_waits_for_its_pause_and_is_counted() -> None:
    cluster = FakeCluster()
    cluster.step()
    send(cluster, b"value")
    cluster.advance(0.01)
    cluster.cut(0)
    cluster.advance(0.07)
    assert len(cluster.requests) == 1
    cluster.advance(0.06)
    assert len(cluster.requests) == 2
    assert cluster.metrics.figures(cluster.now_s)["record-retry-total"] == 1


def test_the_same_bytes_are_sent_again() -> None:
    cluster = FakeCluster(compression=Compression.GZIP)
    cluster.step()
    send(cluster, b"value")
    cluster.advance(0.01)
    cluster.cut(0, applied_count=1)
    cluster.settle()
    first, second = (ask.request for _, ask in cluster.requests)
    assert isinstance(first, ProduceRequest)
    assert isinstance(second, ProduceRequest)
    data = second.topic_data[0].partition_data[0].records
    assert data == first.topic_data[0].partition_data[0].records
    assert isinstance(data, tuple)
    assert read_batch_header(b"".join(data), 0).compression is Compression.GZIP
    assert cluster.logs[0].values == [b"value"]


def test_what_cannot_be_delivered_in_time_fails() -> None:
    cluster = FakeCluster(delivery_timeout_s=10.0)
    cluster.step()
    waiting = send(cluster, b"waiting")
    cluster.advance(0.01)
    cluster.leaders[:] = [-1, -1]
    cluster.answer(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.advance(9.9)
    assert not waiting.done()
    cluster.advance(0.2)
    error = waiting.exception()
    assert isinstance(error, BatchExpiredError)
    # It tells why the record was not taken for so long.
    assert isinstance(error.__cause__, KafkaError)
    assert error.__cause__.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert str(error).endswith(f"What stood in the way: {error.__cause__}")
    assert cluster.metrics.figures(cluster.now_s)["record-error-total"] == 1


def test_an_answer_that_comes_after_the_time_is_over_changes_nothing() -> None:
    cluster = FakeCluster(delivery_timeout_s=10.0)
    cluster.step()
    future = send(cluster, b"value")
    cluster.advance(11)
    error = future.exception()
    assert isinstance(error, BatchExpiredError)
    assert error.__cause__ is None
    cluster.answer(0)
    assert isinstance(future.exception(), BatchExpiredError)
    assert cluster.sender.in_flight_count == 0


def test_without_retries_the_first_failure_is_the_last() -> None:
    cluster = FakeCluster(is_idempotent=False, retries=0)
    cluster.step()
    future = send(cluster, b"value")
    cluster.advance(0.01)
    cluster.cut(0)
    assert isinstance(future.exception(), PeerUnavailableError)


def test_an_error_that_does_not_pass_is_told_at_once() -> None:
    cluster = FakeCluster()
    cluster.step()
    future = send(cluster, b"value")
    cluster.advance(0.01)
    cluster.answer(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    error = future.exception()
    assert error is not None
    assert error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_throttled_broker_is_left_alone() -> None:
    cluster = FakeCluster(is_idempotent=False)
    cluster.step()
    cluster.throttle_time_ms = 500
    send(cluster, b"first")
    cluster.advance(0.01)
    cluster.answer(0)
    send(cluster, b"second")
    cluster.advance(0.4)
    assert len(cluster.requests) == 1
    cluster.advance(0.2)
    assert len(cluster.requests) == 2
    assert cluster.metrics.figures(cluster.now_s)["produce-throttle-time-max"] == 500


def test_what_waits_fails_together() -> None:
    cluster = FakeCluster()
    cluster.step()
    on_its_way = send(cluster, b"first")
    cluster.advance(0.01)
    waiting = send(cluster, b"second")
    error = PeerUnavailableError("no more")
    cluster.sender.fail_waiting(error)
    assert not on_its_way.done()
    assert waiting.exception() is error
    cluster.sender.fail_all(error)
    assert on_its_way.exception() is error
    assert cluster.accumulator.is_empty


def test_a_batch_that_cannot_be_encoded_fails_alone() -> None:
    cluster = FakeCluster()
    cluster.step()
    broken = cluster.send("no bytes", 0)  # type: ignore[arg-type]
    good = send(cluster, b"good", 1)
    cluster.settle()
    assert isinstance(broken.exception(), SerializationError)
    assert good.result().offset == 0
    later = send(cluster, b"later", 0)
    cluster.settle()
    assert later.result().offset == 0
