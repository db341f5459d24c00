"""Ranges of offsets, read from a real broker: what comes, where it ends, and what is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater import Admin, Producer, TopicPartition, errors
from headwater.client.admin import require_all
from headwater.client.ranges import RangeClient, range_fetches
from headwater.testing.running_broker import RunningBroker
from tests.support.tiers import rounds
from tests.support.waiting import eventually

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    upkeep = {"log.cleaner.backoff.ms": "50", "log.initial.task.delay.ms": "0"}
    with RunningBroker(settings=upkeep) as running:
        yield running


@pytest.fixture(scope="module")
def client(broker: RunningBroker) -> Iterator[RangeClient]:
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
    client = RangeClient(settings)
    yield client
    client.close()


def filled(broker: RunningBroker, count: int, batch_size: int = 16384) -> TopicPartition:
    topic = broker.create_topic()
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=batch_size) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, key=b"k", headers=[("h", b"x")])
    return TopicPartition(topic, 0)


def offsets(client: RangeClient, place: TopicPartition, start: int, end: int) -> list[int]:
    return [int(offset) for columns in client.read(place, start, end) for offset in columns.offsets]


def test_a_range_is_read_exactly(broker: RunningBroker, client: RangeClient) -> None:
    place = filled(broker, 3000, batch_size=1000)
    for start, end in ((0, 3000), (17, 18), (1234, 2468), (2999, 3000), (5, 5)):
        assert offsets(client, place, start, end) == list(range(start, end))


def test_many_fetches_come_in_order(broker: RunningBroker) -> None:
    place = filled(broker, 2000)
    config = {"bootstrap.servers": broker.bootstrap, "max.partition.fetch.bytes": "2000"}
    client = RangeClient(config)
    assert offsets(client, place, 100, 1900) == list(range(100, 1900))
    client.close()


def test_headers_are_left_out_if_nobody_wants_them(
    broker: RunningBroker, client: RangeClient
) -> None:
    place = filled(broker, 200)
    assert all(columns.headers is not None for columns in client.read(place, 0, 200))
    for columns in client.read(place, 0, 200, with_headers=False):
        assert columns.headers is None


def test_transactions(broker: RunningBroker, client: RangeClient) -> None:
    """Aborted records and control records are passed over, also when nothing else is left."""
    place = TopicPartition(broker.create_topic(), 0)
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="ranges") as producer:
        producer.init_transactions()
        for is_committed in (True, False, True, False, False):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(place.topic, b"x")
            if is_committed:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
    eventually(lambda: client.bounds(place)[1] == 20)
    end = 20
    assert offsets(client, place, 0, end) == [0, 1, 2, 8, 9, 10]
    assert offsets(client, place, 12, end) == []
    assert offsets(client, place, 3, 4) == []
    uncommitted = RangeClient({"bootstrap.servers": broker.bootstrap})
    assert len(offsets(uncommitted, place, 0, end)) == 15
    uncommitted.close()


def test_gaps_of_a_compacted_topic(broker: RunningBroker, client: RangeClient) -> None:
    place = TopicPartition(broker.create_topic(configs=COMPACTED), 0)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(200):
            producer.send(place.topic, bytes(20_000), key=b"%d" % (number % 3))
            if number % 10 == 9:
                producer.flush()
    # What is not on disk for sure is not compacted: a broker that stops has it there.
    broker.restart()
    eventually(lambda: len(offsets(client, place, 0, 200)) < 50)
    left = offsets(client, place, 0, 200)
    assert left[-1] == 199
    for start, end in ((0, 50), (3, 170), (0, 1)):
        assert offsets(client, place, start, end) == [o for o in left if start <= o < end]


def test_what_is_gone_is_told_with_the_place(
    broker: RunningBroker, client: RangeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_fetches, "PASSING_S", 0.05)
    place = filled(broker, 100)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        require_all(admin.delete_records({place: 60}))
    reading = client.read(place, 40, 100)
    with pytest.raises(errors.OffsetOutOfRangeError):
        list(reading)
    assert reading.position == 40
    assert client.bounds(place) == (60, 100)
    assert offsets(client, place, 60, 100) == list(range(60, 100))
    with pytest.raises(errors.OffsetOutOfRangeError):
        offsets(client, place, 101, 110)
    broker.delete_topic(place.topic)
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        offsets(client, place, 60, 100)


def test_a_range_that_nobody_fills_ends_in_a_sentence(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = filled(broker, 5)
    client = RangeClient(
        {"bootstrap.servers": broker.bootstrap, "fetch.max.wait.ms": "10"}, progress_timeout_s=0.2
    )
    with pytest.raises(errors.RequestTimedOutError, match="no records from offset 5 on"):
        offsets(client, place, 0, 9)
    monkeypatch.setattr(range_fetches, "PASSING_S", 0.05)
    with pytest.raises(errors.OffsetOutOfRangeError, match="ends at offset 5, and records up to 9"):
        offsets(client, place, 0, 9)
    client.close()


def test_connections_close_when_idle_and_open_again(broker: RunningBroker) -> None:
    place = filled(broker, 10)
    client = RangeClient({"bootstrap.servers": broker.bootstrap}, idle_s=0.05)
    for _ in range(2):
        assert len(offsets(client, place, 0, 10)) == 10
        eventually(lambda: not client.is_connected)
    client.close()
    client.close()


def test_a_reader_may_stop_in_the_middle(broker: RunningBroker, client: RangeClient) -> None:
    place = filled(broker, 1000)
    for _ in range(rounds(3, 30)):
        reading = iter(client.read(place, 0, 1000))
        assert int(next(reading).offsets[0]) == 0
        reading.close()
    assert offsets(client, place, 0, 1000) == list(range(1000))


def test_a_broker_that_comes_back_is_read_on(broker: RunningBroker) -> None:
    place = filled(broker, 50)
    client = RangeClient({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": "10"})
    assert len(offsets(client, place, 0, 50)) == 50
    broker.restart()
    assert len(offsets(client, place, 0, 50)) == 50
    client.close()
