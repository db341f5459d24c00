"""Records come back from the broker as any client sent them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from headwater.testing.broker_process import wait_until
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.records import iter_batch_headers
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import (
    COMPRESSIONS,
    Client,
    ClientError,
    Consumed,
    Headers,
    Message,
    Sending,
)
from tests.support.other_clients.known import CLIENTS
from tests.support.other_clients.raw import RawConnection, fetch_topic

MakeTopic = Callable[..., str]

VARIED = [
    Message(b"plain", b"key"),
    Message(b"no key"),
    Message(None, b"tombstone"),
    Message(b"", b"empty value"),
    Message("Größe 你好 🌊".encode(), "Schlüssel".encode()),
    Message(b"a header", b"key", (("name", b"value"),)),
    Message(b"headers", None, (("a", b"1"), ("a", b"2"), ("größe", "größe".encode()))),
    Message(b"0123456789" * 500, b"long"),
]
NULL_HEADER = Message(b"null header", b"key", (("null", None), ("empty", b"")))


def contents(records: list[Consumed]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    return [(record.key, record.value, record.headers) for record in records]


def sent(messages: list[Message]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    return [(message.key, message.value, message.headers) for message in messages]


def varied_for(client: Client) -> list[Message]:
    return [*VARIED, NULL_HEADER] if client.sends_null_headers else VARIED


def test_every_compression(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    messages = varied_for(client)
    offsets = []
    for compression in COMPRESSIONS:
        offsets += client.produce(topic, messages, Sending(compression))
    found = client.consume(topic, 0)
    assert contents(found) == sent(messages * len(COMPRESSIONS))
    assert [record.offset for record in found] == list(range(len(found)))
    if client.reports_offsets:
        assert offsets == [record.offset for record in found]


@pytest.fixture(scope="session")
def written_by_all(broker: BrokerUnderTest, confluent: ConfluentClient) -> tuple[str, list[bytes]]:
    """A topic into which every client wrote with every compression, and the values in it."""
    topic = f"written-by-all-{os.urandom(4).hex()}"
    confluent.create_topic(topic)
    values = []
    for kind in CLIENTS:
        for compression in COMPRESSIONS:
            value = f"{kind.name} {compression}".encode() * 50
            writer: Client = kind(broker.bootstrap)
            writer.produce(topic, [Message(value, b"key")] * 3, Sending(compression))
            values += [value] * 3
    return topic, values


def test_what_the_others_wrote(
    client: Client, confluent: ConfluentClient, written_by_all: tuple[str, list[bytes]]
) -> None:
    """Whoever wrote a record, and with whatever compression, any client reads the same."""
    topic, values = written_by_all
    found = client.consume(topic, 0)
    assert [record.value for record in found] == values
    assert found == confluent.consume(topic, 0)


def test_the_broker_compresses_anew(
    confluent: ConfluentClient, client: Client, make_topic: MakeTopic, broker: BrokerUnderTest
) -> None:
    """A topic with a compression of its own stores records in that one, however they came."""
    messages = [Message(b"the same again " * 20, b"key-%d" % n) for n in range(5)]
    for name in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        topic = make_topic(compression_type=name)
        for sent_compression in COMPRESSIONS:
            confluent.produce(topic, messages, Sending(sent_compression))
        assert contents(client.consume(topic, 0)) == sent(messages * len(COMPRESSIONS))
        with RawConnection(broker.bootstrap) as connection:
            answer = connection.fetch(FetchRequest(topics=[fetch_topic(topic, 0)]))
        data = bytes(answer.responses[0].partitions[0].records)  # type: ignore[arg-type]
        stored = {header.compression for _, header in iter_batch_headers(data)}
        expected = "none" if name == "uncompressed" else name
        assert {each.name.lower() for each in stored} == {expected}


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks(acks: int, client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    messages = [Message(b"%d" % number) for number in range(20)]
    offsets = client.produce(topic, messages, Sending(acks=acks))
    if acks != 0 and client.reports_offsets:
        assert offsets == list(range(20))
    # What nobody acknowledges may still be on its way when the producer closes.
    if acks == 0:
        wait_until(lambda: client.end_offsets(topic)[1] == 20, "all have arrived")
    assert contents(client.consume(topic, 0)) == sent(messages)


def test_an_idempotent_producer(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    messages = [Message(b"%d" % number) for number in range(300)]
    client.produce(topic, messages, Sending(is_idempotent=True))
    client.produce(topic, messages, Sending("lz4", is_idempotent=True))
    assert contents(client.consume(topic, 0)) == sent(messages * 2)


def test_explicit_partitions(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    messages = [Message(b"%d" % n, b"same key", partition=n * 2 % 3) for n in range(6)]
    client.produce(topic, messages)
    for partition in range(3):
        expected = [message for message in messages if message.partition == partition]
        assert len(expected) == 2
        assert contents(client.consume(topic, 0, partition)) == sent(expected)


def test_order_over_many_batches_and_segments(
    client: Client, make_topic: MakeTopic, broker: BrokerUnderTest
) -> None:
    """Several segments, because three times their size is written; read from within each."""
    topic = make_topic(segment_bytes=1_048_576)
    values = [b"%06d" % number + b"." * 1_500 for number in range(2_200)]
    client.produce(topic, [Message(value) for value in values])
    if broker.log_dir is not None:
        assert len(list((broker.log_dir / f"{topic}-0").glob("*.log"))) >= 3
    for start in (0, 699, 1_400, 2_199):
        found = client.consume(topic, start)
        assert [record.value for record in found] == values[start:]
        assert [record.offset for record in found] == list(range(start, 2_200))


def test_a_message_just_below_a_megabyte(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    message = Message(b"x" * 1_000_000, b"key")
    client.produce(topic, [message, Message(b"next")], Sending(message_bytes_max=2_000_000))
    assert contents(client.consume(topic, 0)) == sent([message, Message(b"next")])


def test_a_message_above_the_brokers_limit(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    large = Message(b"x" * 1_100_000, b"key")
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [large], Sending(message_bytes_max=2_000_000))
    assert refusal.value.name == "MESSAGE_TOO_LARGE"
    assert client.end_offsets(topic) == (0, 0)


def test_a_topic_with_a_larger_limit(client: Client, make_topic: MakeTopic) -> None:
    """A batch larger than any limit of a fetch is still delivered, or a reader would be stuck."""
    topic = make_topic(max_message_bytes=4_000_000)
    message = Message(b"x" * 3_000_000, b"key")
    client.produce(topic, [message, Message(b"next")], Sending(message_bytes_max=4_000_000))
    assert contents(client.consume(topic, 0)) == sent([message, Message(b"next")])


def test_a_compacted_topic_refuses_records_without_keys(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(cleanup_policy="compact")
    client.produce(topic, [Message(b"value", b"key"), Message(None, b"key")])
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [Message(b"no key")], Sending(timeout_s=3))
    # aiokafka does not know that error.
    assert refusal.value.name in ("INVALID_RECORD", "-UnknownError")
    assert client.end_offsets(topic) == (0, 2)
