"""Delayed records in transactions: a commit arms them, an abort drops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.delays import HOUR, consume_in_time, in_log
from tests.support.other_clients.headwater import HeadwaterClient
from tests.support.other_clients.transactions.contract import Isolation, TransactionalProducer
from tests.support.other_clients.transactions.known import OWN_PRODUCER, PRODUCERS, READERS
from tests.support.waiting import eventually

MakeTopic = Callable[..., str]

ISOLATIONS: tuple[Isolation, ...] = ("read_committed", "read_uncommitted")
SOON = (("headwater-delay", b"200ms"),)
LATE = (("headwater-delay", HOUR.encode()),)


@pytest.fixture(params=[*PRODUCERS, OWN_PRODUCER], ids=lambda kind: kind.name)
def writer(request: pytest.FixtureRequest) -> type[TransactionalProducer]:
    kind: type[TransactionalProducer] = request.param
    return kind


@contextmanager
def transactional(
    kind: type[TransactionalProducer], bootstrap: str, transactional_id: str
) -> Iterator[TransactionalProducer]:
    producer = kind(bootstrap, transactional_id)
    try:
        yield producer
    finally:
        producer.close()


def test_commit_and_abort(
    writer: type[TransactionalProducer],
    broker: BrokerUnderTest,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    topic = make_topic(delay_mode="header")
    with transactional(writer, broker.bootstrap, new_name()) as producer:
        producer.begin()
        producer.send(topic, b"dropped", headers=SOON)
        producer.send(topic, b"dropped too", headers=LATE)
        producer.flush()
        producer.abort()
        producer.begin()
        producer.send(topic, b"soon", headers=SOON)
        producer.flush()
        producer.send(topic, b"at once")
        producer.flush()
        producer.send(topic, b"an hour", headers=LATE)
        producer.commit()
        # Not committed: it waits, whatever its delay.
        producer.begin()
        producer.send(topic, b"undecided", headers=(("headwater-delay", b"1ms"),))
        producer.flush()
        found = consume_in_time(HeadwaterClient(broker.bootstrap), topic, 2)
        assert sorted(each.value or b"" for each in found) == [b"at once", b"soon"]
        assert len(in_log(broker.log_dir, topic)) == 5
        producer.abort()
    for reader in READERS:
        for isolation in ISOLATIONS:
            values = reader(broker.bootstrap).read(topic, isolation)
            assert sorted(values) == [b"at once", b"soon"], (reader.name, isolation)


def test_what_is_committed_after_its_time(
    writer: type[TransactionalProducer],
    broker: BrokerUnderTest,
    make_topic: MakeTopic,
    new_name: Callable[[], str],
) -> None:
    """It comes with the commit, behind what was delivered while it was open."""
    topic = make_topic(delay_mode="header")
    own = HeadwaterClient(broker.bootstrap)
    with transactional(writer, broker.bootstrap, new_name()) as producer:
        producer.begin()
        producer.send(topic, b"in a transaction", headers=(("headwater-delay", b"1ms"),))
        producer.flush()
        with transactional(OWN_PRODUCER, broker.bootstrap, new_name()) as other:
            other.begin()
            other.send(topic, b"meanwhile", headers=(("headwater-delay", b"50ms"),))
            other.commit()

            # Copies are in no transaction, but behind an open one.
            def has_come() -> bool:
                reader = READERS[0](broker.bootstrap)
                return reader.read(topic, "read_uncommitted") == [b"meanwhile"]

            eventually(has_come)
        producer.commit()
    found = consume_in_time(own, topic, 2)
    assert [each.value for each in found] == [b"meanwhile", b"in a transaction"]
    assert found[0].timestamp_ms <= found[1].timestamp_ms
