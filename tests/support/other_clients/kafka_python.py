"""kafka-python as the conformance tests use it."""

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

APPEND_TIME = 1


class KafkaPythonClient:
    """See `contract.AdminClient`."""

    name = "kafka-python"
    sets_timestamps = True
    reports_offsets = True
    sends_null_headers = False

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._kafka = require_package("kafka", self.name)
        self._admin_module = require_package("kafka.admin", self.name)
        self._errors = require_package("kafka.errors", self.name)

    # -- producing -------------------------------------------------------------------------------

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        with (
            self._named_errors(),
            self._kafka.KafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if sending.compression == "none" else sending.compression,
                acks=sending.acks,
                enable_idempotence=sending.is_idempotent,
                max_request_size=sending.message_bytes_max,
                max_block_ms=int(sending.timeout_s * 1000),
                delivery_timeout_ms=int(sending.timeout_s * 1000),
                request_timeout_ms=int(sending.timeout_s * 500),
                linger_ms=5,
            ) as producer,
        ):
            futures = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=message.partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            return [future.get(timeout=TIMEOUT_S).offset for future in futures]

    # -- consuming -------------------------------------------------------------------------------

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        place = self._kafka.TopicPartition(topic, partition)
        found: list[Consumed] = []
        with self._consumer() as consumer:
            consumer.assign([place])
            if start == "earliest":
                consumer.seek_to_beginning(place)
            elif start == "latest":
                consumer.seek_to_end(place)
            else:
                consumer.seek(place, start)
            end = consumer.end_offsets([place])[place]
            deadline = time.monotonic() + TIMEOUT_S
            while consumer.position(place) < end or not isinstance(start, str):
                for records in consumer.poll(timeout_ms=200).values():
                    found += [_consumed(record) for record in records]
                if consumer.position(place) >= end:
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the end of {topic} was not reached: {len(found)} records")
        return found

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        offset = self.offset_for_time(topic, timestamp_ms, partition)
        return self.consume(topic, "latest" if offset is None else offset, partition)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = self._kafka.TopicPartition(topic, partition)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else int(found.offset)

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = self._kafka.TopicPartition(topic, partition)
        with self._consumer() as consumer:
            low = consumer.beginning_offsets([place])[place]
            return int(low), int(consumer.end_offsets([place])[place])

    # -- administering ---------------------------------------------------------------------------

    def partition_counts(self) -> dict[str, int]:
        with self._admin() as admin:
            return {each["name"]: len(each["partitions"]) for each in admin.describe_topics()}

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replicas: int = 1,
        settings: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(settings),
        }
        with self._admin() as admin:
            admin.create_topics({topic: wanted}, validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        with self._admin() as admin:
            admin.delete_topics([topic])

    def grow_topic(self, topic: str, partitions: int) -> None:
        with self._admin() as admin:
            admin.create_partitions({topic: partitions})

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings("TOPIC", topic)

    def broker_settings(self, broker_id: int) -> dict[str, Setting]:
        return self._settings("BROKER", str(broker_id))

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        self._alter("TOPIC", topic, settings)

    def alter_broker(self, broker_id: int, settings: Mapping[str, str]) -> None:
        self._alter("BROKER", str(broker_id), settings)

    def reset_broker(self, broker_id: int, settings: Sequence[str]) -> None:
        resource = self._admin_module.ConfigResource("BROKER", str(broker_id), list(settings))
        with self._admin() as admin:
            admin.reset_configs([resource])

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> int:
        place = self._kafka.TopicPartition(topic, partition)
        with self._admin() as admin:
            return int(admin.delete_records({place: before_offset})[place]["low_watermark"])

    def broker_ids(self) -> list[int]:
        with self._admin() as admin:
            return sorted(each["broker_id"] for each in admin.describe_cluster()["brokers"])

    # -- within ----------------------------------------------------------------------------------

    def _settings(self, kind: str, name: str) -> dict[str, Setting]:
        resource = self._admin_module.ConfigResource(kind, name)
        with self._admin() as admin:
            described = admin.describe_configs([resource], config_filter="all")
        entries = described[kind.lower()][name]
        return {
            each: Setting(
                entry["value"], entry["config_source"] == "DEFAULT_CONFIG", entry["read_only"]
            )
            for each, entry in entries.items()
        }

    def _alter(self, kind: str, name: str, settings: Mapping[str, str]) -> None:
        resource = self._admin_module.ConfigResource(kind, name, dict(settings))
        with self._admin() as admin:
            # Names that it does not know are for the broker to refuse.
            results = admin.alter_configs([resource], raise_on_unknown=False)
        result = results[kind.lower()][name]
        if result != "OK":
            # What is left of the error is its text: "[Error 40] InvalidConfigurationError: ...".
            code = int(result.removeprefix("[Error ").partition("]")[0])
            raise ClientError(error_name(code, "unknown"), result)

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        with self._named_errors():
            admin = self._admin_module.KafkaAdminClient(
                bootstrap_servers=self._bootstrap, request_timeout_ms=int(TIMEOUT_S * 1000)
            )
            try:
                yield admin
            finally:
                admin.close()

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        with self._named_errors():
            consumer = self._kafka.KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                fetch_max_wait_ms=FETCH_WAIT_MS,
                allow_auto_create_topics=False,
            )
            try:
                yield consumer
            finally:
                consumer.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors.KafkaError as error:
            name = type(error).__name__
            raise ClientError(error_name(getattr(error, "errno", -1), name), str(error)) from error
        except ValueError as error:
            # It refuses some things without asking the broker.
            raise ClientError("-ValueError", str(error)) from error


def _consumed(record: Any) -> Consumed:
    return Consumed(
        record.offset,
        record.timestamp,
        record.timestamp_type == APPEND_TIME,
        record.key,
        record.value,
        tuple(record.headers),
    )
