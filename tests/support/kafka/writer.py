"""Writes to and reads from a running Apache Kafka node, in all the ways its files can differ.

`KafkaWriter` sends by Kafka's own tools, so as the Java client does, and by librdkafka through
confluent-kafka; it remembers what it sent. `read_everything` is what the node serves of it. Data
and timestamps depend on the seed alone. `data` uses it to make directories to read.
"""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.testing.apache_kafka import KafkaNode, run_tool
from tests.support.kafka.node import require_confluent_kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Fixed, so that what is in a file is the same each time.
BASE_TIMESTAMP_MS = 1_700_000_000_000
TIMEOUT_S = 60.0
CONSOLE_OPTIONS = [
    *("--batch-size", "1024"),
    *("--reader-property", "parse.key=true"),
    *("--reader-property", "parse.headers=true"),
    *("--reader-property", "null.marker=NULL"),
]


class Message(NamedTuple):
    """What a producer sends."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ServedRecord(NamedTuple):
    """What a consumer gets."""

    offset: int
    timestamp: int
    message: Message


@dataclass(frozen=True)
class TopicData:
    """Partition 0 of a topic, as the node served it."""

    records: list[ServedRecord]  # aborted ones too; control records are never served
    committed: list[ServedRecord]  # below the last stable offset, without aborted ones
    log_start_offset: int
    last_stable_offset: int
    end_offset: int


class KafkaWriter:
    """Sends to one node, and remembers what it sent."""

    def __init__(self, node: KafkaNode, topics: Iterable[str], *, seed: int) -> None:
        self.node = node
        self.produced: dict[str, list[Message]] = {topic: [] for topic in topics}
        self._confluent = require_confluent_kafka()
        self._random = random.Random(seed)
        self._seed = seed
        self._timestamp_ms = BASE_TIMESTAMP_MS + seed * 86_400_000
        self._admin = self._confluent.admin.AdminClient(self._client_config())
        self._left_open: list[Any] = []

    def create_topics(self, topics: Mapping[str, dict[str, str]]) -> None:
        """Make topics of one partition, each with its settings."""
        new_topic = self._confluent.admin.NewTopic
        wanted = [new_topic(topic, 1, config=config) for topic, config in topics.items()]
        for created in self._admin.create_topics(wanted).values():
            created.result(TIMEOUT_S)

    def messages(self, count: int) -> list[Message]:
        """Texts with and without key, value and headers."""
        return [
            Message(
                None if i % 7 == 3 else b"key-%d" % i,
                None if i % 11 == 5 else self._text(),
                (("index", b"%d" % i), ("note", None)) if i % 5 == 2 else (),
            )
            for i in range(count)
        ]

    def send(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        compression: str = "none",
        interval_ms: int = 10,
    ) -> None:
        """Send in small batches, by a producer that is not idempotent."""
        config = {"compression.type": compression, "enable.idempotence": False}
        producer = self._producer(config)
        for start in range(0, len(messages), 5):
            self._send_batch(producer, topic, messages[start : start + 5], interval_ms)

    def send_from_console(self, codecs: Mapping[str, str]) -> None:
        """Send to each topic, by its codec, with Kafka's own console producer (idempotent)."""
        lines = {}
        for topic in codecs:
            messages = self.messages(300)
            self.produced[topic] += messages
            lines[topic] = "".join(map(_console_line, messages))

        def send(topic: str) -> None:
            arguments = ("--topic", topic, "--compression-codec", codecs[topic])
            self.node.run_tool("console-producer", *arguments, *CONSOLE_OPTIONS, input=lines[topic])

        # Most of the time is the start of a Java process, which others can use.
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(send, codecs))

    def send_java_transactions(self, topic: str) -> None:
        """Send committed transactions with Kafka's own producer, which takes an epoch for each."""
        count = 300
        options = {
            "--topic": topic,
            "--num-records": str(count),
            "--throughput": "1000",
            "--transactional-id": "java",
            "--transaction-duration-ms": "20",
            "--bootstrap-server": self.node.bootstrap,
        }
        arguments = [text for option in options.items() for text in option]
        run_tool("producer-perf-test", [*arguments, "--payload-monotonic"])
        self.produced[topic] += [Message(None, b"%d" % i) for i in range(count)]

    def send_binary(self, topic: str) -> None:
        """Send what a text tool could not: any bytes, empty ones, large ones, odd headers."""
        messages = [
            Message(self._random.randbytes(i), self._random.randbytes(i) * 9) for i in range(40)
        ]
        messages += [
            Message(b"", b""),
            Message(None, None),
            Message(b"large", self._random.randbytes(100_000) * 2),
            Message(b"headers", b"\n| offset: 1", (("", b""), ("same", b"\xff"), ("same", None))),
            Message(b"names", b"\r\n", (("Überschrift", "Wert \N{SNOWMAN}".encode()),)),
        ]
        for compression in CODECS:
            self.send(topic, messages, compression=compression)

    def send_idempotently(self, topic: str) -> None:
        """Send by two producers in turn, more batches of each than a broker remembers."""
        producers = [self._producer({"enable.idempotence": True}) for _ in range(2)]
        for _ in range(8):
            for producer in producers:
                self._send_batch(producer, topic, self.messages(4))

    def send_in_transactions(self, topic: str) -> None:
        """Commit and abort overlapping transactions of two producers, over several segments."""
        one, other = (self._transactional_producer(f"{topic}-{name}") for name in "ab")
        for _ in range(6):
            one.begin_transaction()
            self._send_batch(one, topic, self._updates(8))
            other.begin_transaction()
            self._send_batch(other, topic, self._updates(8))
            self._send_batch(one, topic, self._updates(4))
            other.abort_transaction(TIMEOUT_S)
            one.commit_transaction(TIMEOUT_S)
            one.begin_transaction()
            self._send_batch(one, topic, self._updates(2))
            one.abort_transaction(TIMEOUT_S)

    def leave_transaction_open(self, topic: str, transactional_id: str) -> None:
        """Send in a transaction that has not ended when the node does."""
        producer = self._transactional_producer(transactional_id)
        producer.begin_transaction()
        self._send_batch(producer, topic, self.messages(6))
        self._left_open.append(producer)

    def send_updates(self, topic: str, *, key_prefix: str = "key") -> None:
        """Send keys again and again, each at its own pace, and tombstones.

        What one more producer sent first is all overwritten, so compaction leaves it a batch
        without records; the batches of the other keep some of theirs.
        """

        def update(key: object) -> Message:
            return Message(f"{key_prefix}-{key}".encode(), self._text())

        first, other = (self._producer({"enable.idempotence": True}) for _ in range(2))
        self._send_batch(first, topic, [update(pace) for pace in range(1, 10)])
        for generation in range(100):
            batch = [update(f"short-lived-{generation}")]
            batch += [update(pace) for pace in range(1, 10) if generation % pace == 0]
            if generation % 3 == 0:
                batch.append(Message(f"{key_prefix}-short-lived-{generation - 3}".encode(), None))
            self._send_batch(other, topic, batch)

    def delete_records(self, topic: str, *, before_offset: int) -> None:
        """Have the node move the log start offset."""
        position = self._confluent.TopicPartition(topic, 0, before_offset)
        for deleted in self._admin.delete_records([position]).values():
            deleted.result(TIMEOUT_S)

    def read_everything(self) -> dict[str, TopicData]:
        """Ask the node for all that it serves of every topic."""
        uncommitted, ends = self._read("read_uncommitted")
        committed, stable = self._read("read_committed")
        return {
            topic: TopicData(
                uncommitted[topic],
                committed[topic],
                ends[topic][0],
                stable[topic][1],
                ends[topic][1],
            )
            for topic in self.produced
        }

    def _updates(self, count: int) -> list[Message]:
        return [Message(b"key-%d" % i, self._text()) for i in range(count)]

    def _text(self) -> bytes:
        # Half of it is new and half repeats: compression gains something, but not nearly all.
        return self._random.randbytes(20).hex().encode() * 2

    def _read(
        self, isolation: str
    ) -> tuple[dict[str, list[ServedRecord]], dict[str, tuple[int, int]]]:
        confluent = self._confluent
        consumer = confluent.Consumer(
            self._client_config()
            | {"group.id": "reader", "enable.auto.commit": False, "isolation.level": isolation}
            | {"enable.partition.eof": True}
        )
        partition = confluent.TopicPartition
        ends = {
            topic: consumer.get_watermark_offsets(partition(topic, 0), timeout=TIMEOUT_S)
            for topic in self.produced
        }
        consumer.assign([partition(topic, 0, start) for topic, (start, _) in ends.items()])
        served: dict[str, list[ServedRecord]] = {topic: [] for topic in self.produced}
        unfinished = set(self.produced)
        deadline = time.monotonic() + TIMEOUT_S
        while unfinished:
            assert time.monotonic() < deadline, f"could not read {unfinished}"
            for event in consumer.consume(1000, timeout=1.0):
                if event.error() is None:
                    served[event.topic()].append(_served(event))
                elif event.error().code() == confluent.KafkaError._PARTITION_EOF:
                    # A node that has just started may show nothing of a partition at first.
                    if event.offset() >= ends[event.topic()][1]:
                        unfinished.discard(event.topic())
                else:
                    raise confluent.KafkaException(event.error())
        consumer.close()
        return served, ends

    def _send_batch(
        self, producer: Any, topic: str, messages: Sequence[Message], interval_ms: int = 10
    ) -> None:
        errors: list[Any] = []
        for message in messages:
            self._timestamp_ms += interval_ms
            producer.produce(
                topic,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                partition=0,
                timestamp=self._timestamp_ms,
                on_delivery=lambda error, _: errors.append(error),
            )
        assert producer.flush(TIMEOUT_S) == 0
        assert not any(errors), errors
        self.produced[topic] += messages

    def _producer(self, config: dict[str, Any]) -> Any:
        return self._confluent.Producer(self._client_config() | {"linger.ms": 1000} | config)

    def _transactional_producer(self, transactional_id: str) -> Any:
        producer = self._producer(
            {"transactional.id": f"{transactional_id}-{self._seed}"}
            | {"transaction.timeout.ms": 900_000}
        )
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _client_config(self) -> dict[str, Any]:
        # librdkafka would otherwise write to standard error when the node goes away.
        return {"bootstrap.servers": self.node.bootstrap, "log_level": 0}


def _console_line(message: Message) -> str:
    def text(value: bytes | None) -> str:
        return "NULL" if value is None else value.decode()

    headers = ",".join(f"{name}:{text(value)}" for name, value in message.headers)
    return f"{headers or 'NULL'}\t{text(message.key)}\t{text(message.value)}\n"


def _served(event: Any) -> ServedRecord:
    headers: Iterable[tuple[str, bytes | None]] = event.headers() or ()
    message = Message(event.key(), event.value(), tuple(headers))
    return ServedRecord(event.offset(), event.timestamp()[1], message)
