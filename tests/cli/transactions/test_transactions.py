import asyncio
import json
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import pytest

from headwater.client.admin import (
    AdminOperations,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    ResourceType,
    require_all,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.kafka.node import require_confluent_kafka
from tests.support.waiting import eventually

Command = Callable[..., Finished]

PRODUCER_ID = 777_777
#: The last one whose partitions do not become part of a transaction by themselves.
PRODUCE_VERSION = 11


@pytest.fixture
def transactions(cluster: Cluster) -> Command:
    """`headwater transactions` on the cluster."""

    def run(*arguments: object) -> Finished:
        # The cluster stands in front of the action, as for Kafka's own tool.
        return run_command("transactions", "--bootstrap-server", cluster.bootstrap, *arguments)

    return run


class Open(NamedTuple):
    """A transaction that is open in partition 0 of a topic, behind one other record."""

    transactional_id: str
    topic: str
    producer: Any


@pytest.fixture
def opened(cluster: Cluster) -> Iterator[Open]:
    confluent = require_confluent_kafka()
    topic, transactional_id = cluster.new_name(), cluster.new_name("transactional")
    where = ("-b", cluster.bootstrap)
    assert run_command("topics", "create", topic, *where).exit_code == 0
    eventually(lambda: run_command("get-offsets", topic, *where).exit_code == 0)
    assert run_command("produce", topic, *where, input=b"before\n").exit_code == 0
    producer = confluent.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            # It may outlive the cluster, and need not say so.
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in (b"one", b"two"):
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    yield Open(transactional_id, topic, producer)


def rows(finished: Finished) -> list[dict[str, str]]:
    """The table by its headers."""
    header, *lines = ([cell.strip() for cell in line.split("\t")] for line in finished.lines)
    return [dict(zip_longest(header, line, fillvalue="")) for line in lines]


def test_an_open_transaction_is_shown(
    cluster: Cluster, transactions: Command, opened: Open
) -> None:
    listed = {row["TransactionalId"]: row for row in rows(transactions("list"))}
    row = listed[opened.transactional_id]
    assert (row["Coordinator"], row["TransactionState"]) == (str(cluster.broker_id), "Ongoing")
    described = transactions("describe", "--transactional-id", opened.transactional_id)
    [found] = rows(described)
    assert found["ProducerId"] == row["ProducerId"]
    assert (found["TransactionState"], found["TopicPartitions"]) == ("Ongoing", f"{opened.topic}-0")
    assert 0 <= int(found["TransactionDurationMs"]) < 60_000
    [as_json] = transactions("describe", opened.transactional_id, "--json").lines
    assert json.loads(as_json)["partitions"] == [f"{opened.topic}-0"]
    [producer] = [
        row
        for row in rows(transactions("describe-producers", opened.topic, "--partition", 0))
        if row["ProducerId"] == found["ProducerId"]
    ]
    assert producer["CurrentTransactionStartOffset"] == "1"
    assert producer["ProducerEpoch"] == found["ProducerEpoch"]
    on_broker = transactions(
        *("describe-producers", "--topic", opened.topic, "--partition", 0),
        *("--broker-id", cluster.broker_id, "--json"),
    )
    starts = [json.loads(line)["start_offset"] for line in on_broker.lines]
    assert 1 in starts
    opened.producer.commit_transaction(30)
    eventually(lambda: _state(transactions, opened) == "CompleteCommit")


def _state(transactions: Command, opened: Open) -> str:
    [found] = rows(transactions("describe", opened.transactional_id))
    return found["TransactionState"]


def test_lists_can_be_filtered(transactions: Command, opened: Open) -> None:
    def ids(*arguments: object) -> list[str]:
        finished = transactions("list", *arguments)
        assert finished.exit_code == 0
        return [row["TransactionalId"] for row in rows(finished)]

    assert opened.transactional_id in ids("--state", "Ongoing,Empty")
    assert opened.transactional_id not in ids("--state", "CompleteAbort")
    assert opened.transactional_id in ids("--duration-filter", 0)
    assert opened.transactional_id not in ids("--duration-filter", 600_000)
    pattern = f"{opened.transactional_id[:-1]}."
    assert opened.transactional_id in ids("--transactional-id-pattern", pattern)
    assert opened.transactional_id not in ids("--transactional-id-pattern", "nobody")
    unknown = transactions("list", "--state", "Sleepy")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert unknown.stderr == "headwater: There is no state of transactions called 'Sleepy'.\n"


def test_lag_for_readers_of_committed_records_ends_where_a_transaction_begins(
    cluster: Cluster, opened: Open
) -> None:
    group = cluster.new_name("group")
    where = ("-b", cluster.bootstrap)
    to_start = ("--topic", opened.topic, "--to-earliest", "--execute")
    assert run_command("groups", "reset-offsets", group, *to_start, *where).exit_code == 0

    def ends_and_lag(*arguments: str) -> tuple[int, int]:
        finished = run_command("groups", "describe", group, "--json", *arguments, *where)
        [row] = [json.loads(line) for line in finished.lines]
        return row["log_end_offset"], row["lag"]

    assert ends_and_lag() == (3, 3)
    assert ends_and_lag("--isolation", "read_committed") == (1, 1)


def test_a_transaction_is_aborted_where_it_begins(
    cluster: Cluster, transactions: Command, opened: Open
) -> None:
    where = ("--topic", opened.topic, "--partition", 0)
    wrong = transactions("abort", *where, "--start-offset", 2)
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert wrong.stderr == (
        f"headwater: No open transaction of {opened.topic}-0 begins at offset 2.\n"
    )
    # Its coordinator knows of it, so it does not hang, however old it is.
    hanging = transactions("find-hanging", "--topic", opened.topic, "--max-transaction-timeout", 0)
    assert (hanging.exit_code, rows(hanging)) == (0, [])
    everywhere = transactions("find-hanging", "--broker-id", cluster.broker_id)
    assert everywhere.exit_code == 0
    aborted = transactions("abort", *where, "--start-offset", 1)
    assert (aborted.exit_code, aborted.stderr) == (0, "")
    assert aborted.stdout.startswith("Aborted the transaction of producer ")
    producers = rows(transactions("describe-producers", *where))
    assert {row["CurrentTransactionStartOffset"] for row in producers} == {"None"}


def test_a_transaction_that_hangs_is_found_and_ended(
    cluster: Cluster, transactions: Command
) -> None:
    topic = cluster.new_name()
    asyncio.run(leave_hanging(cluster, topic))
    where = ("--topic", topic, "--partition", 0)
    # As old as a transaction may become, it could still be ended.
    assert rows(transactions("find-hanging", "--topic", topic)) == []
    for chosen in (where, (topic,), ("--broker-id", cluster.broker_id), ()):
        found = transactions("find-hanging", *chosen, "--max-transaction-timeout", 0)
        [row] = [row for row in rows(found) if row["Topic"] == topic]
        assert (row["Partition"], row["StartOffset"], row["Duration(min)"]) == ("0", "0", "0")
        assert (row["ProducerId"], row["ProducerEpoch"]) == (str(PRODUCER_ID), "0")
    aborted = transactions(
        *("abort", *where, "--producer-id", PRODUCER_ID),
        *("--producer-epoch", 0, "--coordinator-epoch", row["CoordinatorEpoch"]),
    )
    assert (aborted.exit_code, aborted.stderr) == (0, "")
    assert aborted.stdout == f"Aborted the transaction of producer {PRODUCER_ID} in {topic}-0.\n"
    gone = transactions("find-hanging", *where, "--max-transaction-timeout", 0)
    assert (gone.exit_code, rows(gone)) == (0, [])


async def leave_hanging(cluster: Cluster, topic: str) -> None:
    """Begin a transaction that no coordinator knows of, which a careful broker would not let."""
    async with ClusterConnection(cluster.bootstrap) as connection:
        admin = AdminOperations(connection)
        require_all(await admin.create_topics([NewTopic(topic, 1)]))
        brokers = ConfigResource(ResourceType.BROKER, "")
        careless = ConfigChange("transaction.partition.verification.enable", "false")
        require_all(await admin.alter_configs({brokers: [careless]}))
        batch = encode_batch(
            [Record(0, int(time.time() * 1000), b"key", b"value")],
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        partition = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id="forgotten",
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
        )
        async with asyncio.timeout(20):
            # Until the topic is there and the setting has arrived.
            while await produce(connection, request, cluster.broker_id):
                await asyncio.sleep(0.05)
        careful = ConfigChange(careless.name, None, ConfigOperation.DELETE)
        require_all(await admin.alter_configs({brokers: [careful]}))


async def produce(connection: ClusterConnection, request: ProduceRequest, broker_id: int) -> int:
    """The error code of the one partition."""
    answer = await connection.ask(request, ProduceResponse, broker_id, version=PRODUCE_VERSION)
    return answer.responses[0].partition_responses[0].error_code


def test_what_is_not_there(transactions: Command, opened: Open) -> None:
    for arguments, sentence in (
        (("describe", "nobody"), "There is no transactional id 'nobody'."),
        (("find-hanging", "--topic", "absent"), "There is no topic 'absent'."),
        (
            ("describe-producers", opened.topic, "--partition", "7"),
            f"Topic {opened.topic!r} has no partition 7: it has partition 0 only.",
        ),
        (
            ("find-hanging", opened.topic, "--partition", "7"),
            f"Topic {opened.topic!r} has no partition 7: it has partition 0 only.",
        ),
    ):
        failed = transactions(*arguments)
        assert (failed.exit_code, failed.stdout) == (1, "")
        assert failed.stderr == f"headwater: {sentence}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("describe", "a", "--transactional-id", "b"),
        ("describe-producers", "t"),
        ("abort", "t", "--partition", "0"),
        ("abort", "t", "--partition", "0", "--producer-id", "1"),
        ("abort", "--partition", "0", "--start-offset", "1"),
        ("find-hanging", "--partition", "0"),
        ("list", "--duration-filter", "soon"),
    ],
)
def test_a_senseless_command_line(arguments: tuple[str, ...]) -> None:
    finished = run_command("transactions", *arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


@pytest.mark.kafka
@pytest.mark.full
def test_the_tables_are_those_of_kafkas_own_tool(
    cluster: Cluster, transactions: Command, opened: Open
) -> None:
    for arguments in (
        ("list",),
        ("describe-producers", "--topic", opened.topic, "--partition", "0"),
        ("find-hanging", "--topic", opened.topic, "--max-transaction-timeout", "0"),
    ):
        theirs = cluster.run_tool("transactions", *arguments).splitlines()
        ours = transactions(*arguments).lines
        assert sorted(line.rstrip() for line in theirs) == sorted(ours)
