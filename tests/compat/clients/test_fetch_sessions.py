"""Incremental fetches: a session remembers the partitions, and an answer names what is new."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.messages.fetch import FetchRequest, FetchResponse, ForgottenTopic
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.raw import (
    FETCH_BY_ID,
    RawConnection,
    fetch_topic,
    fetched_records,
    records_in,
)

MakeTopic = Callable[..., str]

#: The last one with topics by name, and one with ids; sessions came with version 7.
VERSIONS = [7, 12, 13, 17]
NO_SESSION = -1


def batch(value: bytes) -> bytes:
    return encode_batch([Record(0, int(time.time() * 1000), None, value)])


def values(answer: FetchResponse) -> list[list[bytes | None]]:
    """What came, by partition, in the order of the answer."""
    return [[each.value for each in records] for records in fetched_records(answer).values()]


class Session:
    """What a client keeps of its session."""

    def __init__(self, connection: RawConnection, version: int) -> None:
        self.connection = connection
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def fetch(self, request: FetchRequest) -> FetchResponse:
        request.session_id, request.session_epoch = self.session_id, self.epoch
        answer = self.connection.fetch(request, self.version)
        if answer.error_code == ErrorCode.NONE:
            self.session_id = answer.session_id
            self.epoch += 1
        return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_names_no_partition_returns_new_data(
    version: int, broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    with RawConnection(broker.bootstrap) as producer, RawConnection(broker.bootstrap) as consumer:
        topic_id = consumer.topic_id(topic) if version >= FETCH_BY_ID else None
        producer.produce(topic, batch(b"first"))
        session = Session(consumer, version)
        full = session.fetch(FetchRequest(topics=[fetch_topic(topic, 0, 0, topic_id=topic_id)]))
        assert full.error_code == 0 and full.session_id != 0
        # A full answer has every partition; incremental ones have those with something new.
        assert values(full) == [[b"first"], []]

        # The session still stands at offset 0, so the same record is new until the client moves on.
        assert values(session.fetch(FetchRequest())) == [[b"first"]]
        moved_on = fetch_topic(topic, 1, topic_id=topic_id)
        assert values(session.fetch(FetchRequest(topics=[moved_on]))) == []

        producer.produce(topic, batch(b"second"))
        new = session.fetch(FetchRequest())
        assert new.error_code == 0 and new.session_id == full.session_id
        assert values(new) == [[b"second"]]
        [only] = new.responses
        if version >= FETCH_BY_ID:
            assert only.topic_id == topic_id
        else:
            assert only.topic == topic
        assert only.partitions[0].partition_index == 0
        assert only.partitions[0].high_watermark == 2


def test_it_waits_for_new_data(broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    """A request that names nothing is parked like any other, and what is appended completes it."""
    topic = make_topic()
    with RawConnection(broker.bootstrap) as producer, RawConnection(broker.bootstrap) as consumer:
        session = Session(consumer, 12)
        session.fetch(FetchRequest(topics=[fetch_topic(topic, 0)]))
        parked = FetchRequest(
            max_wait_ms=15_000, min_bytes=1, session_id=session.session_id, session_epoch=1
        )
        consumer.send(parked, 12)
        started_s = time.monotonic()
        producer.produce(topic, batch(b"news"))
        _, answer = consumer.receive(FetchRequest.API_KEY, 12)
        assert time.monotonic() - started_s < 10
        assert values(answer) == [[b"news"]]


def test_partitions_come_and_go(broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    first, second = make_topic(), make_topic()
    with RawConnection(broker.bootstrap) as connection:
        for topic in (first, second):
            connection.produce(topic, batch(topic.encode()))
        session = Session(connection, 12)
        session.fetch(FetchRequest(topics=[fetch_topic(first, 0)]))
        both = session.fetch(FetchRequest(topics=[fetch_topic(second, 0)]))
        assert sorted(fetched_records(both)) == sorted([(first, 0), (second, 0)])
        forgotten = ForgottenTopic(topic=first, partitions=[0])
        rest = session.fetch(FetchRequest(forgotten_topics_data=[forgotten]))
        assert list(fetched_records(rest)) == [(second, 0)]


def test_sessions_that_the_broker_does_not_have(
    broker: BrokerUnderTest, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with RawConnection(broker.bootstrap) as connection:
        session = Session(connection, 12)
        session.fetch(FetchRequest(topics=[fetch_topic(topic, 0)]))
        wrong_epoch = FetchRequest(session_id=session.session_id, session_epoch=7)
        answer = connection.fetch(wrong_epoch)
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert answer.responses == []
        unknown = FetchRequest(session_id=session.session_id ^ 1, session_epoch=1)
        assert connection.fetch(unknown).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        # The session is still there, and epoch -1 ends it.
        assert session.fetch(FetchRequest()).error_code == 0
        ended = FetchRequest(
            topics=[fetch_topic(topic, 0)],
            session_id=session.session_id,
            session_epoch=NO_SESSION,
        )
        assert connection.fetch(ended).session_id == 0
        assert session.fetch(FetchRequest()).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_a_session(broker: BrokerUnderTest, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with RawConnection(broker.bootstrap) as connection:
        connection.produce(topic, batch(b"1"))
        for _ in range(2):
            plain = FetchRequest(topics=[fetch_topic(topic, 0)], session_epoch=NO_SESSION)
            answer = connection.fetch(plain)
            assert (answer.error_code, answer.session_id) == (0, 0)
            assert values(answer) == [[b"1"]]


@pytest.mark.parametrize("version", [13, 17])
def test_a_topic_id_that_nobody_has(version: int, broker: BrokerUnderTest) -> None:
    stranger = fetch_topic("", 0, topic_id=uuid.UUID(int=0x1234_5678))
    with RawConnection(broker.bootstrap) as connection:
        answer = connection.fetch(FetchRequest(topics=[stranger]), version)
    [topic] = answer.responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert records_in(topic.partitions[0].records) == []
