"""Transactions of every client that writes them, as every client reads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import ClientError, Message
from tests.support.other_clients.groups.contract import Membership
from tests.support.other_clients.groups.known import MEMBERS_BY_NAME
from tests.support.other_clients.groups.polling import PolledMember
from tests.support.other_clients.groups.raw import committed
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.aiokafka import AiokafkaTransactions
from tests.support.other_clients.transactions.confluent import ConfluentTransactions
from tests.support.other_clients.transactions.contract import FENCED, TransactionalProducer
from tests.support.other_clients.transactions.known import PRODUCERS, READERS
from tests.support.other_clients.transactions.raw import stable_offset

MakeTopic = Callable[..., str]
Join = Callable[..., PolledMember]
MakeProducer = Callable[..., TransactionalProducer]


@pytest.fixture(params=PRODUCERS, ids=lambda kind: kind.name)
def writer(request: pytest.FixtureRequest) -> type[TransactionalProducer]:
    kind: type[TransactionalProducer] = request.param
    return kind


@pytest.fixture
def make_producer(
    writer: type[TransactionalProducer], broker: BrokerUnderTest
) -> Iterator[MakeProducer]:
    """`make_producer(transactional_id)`: ready to begin, and closed after the test."""
    made: list[TransactionalProducer] = []

    def make(transactional_id: str, **more: int) -> TransactionalProducer:
        made.append(writer(broker.bootstrap, transactional_id, **more))
        return made[-1]

    yield make
    for producer in made:
        closing = threading.Thread(target=producer.close, daemon=True)
        closing.start()
        closing.join(10)


def test_what_readers_see(
    make_producer: MakeProducer,
    broker: BrokerUnderTest,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic = make_topic()
    producer = make_producer(new_name())

    def write(*values: bytes) -> None:
        producer.begin()
        for value in values:
            producer.send(topic, value)
        producer.flush()

    write(b"a1", b"a2")
    producer.commit()
    confluent.produce(topic, [Message(b"plain")])
    write(b"b1", b"b2")
    producer.abort()
    write(b"c1")
    producer.commit()
    write(b"d1")
    confluent.produce(topic, [Message(b"after")])

    everything = [b"a1", b"a2", b"plain", b"b1", b"b2", b"c1", b"d1", b"after"]
    settled = [b"a1", b"a2", b"plain", b"c1"]
    for kind in READERS:
        reader = kind(broker.bootstrap)
        # What lies behind the first open transaction is hidden with it.
        assert reader.read(topic, "read_committed") == settled, kind.name
        assert reader.read(topic, "read_uncommitted") == everything, kind.name
    producer.commit()
    # Marks: three behind the transactions so far, and the last one behind all.
    wait_until(lambda: stable_offset(connection, topic) == 12, "the mark is written")
    for kind in READERS:
        found = kind(broker.bootstrap).read(topic, "read_committed")
        assert found == [*settled, b"d1", b"after"], kind.name


def test_several_partitions_at_once(
    make_producer: MakeProducer,
    broker: BrokerUnderTest,
    connection: RawConnection,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topics = [make_topic(2), make_topic(2)]
    partitions = [(topic, number) for topic in topics for number in range(2)]
    producer = make_producer(new_name())

    def stable() -> list[int]:
        return [stable_offset(connection, *each) for each in partitions]

    for attempt, start in ((b"aborted", 0), (b"committed", 2)):
        producer.begin()
        for topic, number in partitions:
            producer.send(topic, attempt, number)
        producer.flush()
        assert stable() == [start] * 4
        if attempt == b"aborted":
            producer.abort()
        else:
            producer.commit()
        end = start + 2
        wait_until(lambda: stable() == [end] * 4, "the marks are written")  # noqa: B023
    reader = READERS[0](broker.bootstrap)
    for topic, number in partitions:
        assert reader.read(topic, "read_committed", number) == [b"committed"]


def test_a_second_producer_fences_the_first(
    make_producer: MakeProducer,
    broker: BrokerUnderTest,
    connection: RawConnection,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic = make_topic()
    transactional_id = new_name()
    first = make_producer(transactional_id)
    first.begin()
    first.send(topic, b"of the first")
    first.flush()
    second = make_producer(transactional_id)
    # The second is ready, so what the first had begun is aborted.
    reader = READERS[0](broker.bootstrap)
    assert reader.read(topic, "read_committed") == []
    with pytest.raises(ClientError) as refusal:
        first.send(topic, b"too late")
        first.commit()
    assert refusal.value.name in FENCED
    second.begin()
    second.send(topic, b"of the second")
    second.commit()
    wait_until(lambda: stable_offset(connection, topic) == 4, "the mark is written")
    assert reader.read(topic, "read_committed") == [b"of the second"]
    assert b"too late" not in reader.read(topic, "read_uncommitted")


def test_offsets_go_with_the_transaction(
    writer: type[TransactionalProducer],
    make_producer: MakeProducer,
    join: Join,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
    group: str,
) -> None:
    source, target = make_topic(), make_topic()
    confluent.produce(source, [Message(b"%d" % n) for n in range(10)])
    member = join(
        MEMBERS_BY_NAME[writer.name], Membership(group, (source,), isolation="read_committed")
    )
    member.wait_records(10)
    metadata = member.call(lambda each: each.group_metadata())
    producer = make_producer(new_name())

    def copy(offset: int) -> None:
        producer.begin()
        producer.send(target, b"up to %d" % offset)
        producer.send_offsets({(source, 0): offset}, metadata)

    def stable_commit() -> tuple[int, int]:
        """What is committed, as soon as no transaction is about to change it."""
        wait_until(
            lambda: committed(connection, group, source, stable=True)[1] == 0, "it is stable"
        )
        return committed(connection, group, source, stable=True)

    copy(4)
    # Nobody sees it yet; whoever asks for what is stable is told to wait.
    assert committed(connection, group, source) == (-1, 0)
    unstable = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert committed(connection, group, source, stable=True) == unstable
    producer.abort()
    assert stable_commit() == (-1, 0)
    copy(7)
    producer.commit()
    assert stable_commit() == (7, 0)
    copy(9)
    assert committed(connection, group, source) == (7, 0)
    producer.abort()
    assert stable_commit() == (7, 0)


# kafka-python does not notice: its commits succeed after that, with nothing in them.
@pytest.mark.parametrize(
    "writer",
    [ConfluentTransactions, AiokafkaTransactions],
    indirect=True,
    ids=lambda kind: kind.name,
)
def test_a_transaction_that_takes_too_long(
    make_producer: MakeProducer,
    broker: BrokerUnderTest,
    connection: RawConnection,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic = make_topic()
    transactional_id = new_name()
    producer = make_producer(transactional_id, timeout_ms=1_000)
    producer.begin()
    producer.send(topic, b"slow")
    producer.flush()
    reader = READERS[0](broker.bootstrap)
    wait_until(
        lambda: stable_offset(connection, topic) == 2, "the broker has aborted the transaction"
    )
    assert reader.read(topic, "read_committed") == []
    assert reader.read(topic, "read_uncommitted") == [b"slow"]
    with pytest.raises(ClientError):
        producer.send(topic, b"too late")
        producer.commit()
    again = make_producer(transactional_id)
    again.begin()
    again.send(topic, b"quick")
    again.commit()
    wait_until(lambda: stable_offset(connection, topic) == 4, "the mark is written")
    assert reader.read(topic, "read_committed") == [b"quick"]
