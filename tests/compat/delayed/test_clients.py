"""Any client delays a record with a header, and reads such a topic through the gaps in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.contract import Client, Message, Sending
from tests.support.other_clients.delays import (
    HOUR,
    consume_in_time,
    delayed,
    delayed_offset,
    is_copy,
    now_ms,
    sent_headers,
)
from tests.support.other_clients.headwater import HeadwaterClient
from tests.support.other_clients.known import CLIENTS

MakeTopic = Callable[..., str]

PARTITIONS = 2


@pytest.fixture(params=[*CLIENTS, HeadwaterClient], ids=lambda kind: kind.name)
def client(request: pytest.FixtureRequest, broker: BrokerUnderTest) -> Client:
    made: Client = request.param(broker.bootstrap)
    return made


def messages(partition: int) -> list[Message]:
    """Ordinary ones among delayed ones, with a gap in front, in the midst and at the end."""
    at = str(now_ms() + 300).encode()
    return [
        delayed(b"an hour", HOUR, partition),
        Message(b"first", b"key", (("name", b"value"),), partition),
        delayed(b"later", "700ms", partition),
        Message(b"at", b"key", (("headwater-deliver-at", at),), partition),
        delayed(b"past", "0", partition),
        Message(b"second", None, (), partition),
        delayed(b"another hour", HOUR, partition),
    ]


@pytest.mark.parametrize("compression", ["none", pytest.param("lz4", marks=pytest.mark.full)])
def test_each_message_comes_once_and_not_early(
    client: Client, make_topic: MakeTopic, compression: str
) -> None:
    topic = make_topic(PARTITIONS, delay_mode="header")
    for partition in range(PARTITIONS):
        # Apart, as a producer sends what it does not have at once: a batch is delayed as a whole.
        sent = messages(partition)
        offsets = []
        for message in sent:
            offsets += client.produce(topic, [message], Sending(compression))
        expected = [each for each in sent if b"hour" not in (each.value or b"")]
        found = consume_in_time(client, topic, len(expected), partition)
        by_value = {each.value: each for each in found}
        assert len(by_value) == len(found) == len(expected)
        for message in expected:
            record = by_value[message.value]
            assert (record.key, sent_headers(record)) == (message.key, message.headers)
        assert not is_copy(by_value[b"first"]) and not is_copy(by_value[b"second"])
        copies = [each for each in found if is_copy(each)]
        assert [each.value for each in copies] in (
            [b"past", b"at", b"later"],
            [b"at", b"past", b"later"],  # Where sending took longer than the wait.
        )
        assert [each.timestamp_ms for each in copies] == sorted(
            each.timestamp_ms for each in copies
        )
        if client.reports_offsets:
            named = dict(zip((each.value for each in sent), offsets, strict=True))
            assert {each.value: delayed_offset(each) for each in copies} == {
                each.value: named[each.value] for each in copies
            }
        # The end that is told can be reached, though what waits lies behind it.
        assert client.end_offsets(topic, partition)[1] == found[-1].offset + 1


def test_a_mixed_batch(client: Client, make_topic: MakeTopic) -> None:
    """What asks for no delay comes at once, with the rest of its batch or without."""
    topic = make_topic(delay_mode="header")
    sent = [
        Message(b"one", b"key"),
        delayed(b"an hour", HOUR),
        Message(b"two", b"key"),
        delayed(b"soon", "200ms"),
        Message(b"three", b"key"),
    ]
    client.produce(topic, sent)
    found = consume_in_time(client, topic, 4)
    assert [each.value for each in found] == [b"one", b"two", b"three", b"soon"]
    assert client.end_offsets(topic)[1] == found[-1].offset + 1


def test_a_topic_in_which_everything_waits(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(delay_mode="header")
    client.produce(topic, [delayed(b"%d" % number, HOUR) for number in range(20)])
    assert client.consume(topic, "earliest") == []
    assert client.end_offsets(topic) == (0, 0)
