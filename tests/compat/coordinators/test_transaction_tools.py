"""Apache Kafka's own tools for transactions, and what its producer makes of the broker."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import Message
from tests.support.other_clients.groups.java import JavaTools
from tests.support.other_clients.groups.raw import committed
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.confluent import (
    ConfluentReader,
    ConfluentTransactions,
)
from tests.support.other_clients.transactions.raw import (
    PRODUCE_VERSION_1,
    new_producer,
    stable_offset,
    write,
)

pytestmark = pytest.mark.kafka

MakeTopic = Callable[..., str]

HOUR_MS = 3_600_000
VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture
def java(broker: BrokerUnderTest) -> JavaTools:
    return JavaTools(broker.bootstrap)


def test_the_copier_uses_transactions_of_version_2(
    java: JavaTools,
    broker: BrokerUnderTest,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    source, target, group = make_topic(), make_topic(), new_name()
    values = [b"%d" % n for n in range(200)]
    confluent.produce(source, [Message(value) for value in values])
    printed = java.copy(
        "--input-topic", source, "--input-partition", "0", "--output-topic", target,
        "--consumer-group", group, "--transactional-id", new_name(),
        "--transaction-size", "20", "--enable-random-aborts", "--group-mode",
        "--use-group-metadata",
    )  # fmt: skip
    assert '"totalProcessed":200' in printed.output.splitlines()[-1]
    assert ConfluentReader(broker.bootstrap).read(target, "read_committed") == values
    assert committed(connection, group, source) == (200, 0)
    sent: dict[str, set[int]] = {}
    for name, version in re.findall(r"apiKey=(\w+), apiVersion=(\d+)", printed.errors):
        sent.setdefault(name, set()).add(int(version))
    # In this version a partition joins a transaction by being written to, and the epoch grows with
    # every end.
    assert min(sent["PRODUCE"]) >= 12
    assert sent["END_TXN"] == {5}
    assert sent["TXN_OFFSET_COMMIT"] == {5}
    assert not {"ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN"} & sent.keys()


def test_list_and_describe(
    java: JavaTools,
    broker: BrokerUnderTest,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic, transactional_id = make_topic(2), new_name()
    producer = ConfluentTransactions(broker.bootstrap, transactional_id, 60_000)
    producer.begin()
    producer.send(topic, b"committed")
    producer.commit()
    producer.begin()
    producer.send(topic, b"open")
    producer.send(topic, b"open", 1)
    producer.flush()
    listed = java.table("transactions", "list")
    [row] = [each for each in listed if each["TransactionalId"] == transactional_id]
    assert row["TransactionState"] == "Ongoing"
    [described] = java.table("transactions", "describe", "--transactional-id", transactional_id)
    assert described["TransactionState"] == "Ongoing"
    assert described["ProducerId"] == row["ProducerId"]
    assert described["TransactionTimeoutMs"] == "60000"
    assert int(described["TransactionDurationMs"]) < 60_000
    assert sorted(described["TopicPartitions"].split(",")) == [f"{topic}-0", f"{topic}-1"]
    [state] = java.table("transactions", "describe-producers", "--topic", topic, "--partition", "0")
    assert state["ProducerId"] == row["ProducerId"]
    assert state["ProducerEpoch"] == described["ProducerEpoch"]
    # Behind a record and the mark that committed it.
    assert state["CurrentTransactionStartOffset"] == "2"
    producer.commit()
    producer.close()


@pytest.fixture
def unverified(confluent: ConfluentClient) -> Iterator[None]:
    """Lets a producer write to a partition that its coordinator has not heard of."""
    [broker_id] = confluent.broker_ids()
    confluent.alter_broker(broker_id, {VERIFICATION: "false"})
    yield
    confluent.reset_broker(broker_id, [VERIFICATION])


def test_a_hanging_transaction(
    unverified: None,
    java: JavaTools,
    connection: RawConnection,
    confluent: ConfluentClient,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic, transactional_id = make_topic(), new_name()
    producer = new_producer(connection, transactional_id)
    an_hour_ago_ms = int(time.time() * 1000) - HOUR_MS
    # In the last version in which a partition does not join a transaction by being written to.
    written = write(
        connection, producer, topic, version=PRODUCE_VERSION_1, timestamp_ms=an_hour_ago_ms
    )
    assert written == 0
    confluent.produce(topic, [Message(b"after")])
    assert stable_offset(connection, topic) == 0

    [found] = java.table("transactions", "find-hanging", "--topic", topic)
    assert (found["Topic"], found["Partition"]) == (topic, "0")
    assert found["ProducerId"] == str(producer.producer_id)
    assert found["StartOffset"] == "0"
    java.run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert stable_offset(connection, topic) == 3
    assert ConfluentReader(java.bootstrap).read(topic, "read_committed") == [b"after"]
    assert java.table("transactions", "find-hanging", "--topic", topic) == []
