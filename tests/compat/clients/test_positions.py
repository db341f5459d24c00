"""Offsets and times lead every client to the same records."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import pytest

from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import AdminClient, Client, ClientError, Message
from tests.support.other_clients.known import ADMIN_CLIENTS

MakeTopic = Callable[..., str]

# Times of today, so that no retention takes the records away.
FIRST_MS = int(time.time() * 1000) - 100_000


def timed(number: int) -> Message:
    """Ten seconds apart."""
    return Message(b"%d" % number, timestamp_ms=FIRST_MS + 10_000 * number)


def test_earliest_latest_and_offsets(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert client.end_offsets(topic) == (0, 0)
    assert client.consume(topic, "earliest") == []
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    assert client.end_offsets(topic) == (0, 10)
    assert [record.offset for record in client.consume(topic, "earliest")] == list(range(10))
    assert [record.offset for record in client.consume(topic, 7)] == [7, 8, 9]
    assert client.consume(topic, "latest") == []
    assert client.consume(topic, 10) == []


def test_offsets_behind_the_end(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    for start in (11, 1_000_000):
        with pytest.raises(ClientError) as refusal:
            client.consume(topic, start)
        assert refusal.value.name == "OFFSET_OUT_OF_RANGE"


def test_times_of_the_producer(
    client: Client, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    sender = client if client.sets_timestamps else confluent
    sender.produce(topic, [timed(number) for number in range(5)])
    sender.produce(topic, [timed(number) for number in range(5, 10)])
    found = client.consume(topic, 0)
    assert [record.timestamp_ms for record in found] == [timed(n).timestamp_ms for n in range(10)]
    assert not any(record.is_append_time for record in found)


def test_offsets_for_times(
    client: Client, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert client.offset_for_time(topic, FIRST_MS) is None
    for first in (0, 4, 8):
        confluent.produce(topic, [timed(number) for number in range(first, first + 4)])
    # The first, the last, and both sides of where one batch ends and the next begins.
    for number in (0, 3, 4, 11):
        assert client.offset_for_time(topic, FIRST_MS + 10_000 * number) == number
        assert client.offset_for_time(topic, FIRST_MS + 10_000 * number - 1) == number
    assert client.offset_for_time(topic, 0) == 0
    assert client.offset_for_time(topic, FIRST_MS + 110_001) is None
    assert [record.value for record in client.consume_since(topic, FIRST_MS + 85_000)] == [
        b"9",
        b"10",
        b"11",
    ]


def test_times_that_go_back(
    client: Client, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    """The first record by offset whose time is not earlier, wherever the others lie."""
    topic = make_topic()
    for number in (5, 1, 7, 3, 9):
        confluent.produce(topic, [timed(number)])
    found = [client.offset_for_time(topic, FIRST_MS + 10_000 * n) for n in (1, 5, 6, 7, 8, 10)]
    assert found == [0, 0, 2, 2, 4, None]


def test_times_of_the_append(
    client: Client, confluent: ConfluentClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    confluent.produce(topic, [timed(number) for number in range(3)])
    client.produce(topic, [Message(b"3")])
    after_ms = int(time.time() * 1000)
    found = client.consume(topic, 0)
    assert [record.value for record in found] == [b"0", b"1", b"2", b"3"]
    assert all(record.is_append_time for record in found)
    times = [record.timestamp_ms for record in found]
    assert times == sorted(times) and before_ms <= times[0] and times[-1] <= after_ms
    assert client.offset_for_time(topic, before_ms) == 0


def test_deleted_records(client: Client, confluent: ConfluentClient, make_topic: MakeTopic) -> None:
    """What was deleted is out of reach; a client that cannot delete sees what another deleted."""
    topic = make_topic()
    is_admin = type(client) in ADMIN_CLIENTS
    admin: AdminClient = cast(AdminClient, client) if is_admin else confluent
    admin.produce(topic, [timed(number) for number in range(10)])
    assert admin.delete_records(topic, 4) == 4
    assert client.end_offsets(topic) == (4, 10)
    assert [record.offset for record in client.consume(topic, "earliest")] == [4, 5, 6, 7, 8, 9]
    assert client.offset_for_time(topic, 0) == 4
    with pytest.raises(ClientError) as refusal:
        client.consume(topic, 3)
    assert refusal.value.name == "OFFSET_OUT_OF_RANGE"
    # Once more, to an offset that is gone already, changes nothing.
    assert admin.delete_records(topic, 2) == 4
    with pytest.raises(ClientError) as refusal:
        admin.delete_records(topic, 11)
    assert refusal.value.name == "OFFSET_OUT_OF_RANGE"
    # -1 means all that is there.
    assert admin.delete_records(topic, -1) == 10
    assert client.end_offsets(topic) == (10, 10)
    assert client.consume(topic, "earliest") == []
