"""The stream reader against a real broker, driven as Spark drives it, without Spark."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from headwater import Admin, Producer, TopicPartition, errors
from headwater.client.admin import CommittedOffset, require_all
from headwater.client.ranges import range_fetches
from headwater.pipeline.connector.data_loss import DataLossError
from headwater.pipeline.connector.range_reader import close_clients
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.fake_spark import FakeQuery
from tests.support.spark.source_reading import Place, send, span
from tests.support.tiers import rounds


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Tests have one process where Spark has many: what it keeps open is closed after each."""
    yield
    close_clients()


@pytest.fixture
def admin(broker: RunningBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def query(broker: RunningBroker, **options: object) -> FakeQuery:
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    return FakeQuery({"kafka.bootstrap.servers": broker.bootstrap, **given})


def test_limits(broker: RunningBroker) -> None:
    def limit(**options: object) -> object:
        return query(broker, subscribe="a", **options).reader.getDefaultReadLimit()

    assert limit() == ReadAllAvailable()
    assert limit(maxOffsetsPerTrigger=7) == ReadMaxRows(7)
    assert limit(minOffsetsPerTrigger=7) == ReadMinRows(7)
    assert limit(minOffsetsPerTrigger=7, maxOffsetsPerTrigger=9) == ReadMaxRows(9)


def test_batches_share_a_limit_in_proportion(broker: RunningBroker) -> None:
    topic = broker.create_topic(partitions=3)
    expected = send(broker, topic, 0, 60) + send(broker, topic, 1, 30) + send(broker, topic, 2, 1)
    running = query(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    while running.run_batch():
        pass
    assert running.places == sorted(expected)
    assert [len(batch) for batch in running.batches] == [20, 20, 20, 20, 11]
    shares = [sum(place[1] == number for place in running.batches[0]) for number in range(3)]
    assert shares == [12, 7, 1]
    # A trigger that wants all gets all.
    more = query(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    assert more.read_all()[topic] == {"0": 60, "1": 30, "2": 1}
    running.stop()
    more.stop()


def test_a_batch_waits_until_it_is_worth_it(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    send(broker, topic, 0, 2)
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    patient = query(broker, maxTriggerDelay="1h", **options)
    hasty = query(broker, maxTriggerDelay="0s", **options)
    assert patient.run_batch() and hasty.run_batch(), "the first batch does not wait"
    send(broker, topic, 0, 3)
    assert not patient.run_batch()
    assert hasty.run_batch()
    send(broker, topic, 0, 2)
    assert patient.run_batch()
    assert [len(batch) for batch in patient.batches] == [2, 5]
    send(broker, topic, 0, 1)
    patient.run_available()
    assert len(patient.places) == 8, "a query that ends with what is there does not wait"
    patient.stop()
    hasty.stop()


def test_what_comes_after_the_start_is_not_available_now(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    send(broker, topic, 0, 3)
    running = query(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=2)
    running.reader.prepareForTriggerAvailableNow()
    send(broker, topic, 0, 3)
    while running.run_batch():
        pass
    assert running.places == span(topic, 0, 0, 3)
    running.run_available()
    assert running.places == span(topic, 0, 0, 6)
    running.stop()


def test_a_start_behind_the_end_that_was_fixed_before(broker: RunningBroker, admin: Admin) -> None:
    """Spark asks for the end first: a start at the latest offset may be behind it by then."""
    topic = broker.create_topic()
    running = query(broker, subscribe=topic)
    running.reader.prepareForTriggerAvailableNow()
    send(broker, topic, 0, 3)
    require_all(admin.create_partitions({topic: 2}))
    assert not running.run_batch()
    running.stop()


def test_a_broker_that_starts_anew(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    running = query(broker, subscribe=topic, startingOffsets="earliest")
    expected = send(broker, topic, 0, 2)
    assert running.run_batch()
    broker.stop()
    starter = threading.Timer(0.3, broker.start)
    starter.start()
    assert not running.run_batch()
    starter.join()
    expected += send(broker, topic, 0, 2)
    assert running.run_batch()
    assert running.places == expected
    running.stop()


def test_nobody_at_the_address(broker: RunningBroker) -> None:
    """Who has never been there is not waited for."""
    with pytest.raises(errors.NoBrokerError, match="Cannot connect"):
        query(broker, subscribe="a", kafka__bootstrap__servers="127.0.0.1:1").run_batch()


def test_new_partitions_begin_at_their_first_record(broker: RunningBroker, admin: Admin) -> None:
    first = broker.create_topic("sprout-a")
    send(broker, first, 0, 5)
    running = query(broker, subscribePattern="sprout-.", maxOffsetsPerTrigger=4)
    assert not running.run_batch(), "a query begins at the latest offset"
    require_all(admin.create_partitions({first: 2}))
    second = broker.create_topic("sprout-b")
    expected = send(broker, first, 0, 1) + send(broker, first, 1, 6) + send(broker, second, 0, 2)
    while running.run_batch():
        pass
    assert running.places == sorted(expected)
    running.stop()


def test_new_partitions_without_their_first_records(broker: RunningBroker, admin: Admin) -> None:
    topic = broker.create_topic()
    strict = query(broker, subscribe=topic, startingOffsets="earliest")
    lenient = query(broker, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    assert not strict.run_batch() and not lenient.run_batch()
    require_all(admin.create_partitions({topic: 2}))
    send(broker, topic, 1, 5)
    require_all(admin.delete_records({TopicPartition(topic, 1): 2}))
    with pytest.raises(DataLossError, match=f"{topic}-1 begins at offset 2"):
        strict.run_batch()
    assert lenient.run_batch()
    assert lenient.places == span(topic, 1, 2, 5)
    strict.stop()
    lenient.stop()


def test_a_topic_that_is_emptied_deleted_or_created_anew(
    broker: RunningBroker, admin: Admin
) -> None:
    topics = [broker.create_topic(f"lost-{name}") for name in "ab"]
    for topic in topics:
        send(broker, topic, 0, 10)
    options = {"subscribePattern": "lost-.", "startingOffsets": "earliest"}
    strict, lenient = query(broker, **options), query(broker, failOnDataLoss="false", **options)
    assert strict.run_batch() and lenient.run_batch()

    broker.delete_topic(topics[0])
    with pytest.raises(DataLossError, match="lost-a-0 is gone"):
        strict.run_batch()
    lenient.run_batch()
    broker.create_topic(topics[0])
    send(broker, topics[0], 0, 4)
    with pytest.raises(DataLossError, match="lost-a-0 was read up to offset 10 and now ends at 4"):
        strict.run_batch()
    assert lenient.run_batch()
    assert lenient.batches[-1] == span(topics[0], 0, 0, 4)

    send(broker, topics[1], 0, 5)
    require_all(admin.delete_records({TopicPartition(topics[1], 0): 12}))
    assert lenient.run_batch()
    assert lenient.batches[-1] == span(topics[1], 0, 12, 15)
    strict.stop()
    lenient.stop()


def test_a_range_whose_topic_goes_while_it_is_read(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_fetches, "PASSING_S", 0.05)
    topic = broker.create_topic()
    send(broker, topic, 0, 5)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    strict, lenient = query(broker, **options), query(broker, failOnDataLoss="false", **options)
    for each in (strict, lenient):
        assert each.run_batch()
    send(broker, topic, 0, 3)
    for each in (strict, lenient):
        assert each.run_batch(crashes=True)
    broker.delete_topic(topic)
    with pytest.raises(DataLossError, match=f"{topic}-0 is gone"):
        strict.run_batch()
    broker.create_topic(topic)
    with pytest.raises(DataLossError, match="ends at offset 0, before offset 8"):
        strict.run_batch()
    assert lenient.run_batch()
    assert lenient.batches[1] == []
    strict.stop()
    lenient.stop()


@pytest.mark.parametrize("start", ["latest", "group"])
def test_a_crash_in_the_first_batch_repeats_it(
    broker: RunningBroker, admin: Admin, start: str
) -> None:
    topic = broker.create_topic()
    group = f"crash-{topic}"
    send(broker, topic, 0, 5)
    place = TopicPartition(topic, 0)
    require_all(admin.alter_group_offsets(group, {place: CommittedOffset(5)}))
    running = query(broker, subscribe=topic, startingOffsets=start, headwater__group=group)
    assert not running.run_batch()
    send(broker, topic, 0, 3)
    assert running.run_batch(crashes=True)
    send(broker, topic, 0, 2)
    require_all(admin.alter_group_offsets(group, {place: CommittedOffset(10)}))
    while running.run_batch():
        pass
    assert running.batches == [span(topic, 0, 5, 8), span(topic, 0, 8, 10)]
    assert json.loads(running.offsets[0])["@headwater"]["first"] == {topic: {"0": 5}}
    assert "first" not in json.loads(running.offsets[1])["@headwater"]
    running.stop()


def test_only_what_is_committed_is_read(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    committed = query(broker, **options)
    everything = query(broker, **{**options, "kafka.isolation.level": "read_uncommitted"})
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"1")
        producer.flush()
        assert not committed.run_batch() and everything.run_batch()
        # Who has read an open transaction and goes on with committed records has lost nothing.
        switched = FakeQuery(committed.options, list(everything.offsets), 1)
        assert not switched.run_batch()
        producer.abort_transaction()
        assert committed.run_batch()
        assert committed.places == [], "nothing but an aborted record and its end"
        with producer.transaction():
            producer.send(topic, b"2")
        for each in (committed, everything, switched):
            while each.run_batch():
                pass
    assert committed.places == switched.places == [(topic, 0, 2)]
    assert everything.places == [(topic, 0, 0), (topic, 0, 2)]
    for each in (committed, everything, switched):
        each.stop()


@pytest.mark.parametrize("seed", range(rounds(3, 60)))
def test_any_history_is_read_once(broker: RunningBroker, admin: Admin, seed: int) -> None:
    """Writes, transactions, growth, restarts and crashes in any order: each record once."""
    draw = random.Random(seed)
    names = [f"history-{seed}-{number}" for number in range(2)]
    partition_counts = {broker.create_topic(names[0]): 1}
    expected: list[Place] = []
    running = query(
        broker,
        subscribePattern=f"history-{seed}-.*",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=draw.randint(1, 12),
        minPartitions=draw.randint(1, 5),
    )
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=names[0]) as producer:
        producer.init_transactions()
        for _ in range(rounds(25, 60)):
            topic = draw.choice(list(partition_counts))
            partition = draw.randrange(partition_counts[topic])
            match draw.randrange(8):
                case 0 | 1:
                    expected += send(broker, topic, partition, draw.randint(1, 9))
                case 2:
                    producer.begin_transaction()
                    count = draw.randint(1, 4)
                    futures = [
                        producer.send(topic, b"t", partition=partition) for _ in range(count)
                    ]
                    producer.flush()
                    running.run_batch()
                    if draw.random() < 0.5:
                        producer.commit_transaction()
                        places = [future.result(timeout_s=30) for future in futures]
                        expected += [(topic, partition, place.offset) for place in places]
                    else:
                        producer.abort_transaction()
                case 3 if partition_counts[topic] < 4:
                    partition_counts[topic] += 1
                    require_all(admin.create_partitions({topic: partition_counts[topic]}))
                case 4 if len(partition_counts) < 2:
                    partition_counts[broker.create_topic(names[1])] = 1
                case 5:
                    running.run_batch(crashes=True)
                case 6:
                    running.run_available()
                case _:
                    running.run_batch()
    running.run_available()
    running.stop()
    assert running.places == sorted(expected)
