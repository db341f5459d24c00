"""aiokafka as the conformance tests use it, an event loop per call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

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

Result = TypeVar("Result")

APPEND_TIME = 1
#: Where a setting comes from, in DescribeConfigs.
DEFAULT_SOURCE = 5


class AiokafkaClient:
    """See `contract.AdminClient`."""

    name = "aiokafka"
    sets_timestamps = True
    reports_offsets = True
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._aiokafka = require_package("aiokafka", self.name)
        self._admin_module = require_package("aiokafka.admin", self.name)
        self._errors = require_package("aiokafka.errors", self.name)

    # -- producing -------------------------------------------------------------------------------

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = DEFAULT_SENDING
    ) -> list[int]:
        async def send() -> list[int]:
            producer = self._aiokafka.AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if sending.compression == "none" else sending.compression,
                acks={-1: "all"}.get(sending.acks, sending.acks),
                enable_idempotence=sending.is_idempotent,
                max_request_size=sending.message_bytes_max,
                request_timeout_ms=int(sending.timeout_s * 1000),
                linger_ms=5,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        value=message.value,
                        key=message.key,
                        headers=list(message.headers),
                        partition=message.partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                # Those that are left when one fails must not go unheard either.
                results: list[Any] = await asyncio.gather(*futures, return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            # Nothing comes back for what nobody acknowledges.
            return [-1 if each is None else each.offset for each in results]

        return self._run(send)

    # -- consuming -------------------------------------------------------------------------------

    def consume(self, topic: str, start: Start, partition: int = 0) -> list[Consumed]:
        place = self._aiokafka.TopicPartition(topic, partition)

        async def read() -> list[Consumed]:
            found: list[Consumed] = []
            async with self._consumer(place) as consumer:
                if start == "earliest":
                    await consumer.seek_to_beginning(place)
                elif start == "latest":
                    await consumer.seek_to_end(place)
                else:
                    consumer.seek(place, start)
                end = (await consumer.end_offsets([place]))[place]
                while True:
                    fetched = await consumer.getmany(place, timeout_ms=200)
                    found += [_consumed(each) for records in fetched.values() for each in records]
                    if await consumer.position(place) >= end:
                        return found

        return self._run(read)

    def consume_since(self, topic: str, timestamp_ms: int, partition: int = 0) -> list[Consumed]:
        offset = self.offset_for_time(topic, timestamp_ms, partition)
        return self.consume(topic, "latest" if offset is None else offset, partition)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        place = self._aiokafka.TopicPartition(topic, partition)

        async def look_up() -> int | None:
            async with self._consumer(place) as consumer:
                found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else int(found.offset)

        return self._run(look_up)

    def end_offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        place = self._aiokafka.TopicPartition(topic, partition)

        async def look_up() -> tuple[int, int]:
            async with self._consumer(place) as consumer:
                low = (await consumer.beginning_offsets([place]))[place]
                return int(low), int((await consumer.end_offsets([place]))[place])

        return self._run(look_up)

    # -- administering ---------------------------------------------------------------------------

    def partition_counts(self) -> dict[str, int]:
        topics = self._administer(lambda admin: admin.describe_topics())
        return {each["topic"]: len(each["partitions"]) for each in topics}

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replicas: int = 1,
        settings: Mapping[str, str] = {},
        validate_only: bool = False,
    ) -> None:
        wanted = self._admin_module.NewTopic(
            topic, partitions, replicas, topic_configs=dict(settings)
        )
        answer = self._administer(
            lambda admin: admin.create_topics([wanted], validate_only=validate_only)
        )
        self._refuse((each[1], each[-1]) for each in answer.topic_errors)

    def delete_topic(self, topic: str) -> None:
        answer = self._administer(lambda admin: admin.delete_topics([topic]))
        self._refuse((code, name) for name, code in answer.topic_error_codes)

    def grow_topic(self, topic: str, partitions: int) -> None:
        wanted = {topic: self._admin_module.NewPartitions(partitions)}
        answer = self._administer(lambda admin: admin.create_partitions(wanted))
        self._refuse((each[1], each[2]) for each in answer.topic_errors)

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings("TOPIC", topic)

    def broker_settings(self, broker_id: int) -> dict[str, Setting]:
        return self._settings("BROKER", str(broker_id))

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        self._alter("TOPIC", topic, settings)

    def alter_broker(self, broker_id: int, settings: Mapping[str, str]) -> None:
        self._alter("BROKER", str(broker_id), settings)

    def reset_broker(self, broker_id: int, settings: Sequence[str]) -> None:
        # It only has the older request, in which what is not named goes back.
        self._alter("BROKER", str(broker_id), {})

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> int:
        place = self._aiokafka.TopicPartition(topic, partition)
        wanted = {place: self._admin_module.RecordsToDelete(before_offset)}
        deleted = self._administer(lambda admin: admin.delete_records(wanted))
        return int(deleted[place])

    def broker_ids(self) -> list[int]:
        cluster = self._administer(lambda admin: admin.describe_cluster())
        return sorted(each["node_id"] for each in cluster["brokers"])

    # -- within ----------------------------------------------------------------------------------

    def _settings(self, kind: str, name: str) -> dict[str, Setting]:
        resource = self._resource(kind, name)
        answers = self._administer(lambda admin: admin.describe_configs([resource]))
        # It asks the brokers for theirs and any of them for topics', so one answer may be empty.
        [(code, text, _, _, entries)] = [each for answer in answers for each in answer.resources]
        self._refuse([(code, text)])
        return {
            entry[0]: Setting(entry[1], entry[3] == DEFAULT_SOURCE, entry[2]) for entry in entries
        }

    def _alter(self, kind: str, name: str, settings: Mapping[str, str]) -> None:
        resource = self._resource(kind, name, dict(settings))
        answers = self._administer(lambda admin: admin.alter_configs([resource]))
        self._refuse((each[0], each[1]) for answer in answers for each in answer.resources)

    def _resource(self, kind: str, name: str, settings: dict[str, str] | None = None) -> Any:
        module = require_package("aiokafka.admin.config_resource", self.name)
        return module.ConfigResource(module.ConfigResourceType[kind], name, settings)

    def _refuse(self, results: Iterable[tuple[int, str | None]]) -> None:
        for code, text in results:
            if code != 0:
                raise ClientError(error_name(code, str(code)), text or "")

    def _administer(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        async def administer() -> Any:
            admin = self._admin_module.AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                return await call(admin)
            finally:
                await admin.close()

        return self._run(administer)

    @asynccontextmanager
    async def _consumer(self, place: Any) -> AsyncIterator[Any]:
        consumer = self._aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        async with consumer:
            consumer.assign([place])
            yield consumer

    def _run(self, call: Callable[[], Awaitable[Result]]) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(TIMEOUT_S):
                return await call()

        try:
            return asyncio.run(bounded())
        except self._errors.KafkaError as error:
            name = type(error).__name__
            raise ClientError(error_name(getattr(error, "errno", -1), name), str(error)) from error


def _consumed(record: Any) -> Consumed:
    return Consumed(
        record.offset,
        record.timestamp,
        record.timestamp_type == APPEND_TIME,
        record.key,
        record.value,
        tuple(record.headers),
    )
