"""A batch that no consumer could read is refused, and does not stop those that read around it.

The batches come in requests that no client sends on purpose, with a checksum that is right. The
same goes for what librdkafka does on purpose: records that have no timestamp, in a batch whose
header says that the latest is of 1970.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.records import Compression, Record, compress, encode_batch, iter_batch_headers
from tests.support.kafka.node import require_confluent_kafka
from tests.support.other_clients.brokers import HEADWATER, BrokerUnderTest, running_broker
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.known import CLIENTS
from tests.support.other_clients.raw import RawConnection, fetch_topic
from tests.support.values.raw_batches import POISON, THREE, raw_batch, sealed

MakeTopic = Callable[..., str]

#: Apache Kafka takes some of these, in some codecs at least: it does not look at offset deltas of
#: uncompressed records (and fails at those of compressed ones, with UNKNOWN_SERVER_ERROR), nor at
#: the lengths of compressed records, nor at negative lengths of keys.
TAKEN_BY_KAFKA = (
    "the same delta again",
    "a delta left out",
    "negative delta",
    "length too large",
    "length too small",
    "negative length",
    "negative key length",
)
CODECS = [each for each in Compression if each is not Compression.NONE]


@pytest.fixture
def connection(broker: BrokerUnderTest) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as opened:
        yield opened


def now_ms() -> int:
    return int(time.time() * 1000)


def good(value: bytes) -> bytes:
    return encode_batch([Record(0, now_ms(), b"key", value)])


def looked_into(broker: BrokerUnderTest) -> dict[str, str]:
    """What makes a topic's broker look into compressed batches; Kafka always does."""
    return {"records_validation": "full"} if broker.kind == HEADWATER else {}


def test_what_is_refused_is_not_in_anybodys_way(
    broker: BrokerUnderTest, connection: RawConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(**looked_into(broker))
    assert connection.produce(topic, good(b"before")).error_code == 0
    for name, (section, count, numbers) in POISON.items():
        if broker.kind != HEADWATER and name in TAKEN_BY_KAFKA:
            continue
        for compression in Compression:
            now = now_ms()
            batch = raw_batch(
                section, count, compression=compression, base_timestamp=now, max_timestamp=now
            )
            answer = connection.produce(topic, batch)
            assert answer.error_code == ErrorCode.INVALID_RECORD, (name, compression)
            assert tuple(each.batch_index for each in answer.record_errors) == numbers
    assert connection.produce(topic, good(b"after")).base_offset == 1
    for kind in CLIENTS:
        client = kind(broker.bootstrap)
        assert [record.value for record in client.consume(topic, 0)] == [b"before", b"after"]


@pytest.mark.parametrize("compression", CODECS)
def test_a_stream_that_does_not_decompress(
    compression: Compression,
    broker: BrokerUnderTest,
    connection: RawConnection,
    make_topic: MakeTopic,
) -> None:
    topic = make_topic(**looked_into(broker))
    whole = compress(compression, THREE * 20)
    for stored in (b"no stream of any codec", whole[:-9], whole[: len(whole) // 2]):
        answer = connection.produce(topic, sealed(stored, 60, compression, now_ms(), now_ms()))
        expected = ErrorCode.CORRUPT_MESSAGE
        if broker.kind != HEADWATER:
            expected = ErrorCode.UNKNOWN_SERVER_ERROR
        assert answer.error_code == expected


def produce_at(bootstrap: str, topic: str, codec: str, *timestamps: int) -> None:
    """A batch for each timestamp, by librdkafka, for which -1 is none."""
    module = require_confluent_kafka()
    producer = module.Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
    failures: list[object] = []
    for timestamp in timestamps:
        producer.produce(
            topic,
            b"value" * 20,
            timestamp=timestamp,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        assert producer.flush(30) == 0
    assert not failures


def test_records_without_a_timestamp_have_none_in_the_log(
    broker: BrokerUnderTest, connection: RawConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    now = now_ms()
    for codec in ("none", "gzip", "lz4", "zstd"):
        produce_at(broker.bootstrap, topic, codec, -1, now, -1)
    answer = connection.fetch(FetchRequest(topics=[fetch_topic(topic, 0)]))
    stored = answer.responses[0].partitions[0].records
    assert isinstance(stored, memoryview)
    times = [(each.base_timestamp, each.max_timestamp) for _, each in iter_batch_headers(stored)]
    assert times == [(-1, -1), (now, now), (-1, -1)] * 4
    for kind in CLIENTS:
        assert len(kind(broker.bootstrap).consume(topic, 0)) == 12


def test_retention_leaves_records_without_a_timestamp_alone(
    broker_kind: str, tmp_path: Path
) -> None:
    settings = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "0"}
    with running_broker(broker_kind, tmp_path, settings) as broker:
        client = ConfluentClient(broker.bootstrap)
        now = now_ms()
        for topic in ("untimed", "mixed", "of-1970"):
            client.create_topic(topic, 1, settings={"retention.ms": "3600000"})
        for codec in ("none", "lz4"):
            produce_at(broker.bootstrap, "untimed", codec, -1, -1)
            produce_at(broker.bootstrap, "mixed", codec, -1, now, -1, now)
        produce_at(broker.bootstrap, "of-1970", "none", 1, 2)
        # What has a time and is too old goes. The second time, all topics have had their turn.
        for start in (2, 4):
            wait_until(
                lambda start=start: client.end_offsets("of-1970")[0] == start,  # type: ignore[misc]
                "retention drops what is old",
            )
            produce_at(broker.bootstrap, "of-1970", "none", 1, 2)
        assert client.end_offsets("untimed") == (0, 4)
        assert client.end_offsets("mixed") == (0, 8)
