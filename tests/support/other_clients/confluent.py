"""confluent-kafka (librdkafka, of today) as the conformance tests use it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.other_clients.contract import (
    DEFAULT_SENDING,
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    Consumed,
    Message,
    Sending,
    Setting,
    Start,
    error_name,
    require_package,
)


class ConfluentClient:
    """See `contract.AdminClient`."""

    name = "confluent-kafka"
    sets_timestamps = True
    reports_offsets = True
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._confluent = require_package("confluent_kafka", self.name)
        self._admin_module = require_package("confluent_kafka.admin", self.name)
        # Kept, because a call's outcome is lost with the client that made it.
        self._admin = self._admin_module.AdminClient(self._config())

    # -- producing -------------------------------------------------------------------------------

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        delivered: list[tuple[Any, Any]] = []
        producer = self._confluent.Producer(
            self._config()
            | {
                "compression.type": sending.compression,
                "acks": sending.acks,
                "enable.idempotence": sending.is_idempotent,
                "message.max.bytes": sending.message_bytes_max,
                "message.timeout.ms": int(sending.timeout_s * 1000),
                "linger.ms": 5,
            }
        )
        with self._named_errors():
            for message in messages:
                producer.produce(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=message.partition,
                    on_delivery=lambda error, event: delivered.append((error, event)),
                    **({} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}),
                )
            left = producer.flush(TIMEOUT_S)
        assert left == 0 and len(delivered) == len(messages)
        for error, _ in delivered:
            if error is not None:
                raise self._named(error)
        return [-1 if event.offset() is None else event.offset() for _, event in delivered]

    # -- consuming -------------------------------------------------------------------------------

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        named = {"earliest": self._confluent.OFFSET_BEGINNING, "latest": self._confluent.OFFSET_END}
        offset = start if isinstance(start, int) else named[start]
        found: list[Consumed] = []
        with self._consumer() as consumer, self._named_errors():
            consumer.assign([self._confluent.TopicPartition(topic, partition, offset)])
            deadline = time.monotonic() + TIMEOUT_S
            while time.monotonic() < deadline:
                event = consumer.poll(1.0)
                if event is None:
                    continue
                if event.error() is None:
                    found.append(self._consumed(event))
                elif event.error().code() == self._confluent.KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise self._named(event.error())
        raise TimeoutError(f"the end of {topic} was not reached after {len(found)} records")

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        offset = self.offset_for_time(topic, timestamp_ms, partition)
        return self.consume(topic, "latest" if offset is None else offset, partition)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        wanted = self._confluent.TopicPartition(topic, partition, timestamp_ms)
        with self._consumer() as consumer, self._named_errors():
            [found] = consumer.offsets_for_times([wanted], timeout=TIMEOUT_S)
        if found.error is not None:
            raise self._named(found.error)
        # librdkafka answers with the end where Kafka's protocol has no offset to name.
        return None if found.offset < 0 else int(found.offset)

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        wanted = self._confluent.TopicPartition(topic, partition)
        with self._consumer() as consumer, self._named_errors():
            low, high = consumer.get_watermark_offsets(wanted, timeout=TIMEOUT_S)
        return int(low), int(high)

    # -- administering ---------------------------------------------------------------------------

    def partition_counts(self) -> dict[str, int]:
        with self._named_errors():
            topics = self._admin.list_topics(timeout=TIMEOUT_S).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replicas: int = 1,
        settings: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = self._admin_module.NewTopic(topic, partitions, replicas, config=dict(settings))
        self._settle(self._admin.create_topics([wanted], validate_only=validate_only))

    def delete_topic(self, topic: str) -> None:
        self._settle(self._admin.delete_topics([topic]))

    def grow_topic(self, topic: str, partitions: int) -> None:
        wanted = self._admin_module.NewPartitions(topic, partitions)
        self._settle(self._admin.create_partitions([wanted]))

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings("TOPIC", topic)

    def broker_settings(self, broker_id: int) -> dict[str, Setting]:
        return self._settings("BROKER", str(broker_id))

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        self._alter("TOPIC", topic, settings)

    def alter_broker(self, broker_id: int, settings: Mapping[str, str]) -> None:
        self._alter("BROKER", str(broker_id), settings)

    def reset_broker(self, broker_id: int, settings: Sequence[str]) -> None:
        self._alter("BROKER", str(broker_id), dict.fromkeys(settings))

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> int:
        position = self._confluent.TopicPartition(topic, partition, before_offset)
        return int(self._settle(self._admin.delete_records([position])).low_watermark)

    def broker_ids(self) -> list[int]:
        return sorted(self._admin.list_topics(timeout=TIMEOUT_S).brokers)

    # -- within ----------------------------------------------------------------------------------

    def _settings(self, kind: str, name: str) -> dict[str, Setting]:
        resource = self._admin_module.ConfigResource(
            self._admin_module.ConfigResource.Type[kind], name
        )
        entries = self._settle(self._admin.describe_configs([resource]))
        return {
            entry.name: Setting(entry.value, entry.is_default, entry.is_read_only)
            for entry in entries.values()
        }

    def _alter(self, kind: str, name: str, settings: Mapping[str, str | None]) -> None:
        entry = self._admin_module.ConfigEntry
        operations = self._admin_module.AlterConfigOpType
        resource = self._admin_module.ConfigResource(
            self._admin_module.ConfigResource.Type[kind],
            name,
            incremental_configs=[
                entry(each, value, incremental_operation=operations.SET)
                if value is not None
                else entry(each, None, incremental_operation=operations.DELETE)
                for each, value in settings.items()
            ],
        )
        self._settle(self._admin.incremental_alter_configs([resource]))

    def _settle(self, futures: Mapping[Any, Any]) -> Any:
        [future] = futures.values()
        with self._named_errors():
            return future.result(TIMEOUT_S)

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        # A group's name must be given, but a consumer that assigns and does not commit never joins.
        consumer = self._confluent.Consumer(
            self._config()
            | {
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def _config(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "socket.timeout.ms": int(TIMEOUT_S * 1000),
            "topic.metadata.propagation.max.ms": 2_000,
            "log_level": 0,
        }

    def _consumed(self, event: Any) -> Consumed:
        kind, timestamp_ms = event.timestamp()
        return Consumed(
            event.offset(),
            timestamp_ms,
            kind == self._confluent.TIMESTAMP_LOG_APPEND_TIME,
            event.key(),
            event.value(),
            tuple(event.headers() or ()),
        )

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._confluent.KafkaException as error:
            raise self._named(error.args[0]) from error

    def _named(self, error: Any) -> ClientError:
        # Its own error, for having no reset policy to go by, hides the broker's.
        if error.code() == self._confluent.KafkaError._AUTO_OFFSET_RESET:
            assert "Broker: Offset out of range" in error.str()
            return ClientError("OFFSET_OUT_OF_RANGE", error.str())
        return ClientError(error_name(error.code(), error.name()), error.str())
