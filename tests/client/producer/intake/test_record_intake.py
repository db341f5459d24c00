"""What happens to a record in its sender's thread, and in which order."""

import random
import re
import uuid
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_metadata import NO_LEADER, PartitionInfo, TopicInfo
from headwater.client.errors import UnknownTopicError
from headwater.client.kafka_errors.record_errors import (
    InvalidTimestampError,
    MessageTooLargeError,
)
from headwater.client.partitioner import partition_for_key
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.errors import BufferExhaustedError
from headwater.client.producer.intake.interceptors import ProducerInterceptor
from headwater.client.producer.intake.partitioners import (
    DefaultPartitioner,
    PartitionQuestion,
    RandomPartitioner,
    RoundRobinPartitioner,
)
from headwater.client.producer.intake.record_intake import ForMemory, ForTopic, RecordIntake, Wait
from headwater.client.producer.intake.send_options import make_send_options
from headwater.client.producer.intake.serializers import SerializationError
from headwater.client.producer.intake.topic_route import TopicRoute
from headwater.client.producer.record import ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS

TOPIC = "orders"


class Intake:
    """An intake with everything around it, and a topic of four partitions."""

    def __init__(self, *, leaders: tuple[int, ...] = (0, 0, 0, 0), **given: Any) -> None:
        objects = {
            name: given.pop(name, default)
            for name, default in (
                ("key_serializer", None),
                ("value_serializer", None),
                ("partitioner", None),
                ("interceptors", ()),
                ("on_drop", None),
            )
        }
        values = parse_settings(PRODUCER_SETTINGS, given.pop("config", None), given)
        self.options = make_send_options(values, **objects, wall_ms=lambda: 1234)
        self.accumulator = RecordAccumulator(
            batch_size_bytes=values.integer("batch.size"),
            linger_s=0.005,
            buffer_bytes=values.integer("buffer.memory"),
            delivery_timeout_s=120.0,
        )
        self.routes: dict[str, TopicRoute] = {}
        self.wake_count = 0
        self.exhausted_count = 0
        self.intake = RecordIntake(
            self.options,
            self.accumulator,
            self.routes,
            now_s=lambda: 7.0,
            wake=self._wake,
            on_exhausted=self._exhausted,
        )
        self.learn(leaders)

    def learn(self, leaders: tuple[int, ...]) -> None:
        partitions = tuple(
            PartitionInfo(number, leader, 0, (0,), (0,)) for number, leader in enumerate(leaders)
        )
        self.routes[TOPIC] = TopicRoute(
            TopicInfo(TOPIC, uuid.UUID(int=1), False, partitions),
            [self.accumulator.queue(TopicPartition(TOPIC, each.partition)) for each in partitions],
            batch_size_bytes=self.accumulator.batch_size_bytes,
            is_adaptive=True,
            generator=random.Random(3),
        )

    def send(
        self,
        value: object = b"value",
        key: object = None,
        *,
        on_delivery: OnDelivery | None = None,
        **fields: Any,
    ) -> DeliveryFuture:
        future = self.intake.offer(
            TOPIC,
            value,
            key,
            fields.get("partition"),
            fields.get("headers", ()),
            fields.get("timestamp_ms"),
            on_delivery,
        )
        if future is not None:
            return future
        return ended(self.intake.steps(ProducerRecord(TOPIC, value, key, **fields), on_delivery))

    def stored(self) -> dict[int, list[tuple[bytes | None, bytes | None]]]:
        """Keys and values that wait, by partition."""
        found: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
        for queue in self.routes[TOPIC].queues:
            for batch in queue.waiting:
                keys = batch.keys or [None] * len(batch.values)
                found.setdefault(queue.topic_partition.partition, []).extend(
                    zip(keys, batch.values, strict=True)
                )
        return found

    def _wake(self) -> None:
        self.wake_count += 1

    def _exhausted(self) -> None:
        self.exhausted_count += 1


def ended(steps: Generator[Wait, None, DeliveryFuture]) -> DeliveryFuture:
    """The result of steps that wait for nothing."""
    with pytest.raises(StopIteration) as end:
        next(steps)
    future: DeliveryFuture = end.value.value
    return future


def test_interceptors_then_serializers_then_the_partitioner() -> None:
    happened: list[str] = []

    class Noting(ProducerInterceptor):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            happened.append(f"{self.name}: {record.value}")
            return record._replace(value=f"{record.value}+{self.name}")

    def serialize(role: str) -> Any:
        def serializer(data: str) -> bytes:
            happened.append(f"{role}: {data}")
            return data.encode()

        return serializer

    def choose(question: PartitionQuestion) -> int:
        happened.append(f"partitioner: {question.value} {question.value_bytes!r}")
        return 2

    intake = Intake(
        interceptors=[Noting("first"), Noting("second")],
        key_serializer=serialize("key"),
        value_serializer=serialize("value"),
        partitioner=choose,
    )
    intake.send("v", "k")
    assert happened == [
        "first: v",
        "second: v+first",
        "key: k",
        "value: v+first+second",
        "partitioner: v+first+second b'v+first+second'",
    ]
    assert intake.stored() == {2: [(b"k", b"v+first+second")]}


def test_a_failing_interceptor_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise RuntimeError("broken")

        def on_acknowledgement(
            self, metadata: RecordMetadata | None, error: KafkaError | None
        ) -> None:
            raise RuntimeError("broken too")

    acknowledged: list[RecordMetadata | None] = []

    class Good(ProducerInterceptor):
        def on_acknowledgement(
            self, metadata: RecordMetadata | None, error: KafkaError | None
        ) -> None:
            acknowledged.append(metadata)

    intake = Intake(interceptors=[Failing(), Good()])
    future = intake.send(b"value", partition=1)
    queue = intake.routes[TOPIC].queues[1]
    batch = intake.accumulator.take(queue)
    intake.accumulator.off_the_wire(batch)
    batch.succeed(5)
    assert future.result() == (TOPIC, 1, 5, 1234)
    assert acknowledged == [(TOPIC, 1, 5, 1234)]
    assert [record.message.split()[-1] for record in caplog.records] == [
        "on_send.",
        "on_acknowledgement.",
    ]


def test_interceptors_hear_of_records_that_are_refused() -> None:
    heard: list[KafkaError | None] = []

    class Listening(ProducerInterceptor):
        def on_acknowledgement(
            self, metadata: RecordMetadata | None, error: KafkaError | None
        ) -> None:
            heard.append(error)

    intake = Intake(interceptors=[Listening()])
    with pytest.raises(SerializationError):
        next(intake.intake.steps(ProducerRecord(TOPIC, "text"), None))
    assert [type(error) for error in heard] == [SerializationError]


@pytest.mark.parametrize("has_interceptor", [False, True])
def test_a_key_goes_where_its_hash_says(has_interceptor: bool) -> None:
    intake = Intake(interceptors=[ProducerInterceptor()] if has_interceptor else [])
    keys = [b"%d" % number for number in range(100)]
    for key in keys:
        intake.send(b"value", key)
    for partition, records in intake.stored().items():
        assert all(partition_for_key(key or b"", 4) == partition for key, _ in records)
    assert sum(len(records) for records in intake.stored().values()) == 100


@pytest.mark.parametrize("has_interceptor", [False, True])
def test_records_without_a_key_stick_to_a_partition_for_a_batch(has_interceptor: bool) -> None:
    intake = Intake(
        batch_size=1000, interceptors=[ProducerInterceptor()] if has_interceptor else []
    )
    for _ in range(200):
        intake.send(b"x" * 88)
    sizes = [batch.record_count for queue in intake.routes[TOPIC].queues for batch in queue.waiting]
    # All batches but the last are full, and no partition is left out.
    assert sorted(sizes)[1:] == [9] * (len(sizes) - 1)
    assert len(intake.stored()) == 4


def test_partitions_without_a_leader_get_no_records_without_a_key() -> None:
    intake = Intake(batch_size=100, leaders=(NO_LEADER, 1, NO_LEADER, 0))
    for _ in range(50):
        intake.send(b"x" * 50)
    assert set(intake.stored()) == {1, 3}


def test_keys_can_be_ignored() -> None:
    intake = Intake(partitioner_ignore_keys=True)
    for number in range(20):
        intake.send(b"value", b"%d" % number)
    assert len(intake.stored()) == 1


def test_a_partition_that_is_asked_for_is_taken() -> None:
    intake = Intake(partitioner=lambda _: 0)
    intake.send(b"value", b"key", partition=3)
    assert list(intake.stored()) == [3]


def test_round_robin_takes_turns() -> None:
    intake = Intake(partitioner=RoundRobinPartitioner)
    for _ in range(12):
        intake.send(b"value", b"same key")
    assert {number: len(records) for number, records in intake.stored().items()} == {
        0: 3,
        1: 3,
        2: 3,
        3: 3,
    }


def test_random_takes_any() -> None:
    intake = Intake(partitioner=RandomPartitioner(random.Random(1)))
    for _ in range(400):
        intake.send(b"value", b"same key")
    counts = Counter({number: len(found) for number, found in intake.stored().items()})
    assert len(counts) == 4
    assert min(counts.values()) > 50


def test_the_default_partitioner_can_be_asked_for() -> None:
    for partitioner in (DefaultPartitioner, DefaultPartitioner()):
        intake = Intake(partitioner=partitioner)
        intake.send(b"value", b"key")
        assert list(intake.stored()) == [partition_for_key(b"key", 4)]


def test_a_partitioner_that_says_nothing_leaves_it_to_the_default_one() -> None:
    intake = Intake(partitioner=lambda _: None)
    intake.send(b"value", b"key")
    assert list(intake.stored()) == [partition_for_key(b"key", 4)]


def test_a_partitioner_that_names_no_partition_is_told() -> None:
    with pytest.raises(UnknownTopicError, match="no partition 9"):
        Intake(partitioner=lambda _: 9).send()


def test_an_unknown_topic_is_waited_for() -> None:
    intake = Intake()
    route = intake.routes.pop(TOPIC)
    steps = intake.intake.steps(ProducerRecord(TOPIC, b"value"), None)
    assert next(steps) == ForTopic(TOPIC, is_known=False)
    intake.routes[TOPIC] = route
    assert not ended(steps).done()


def test_a_new_partition_is_asked_about_once() -> None:
    intake = Intake()
    steps = intake.intake.steps(ProducerRecord(TOPIC, b"value", partition=5), None)
    assert next(steps) == ForTopic(TOPIC, is_known=True)
    intake.learn((0,) * 6)
    ended(steps)
    assert list(intake.stored()) == [5]
    steps = intake.intake.steps(ProducerRecord(TOPIC, b"value", partition=6), None)
    next(steps)
    with pytest.raises(UnknownTopicError, match="partitions 0 to 5"):
        next(steps)


def test_an_illegal_topic_name_is_refused_at_once() -> None:
    with pytest.raises(KafkaError) as raised:
        next(Intake().intake.steps(ProducerRecord("no spaces", b"value"), None))
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_memory_is_waited_for_when_the_policy_is_block() -> None:
    intake = Intake(batch_size=100, buffer_memory=250)
    for _ in range(2):
        intake.send(b"x" * 50, partition=0)
    steps = intake.intake.steps(ProducerRecord(TOPIC, b"x" * 50, partition=0), None)
    assert isinstance(next(steps), ForMemory)
    queue = intake.routes[TOPIC].queues[0]
    batch = intake.accumulator.take(queue)
    intake.accumulator.off_the_wire(batch)
    batch.succeed(0)
    ended(steps)
    assert sum(len(found) for found in intake.stored().values()) == 2


def test_records_are_dropped_counted_and_told_when_the_policy_is_drop() -> None:
    dropped: list[tuple[str, object, object]] = []
    heard: list[KafkaError | None] = []
    intake = Intake(
        batch_size=100,
        buffer_memory=250,
        buffer_full_policy="drop",
        on_drop=lambda topic, key, value: dropped.append((topic, key, value)),
    )
    for number in range(5):
        future = intake.send(
            b"%d" % number * 50,
            partition=0,
            on_delivery=lambda metadata, error: heard.append(error),
        )
    assert [value for _, _, value in dropped] == [b"2" * 50, b"3" * 50, b"4" * 50]
    assert intake.intake.dropped_count == 3
    assert intake.exhausted_count == 3
    assert isinstance(future.exception(), BufferExhaustedError)
    assert [type(error) for error in heard] == [BufferExhaustedError] * 3


@pytest.mark.parametrize(("setting", "size"), [("max.request.size", 1000), ("buffer.memory", 900)])
def test_a_record_that_is_too_large_is_refused(setting: str, size: int) -> None:
    with pytest.raises(MessageTooLargeError, match=re.escape(setting)):
        Intake(config={setting: size}).send(b"x" * 1000)


@pytest.mark.parametrize("value", [bytearray(b"abc"), memoryview(b"abc")])
def test_what_can_change_is_copied(value: bytearray | memoryview) -> None:
    intake = Intake()
    intake.send(value, bytearray(b"key"), partition=0)
    if isinstance(value, bytearray):
        value[:] = b"xyz"
    assert intake.stored() == {0: [(b"key", b"abc")]}


def test_a_timestamp_of_its_own_is_kept_and_a_negative_one_refused() -> None:
    intake = Intake()
    for timestamp_ms in (None, 99):
        intake.send(b"value", partition=0, timestamp_ms=timestamp_ms)
    batch = intake.routes[TOPIC].queues[0].open
    assert batch is not None
    assert batch.timestamps == [1234, 99]
    with pytest.raises(KafkaError) as raised:
        intake.send(b"value", timestamp_ms=-5)
    assert raised.value.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(
    "headers", [[("name",)], [(b"name", b"content")], [("name", 5)], {"name": 5}, {5: b""}, "ab", 5]
)
def test_headers_that_are_none_are_refused(headers: Any) -> None:
    with pytest.raises(SerializationError, match=r"[Hh]eader"):
        Intake().send(b"value", headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"a": b"1", "b": "text", "c": None},
        [("a", b"1"), ("b", "text"), ("c", None)],
        (["a", bytearray(b"1")], ["b", "text"], ["c", None]),
        iter([("a", memoryview(b"1")), ("b", b"text"), ("c", None)]),
    ],
)
def test_headers_may_be_a_dict_or_pairs(headers: Any) -> None:
    intake = Intake()
    intake.send(b"none", partition=0, headers=None)
    intake.send(b"some", partition=0, headers=headers)
    empties: list[Any] = [None, {}, [], ()]
    for empty in empties:
        intake.send(b"none", partition=0, headers=empty)
    batch = intake.routes[TOPIC].queues[0].open
    assert batch is not None
    some = (("a", b"1"), ("b", b"text"), ("c", None))
    assert batch.headers == [(), some, (), (), (), ()]


def test_interceptors_see_pairs_whatever_was_given() -> None:
    class Adding(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            assert isinstance(record.headers, tuple)
            return record._replace(headers=[*record.headers, ("trace", "1")])

    intake = Intake(interceptors=[Adding()])
    intake.send(b"1", partition=0, headers={"a": b"1"})
    intake.send(b"2", partition=0, headers=None)
    batch = intake.routes[TOPIC].queues[0].open
    assert batch is not None
    assert batch.headers == [(("a", b"1"), ("trace", b"1")), (("trace", b"1"),)]


def test_an_interceptor_that_returns_nothing_costs_no_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Forgetful:
        def on_send(self, record: ProducerRecord) -> None:
            pass

    intake = Intake(interceptors=[Forgetful()])
    intake.send(b"value", partition=0)
    assert intake.stored() == {0: [(None, b"value")]}
    assert "returned None from on_send" in caplog.text


@pytest.mark.parametrize("timestamp_ms", [-1, 2**63, 1.5, True])
def test_timestamps_that_are_none_are_refused(timestamp_ms: Any) -> None:
    with pytest.raises(InvalidTimestampError):
        Intake().send(b"value", timestamp_ms=timestamp_ms)


def test_headers_and_tombstones_are_taken() -> None:
    intake = Intake()
    intake.send(None, b"key", partition=0, headers=[("a", b"b"), ("c", None)])
    batch = intake.routes[TOPIC].queues[0].open
    assert batch is not None
    assert batch.values == [None]
    assert batch.headers == [(("a", b"b"), ("c", None))]


def test_the_sender_is_woken_once_per_batch() -> None:
    intake = Intake()
    for _ in range(50):
        intake.send(b"value", partition=0)
    assert intake.wake_count == 1


def test_a_check_that_raises_refuses_records() -> None:
    intake = Intake()
    intake.send(b"value")

    def refuse(_: object) -> None:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Not now.")

    intake.intake.set_check(refuse)
    for _ in range(2):
        with pytest.raises(KafkaError, match="Not now"):
            intake.send(b"value")


def test_after_a_fatal_error_every_record_is_refused_with_it() -> None:
    intake = Intake()
    intake.send(b"value")
    intake.intake.refuse_all(KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "It is over."))
    for topic in (TOPIC, TOPIC, "another"):
        assert intake.intake.offer(topic, b"value", None, None, (), None, None) is None
        with pytest.raises(KafkaError, match="It is over") as raised:
            next(intake.intake.steps(ProducerRecord(topic, b"value"), None))
        assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
