"""What a user gets wrong, and the sentence that says so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    KafkaError,
    NewTopic,
    Producer,
    TopicPartition,
    errors,
)
from headwater.base.errors import ErrorCode
from headwater.client.admin import ConfigChange, ConfigResource, OffsetTime, ResourceType
from headwater.client.consumer.errors import SubscriptionError
from headwater.client.errors import ClientClosedError, UnknownTopicError
from headwater.client.producer.intake.serializers import SerializationError
from headwater.testing.running_broker import RunningBroker
from tests.support.async_tests import run_async

TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)
A_PARTITION = "give TopicPartition(topic, number), as in TopicPartition('orders', 0)."
HEADERS = "give a dict or pairs, as in {'source': b'web'} or [('source', b'web')]."


class World(NamedTuple):
    """One of each, typed as a user without a type checker has them."""

    bootstrap: str
    producer: Any
    consumer: Any
    admin: Any


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic(TOPIC, partitions=2)
        address = broker.bootstrap
        with (
            Producer(bootstrap_servers=address, max_block_ms=100) as producer,
            Consumer(bootstrap_servers=address, group_id="readers") as consumer,
            Admin(bootstrap_servers=address) as admin,
        ):
            producer.send(TOPIC, b"first").result(30)
            consumer.assign([PLACE])
            yield World(address, producer, consumer, admin)


def made(make: Any, *args: Any, **settings: Any) -> Callable[[World], object]:
    return lambda world: make(*args, **settings)


#: What is written, what it raises, and what that says.
WRONG: list[tuple[str, Callable[[World], object], type[Exception], str]] = [
    (
        "producer.send('orders', 'text')",
        lambda world: world.producer.send(TOPIC, "text"),
        SerializationError,
        "The value is of type str, and not bytes or None: encode it, or give the producer "
        "value_serializer=StringSerializer().",
    ),
    (
        "producer.send('orders', {'a': 1})",
        lambda world: world.producer.send(TOPIC, {"a": 1}),
        SerializationError,
        "The value is of type dict, and not bytes or None: encode it, or give the producer "
        "value_serializer=JsonSerializer().",
    ),
    (
        "producer.send('orders', b'', key=5)",
        lambda world: world.producer.send(TOPIC, b"", key=5),
        SerializationError,
        "The key is of type int, and not bytes or None: encode it, or give the producer "
        "key_serializer=IntegerSerializer().",
    ),
    (
        "producer.send(b'orders', b'')",
        lambda world: world.producer.send(b"orders", b""),
        TypeError,
        "b'orders' is not the name of a topic: it must be text, as in 'orders'.",
    ),
    (
        "producer.send(['orders'], b'')",
        lambda world: world.producer.send(["orders"], b""),
        TypeError,
        "['orders'] is not the name of a topic: it must be text, as in 'orders'.",
    ),
    (
        "producer.send('missing', b'')",
        lambda world: world.producer.send("missing", b""),
        errors.RequestTimedOutError,
        "Topic 'missing' was not found within max.block.ms: There is no topic 'missing'.",
    ),
    (
        "producer.send('orders', b'', partition='0')",
        lambda world: world.producer.send(TOPIC, b"", partition="0"),
        TypeError,
        "The partition cannot be '0': it must be a whole number.",
    ),
    (
        "producer.send('orders', b'', partition=-1)",
        lambda world: world.producer.send(TOPIC, b"", partition=-1),
        UnknownTopicError,
        "Topic 'orders' has no partition -1: it has partitions 0 to 1.",
    ),
    (
        "producer.send('orders', b'', timestamp_ms=1.5)",
        lambda world: world.producer.send(TOPIC, b"", timestamp_ms=1.5),
        errors.InvalidTimestampError,
        "timestamp_ms cannot be 1.5: it must be a whole number of milliseconds since 1970, such as "
        "int(time.time() * 1000).",
    ),
    (
        "producer.send('orders', b'', headers='a=b')",
        lambda world: world.producer.send(TOPIC, b"", headers="a=b"),
        SerializationError,
        f"Headers cannot be 'a=b': {HEADERS}",
    ),
    (
        "producer.send('orders', b'', headers=('a', b'b'))",
        lambda world: world.producer.send(TOPIC, b"", headers=("a", b"b")),
        SerializationError,
        f"A header cannot be 'a': {HEADERS}",
    ),
    (
        "producer.send('orders', b'', headers={'a': 1})",
        lambda world: world.producer.send(TOPIC, b"", headers={"a": 1}),
        SerializationError,
        "The header 'a' is of type int: its value must be bytes, text or None.",
    ),
    (
        "producer.send_arrow('orders', {'value': [b'']})",
        lambda world: world.producer.send_arrow(TOPIC, {"value": [b""]}),
        TypeError,
        "An Arrow RecordBatch or Table can be sent, not dict.",
    ),
    (
        "producer.flush('5')",
        lambda world: world.producer.flush("5"),
        TypeError,
        "timeout_s cannot be '5': it must be a number of seconds.",
    ),
    (
        "producer.begin_transaction()",
        lambda world: world.producer.begin_transaction(),
        errors.InvalidConfigError,
        "Transactions need the setting transactional.id.",
    ),
    (
        "Producer('localhost:9092')",
        made(Producer, "localhost:9092"),
        errors.InvalidConfigError,
        "Settings cannot be 'localhost:9092': give a mapping, as in {'bootstrap.servers': "
        "'localhost:9092'}, or keywords, as in bootstrap_servers='localhost:9092'.",
    ),
    (
        "Producer(bootstrap_servers='localhost:nine')",
        made(Producer, bootstrap_servers="localhost:nine"),
        errors.InvalidConfigError,
        "'localhost:nine' is not a bootstrap server: it should be a host and a port, as in "
        "'host:9092'.",
    ),
    (
        "Producer(bootstrap_servers='localhost:99999')",
        made(Producer, bootstrap_servers="localhost:99999"),
        errors.InvalidConfigError,
        "The bootstrap server 'localhost:99999' has the port 99999, which is not between 1 and "
        "65535.",
    ),
    (
        "Producer(bootstrap_servers=[('localhost', 9092)])",
        made(Producer, bootstrap_servers=[("localhost", 9092)]),
        errors.InvalidConfigError,
        "The setting bootstrap_servers cannot be [('localhost', 9092)]: it must be a "
        "comma-separated list, or a list of text.",
    ),
    (
        "Producer(liger_ms=5)",
        made(Producer, liger_ms=5),
        errors.InvalidConfigError,
        "There is no producer setting 'liger_ms'; did you mean linger_ms?",
    ),
    (
        "Producer(linger_ms=[5])",
        made(Producer, linger_ms=[5]),
        errors.InvalidConfigError,
        "The setting linger_ms cannot be [5]: it must be a whole number of at least 0.",
    ),
    (
        "Producer(value_serializer='json')",
        made(Producer, value_serializer="json"),
        TypeError,
        "The value serializer 'json' must be a function, or have a method serialize(topic, data).",
    ),
    (
        "Consumer().poll()",
        lambda world: polled(world.bootstrap),
        SubscriptionError,
        "This consumer has not subscribed to topics and has no partitions assigned: call "
        "subscribe() or assign() before it is polled.",
    ),
    (
        "Consumer().subscribe('orders')",
        lambda world: subscribed(world.bootstrap),
        errors.InvalidGroupIdError,
        "To subscribe a consumer needs a group: set group.id, or assign partitions.",
    ),
    (
        "consumer.subscribe([5])",
        lambda world: world.consumer.subscribe([5]),
        TypeError,
        "5 cannot be used here: it must be text.",
    ),
    (
        "consumer.subscribe('orders', listener=print)",
        lambda world: world.consumer.subscribe(TOPIC, listener=print),
        TypeError,
        "The listener <built-in function print> must be a RebalanceListener.",
    ),
    (
        "consumer.subscribe('orders')  # after assign()",
        lambda world: world.consumer.subscribe(TOPIC),
        SubscriptionError,
        "A consumer reads topics by name, topics by pattern, or partitions that it was assigned, "
        "and this one has been assigned partitions: call unsubscribe() first.",
    ),
    (
        "consumer.assign(['orders'])",
        lambda world: world.consumer.assign(["orders"]),
        TypeError,
        f"'orders' is not a partition: {A_PARTITION}",
    ),
    (
        "consumer.assign(None)",
        lambda world: world.consumer.assign(None),
        TypeError,
        f"None is not a partition: {A_PARTITION}",
    ),
    (
        "consumer.seek('orders', 5)",
        lambda world: world.consumer.seek("orders", 5),
        TypeError,
        f"'orders' is not a partition: {A_PARTITION}",
    ),
    (
        "consumer.seek(partition, '5')",
        lambda world: world.consumer.seek(PLACE, "5"),
        TypeError,
        "The offset cannot be '5': it must be a whole number.",
    ),
    (
        "consumer.seek(partition, 1.5)",
        lambda world: world.consumer.seek(PLACE, 1.5),
        TypeError,
        "The offset cannot be 1.5: it must be a whole number.",
    ),
    (
        "consumer.seek(TopicPartition('orders', 1), 5)",
        lambda world: world.consumer.seek(TopicPartition(TOPIC, 1), 5),
        errors.InvalidRequestError,
        "orders-1 is not assigned to this consumer.",
    ),
    (
        "consumer.commit([partition])",
        lambda world: world.consumer.commit([PLACE]),
        TypeError,
        "[TopicPartition(topic='orders', partition=0)] cannot be used here: give a mapping, as in "
        "{TopicPartition('orders', 0): 42}.",
    ),
    (
        "consumer.commit({partition: -1})",
        lambda world: world.consumer.commit({PLACE: -1}),
        ValueError,
        "The offset cannot be -1: it must be at least 0.",
    ),
    (
        "consumer.poll('1')",
        lambda world: world.consumer.poll("1"),
        TypeError,
        "timeout_s cannot be '1': it must be a number of seconds.",
    ),
    (
        "consumer.poll(max_records='5')",
        lambda world: world.consumer.poll(max_records="5"),
        TypeError,
        "max_records cannot be '5': it must be a whole number.",
    ),
    (
        "Consumer(value_deserializer=int)  # and a record b'first'",
        lambda world: deserialized(world.bootstrap),
        errors.InvalidRecordError,
        'The record at offset 0 of orders-0 cannot be deserialized: ValueError("invalid literal '
        "for int() with base 10: b'first'\"). Seek to offset 1 to leave it out.",
    ),
    (
        "admin.create_topics('orders')",
        lambda world: world.admin.create_topics("orders"),
        TypeError,
        "'orders' cannot be used here: it must be a NewTopic.",
    ),
    (
        "admin.create_topics(NewTopic('new', '3'))",
        lambda world: world.admin.create_topics(NewTopic("new", "3")),  # type: ignore[arg-type]
        TypeError,
        "The partition_count of 'new' cannot be '3': it must be a whole number.",
    ),
    (
        "admin.create_topics(NewTopic('new', configs={'retention.ms': [1]}))",
        lambda world: world.admin.create_topics(
            NewTopic("new", configs={"retention.ms": [1]})  # type: ignore[dict-item]
        ),
        TypeError,
        "The setting retention.ms cannot be [1]: it must be text, a number, True or False.",
    ),
    (
        "admin.create_partitions(['orders'])",
        lambda world: world.admin.create_partitions(["orders"]),
        TypeError,
        "['orders'] cannot be used here: give a mapping, as in {'orders': 6}.",
    ),
    (
        "admin.delete_topics('missing')",
        lambda world: world.admin.delete_topics("missing"),
        UnknownTopicError,
        "There is no topic 'missing'.",
    ),
    (
        "admin.alter_configs({'orders': ...})",
        lambda world: world.admin.alter_configs({TOPIC: [ConfigChange("retention.ms", 1)]}),
        TypeError,
        "'orders' cannot be used here: it must be a ConfigResource.",
    ),
    (
        "admin.list_offsets({partition: 'latest'})",
        lambda world: world.admin.list_offsets({PLACE: "latest"}),
        TypeError,
        "The time for orders-0 cannot be 'latest': it must be a whole number.",
    ),
    (
        "admin.alter_group_offsets('readers', {'orders': 5})",
        lambda world: world.admin.alter_group_offsets("readers", {"orders": 5}),
        TypeError,
        f"'orders' is not a partition: {A_PARTITION}",
    ),
]


def polled(bootstrap: str) -> None:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.poll(0)


def subscribed(bootstrap: str) -> None:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.subscribe(TOPIC)


def deserialized(bootstrap: str) -> None:
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer=int
    ) as consumer:
        consumer.assign([PLACE, TopicPartition(TOPIC, 1)])
        try:
            consumer.poll(30)
        except KafkaError as error:
            # The record may be in either partition.
            text = str(error).replace("orders-1", "orders-0")
            raise errors.InvalidRecordError(text) from error


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [pytest.param(call, kind, text, id=title) for title, call, kind, text in WRONG],
)
def test_the_sentence(
    world: World, call: Callable[[World], object], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        call(world)
    assert str(caught.value) == sentence
    # Nothing is broken by it.
    assert world.consumer.assignment() == {PLACE}


# -- what looks wrong and is not -----------------------------------------------------------------


def test_what_may_be_given(world: World) -> None:
    """One name for several, a list of servers, None for a default, numbers as settings."""
    address = world.bootstrap
    with Producer(bootstrap_servers=[address, "127.0.0.1:1"], linger_ms=None) as producer:
        assert producer.send(TOPIC, b"", partition=0).result(30).partition == 0
    Producer(bootstrap_servers=None).close(0)
    configs = {"retention.ms": 3_600_000, "unclean.leader.election.enable": True}
    world.admin.create_topics(NewTopic("numbers", 1, configs=configs))
    resource = ConfigResource(ResourceType.TOPIC, "numbers")
    world.admin.alter_configs({resource: [ConfigChange("segment.bytes", 1 << 20)]})
    found = {entry.name: entry.value for entry in world.admin.describe_configs(resource)[resource]}
    assert found["retention.ms"] == "3600000"
    assert found["unclean.leader.election.enable"] == "true"
    assert found["segment.bytes"] == "1048576"
    world.admin.alter_group_offsets("moved", {TopicPartition("numbers", 0): 3})
    moved = world.admin.list_group_offsets("moved")["moved"]
    assert moved[TopicPartition("numbers", 0)].offset == 3
    assert world.admin.list_offsets({("numbers", 0): OffsetTime.LATEST})


def test_headers_as_a_dict(world: World) -> None:
    world.admin.create_topics(NewTopic("with-headers", 1))
    headers = {"source": b"web", "trace": "\u00fc", "empty": None}
    with Producer(bootstrap_servers=world.bootstrap) as producer:
        producer.send("with-headers", b"", headers=headers).result(30)

    async def send() -> None:
        async with AsyncProducer(bootstrap_servers=world.bootstrap) as producer:
            await producer.send_and_wait("with-headers", b"", headers=headers)

    asyncio.run(send())
    with Consumer(bootstrap_servers=world.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("with-headers", 0)])
        found: list[Any] = []
        while len(found) < 2:
            found += consumer.poll(30)
    expected = [("source", b"web"), ("trace", b"\xc3\xbc"), ("empty", None)]
    assert [list(record.headers) for record in found] == [expected] * 2


# -- asyncio -------------------------------------------------------------------------------------


@run_async
async def test_the_same_with_asyncio(world: World) -> None:
    async with (
        AsyncProducer(bootstrap_servers=world.bootstrap) as producer,
        AsyncConsumer(bootstrap_servers=world.bootstrap) as consumer,
    ):
        taken: Any = producer
        await taken.send_and_wait(TOPIC, b"")
        wrong: list[Callable[[], Any]] = [
            lambda: taken.send(b"orders", b""),
            lambda: taken.send(["orders"], b""),
            lambda: taken.send(TOPIC, b"", partition="0"),
            lambda: taken.partitions_for(5),
            lambda: taken.flush("5"),
        ]
        for call in wrong:
            with pytest.raises(TypeError, match=r"must be"):
                await call()
        with pytest.raises(SerializationError, match="The value is of type str"):
            await taken.send(TOPIC, "text")
        for poll in (consumer.poll, consumer.poll_arrow, lambda: anext(aiter(consumer))):
            with pytest.raises(SubscriptionError, match="has not subscribed"):
                await poll()
        reader: Any = consumer
        reader.assign([PLACE])
        for place, offset in (("orders", 5), (PLACE, 1.5)):
            with pytest.raises(TypeError):
                reader.seek(place, offset)


def test_iteration_and_arrow_need_a_subscription(world: World) -> None:
    with Consumer(bootstrap_servers=world.bootstrap, group_id="none") as consumer:
        for read in (consumer.poll_arrow, lambda: next(iter(consumer))):
            with pytest.raises(SubscriptionError, match="has not subscribed"):
                read()
        consumer.subscribe(TOPIC)
        consumer.poll(0)
        consumer.unsubscribe()
        with pytest.raises(SubscriptionError, match="has not subscribed"):
            consumer.poll(0)
        consumer.assign([PLACE])
        consumer.poll(0)
        consumer.assign([])
        with pytest.raises(SubscriptionError, match="has not subscribed"):
            consumer.poll(0)


# -- spools --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"topic": b"orders"}, "b'orders' is not the name of a topic"),
        ({"partition": "0"}, "The partition cannot be '0'"),
        ({"partition": -1}, "Topic 'orders' has no partition -1"),
        ({"timestamp_ms": datetime(2026, 1, 1)}, "timestamp_ms cannot be"),
        ({"headers": 5}, "Headers cannot be 5"),
        ({"value": "text"}, "The value is of type str"),
    ],
)
def test_a_spool_takes_nothing_that_is_wrong(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    spooled = Producer(bootstrap_servers="127.0.0.1:1", spool_dir=tmp_path)
    try:
        with pytest.raises((TypeError, KafkaError), match=re.escape(sentence)):
            spooled.send(**{"topic": TOPIC, "value": b""} | arguments)
        assert spooled.metrics()["spool-waiting-records"] == 0
    finally:
        spooled.close(0)


def test_a_closed_producer_with_a_spool_says_so(tmp_path: Path) -> None:
    spooled = Producer(bootstrap_servers="127.0.0.1:1", spool_dir=tmp_path)
    spooled.close(0)
    spooled.close(0)
    for call in (spooled.flush, lambda: spooled.send(TOPIC, b"")):
        with pytest.raises(ClientClosedError, match="The producer is closed"):
            call()


# -- after the end -------------------------------------------------------------------------------


def test_what_is_closed_says_so(world: World) -> None:
    address = world.bootstrap
    producer = Producer(bootstrap_servers=address, transactional_id="ended")
    consumer = Consumer(bootstrap_servers=address, group_id="ended")
    admin = Admin(bootstrap_servers=address)
    for client in (producer, consumer, admin):
        client.close()
        client.close()
    calls: dict[str, list[Callable[[], object]]] = {
        "The producer is closed.": [
            lambda: producer.send(TOPIC, b""),
            lambda: producer.send("another", b""),
            producer.flush,
            lambda: producer.partitions_for(TOPIC),
            producer.init_transactions,
            producer.begin_transaction,
        ],
        "The consumer is closed.": [
            consumer.poll,
            consumer.poll_arrow,
            lambda: next(iter(consumer)),
            lambda: consumer.subscribe(TOPIC),
            lambda: consumer.assign([PLACE]),
            lambda: consumer.seek(PLACE, 0),
            consumer.commit,
            consumer.subscription,
            consumer.unsubscribe,
        ],
        "The admin is closed.": [admin.list_topics, lambda: admin.delete_topics(TOPIC)],
    }
    for sentence, several in calls.items():
        for call in several:
            with pytest.raises(ClientClosedError) as caught:
                call()
            assert str(caught.value) == sentence


@run_async
async def test_what_is_closed_says_so_with_asyncio(world: World) -> None:
    settings = {"bootstrap.servers": world.bootstrap}
    producer = AsyncProducer(settings, transactional_id="ended")
    consumer, admin = AsyncConsumer(settings), AsyncAdmin(settings)
    with pytest.raises(ClientClosedError, match="not started"):
        await producer.send(TOPIC, b"")
    for client in (producer, consumer, admin):
        await client.start()
        await client.close()
        await client.close()
    for call in (
        lambda: producer.send(TOPIC, b""),
        producer.flush,
        lambda: producer.partitions_for("another"),
        producer.begin_transaction,
        consumer.poll,
        lambda: anext(aiter(consumer)),
        admin.list_topics,
    ):
        async with asyncio.timeout(30):
            with pytest.raises(ClientClosedError, match=r"^The (producer|consumer|client) is clo"):
                await call()


def test_a_consumer_is_closed_in_any_state(world: World) -> None:
    def new() -> Consumer:
        return Consumer(bootstrap_servers=world.bootstrap, group_id="closing")

    untouched, joining, reading, iterating = new(), new(), new(), new()
    joining.subscribe(TOPIC)
    reading.subscribe(TOPIC)
    reading.poll(0)
    iterating.assign([PLACE])
    iterating.seek_to_beginning()
    world.producer.send(TOPIC, b"one more", partition=0).result(30)
    for _ in iterating:
        iterating.close()
    for consumer in (untouched, joining, reading):
        consumer.close()
    for consumer in (untouched, joining, reading, iterating):
        with pytest.raises(ClientClosedError):
            consumer.poll(0)
    nobody = Consumer(bootstrap_servers="127.0.0.1:1", group_id="closing")
    nobody.subscribe(TOPIC)
    nobody.poll(0)
    nobody.close()


def test_a_topic_that_is_deleted_under_a_producer(world: World) -> None:
    world.admin.create_topics(NewTopic("short-lived"))
    with Producer(
        bootstrap_servers=world.bootstrap, request_timeout_ms=300, delivery_timeout_ms=500
    ) as producer:
        producer.send("short-lived", b"").result(30)
        world.admin.delete_topics("short-lived")
        with pytest.raises(KafkaError, match="short-lived") as caught:
            producer.send("short-lived", b"").result(30)
        assert caught.value.code in (
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
