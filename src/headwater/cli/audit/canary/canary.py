"""The canary on a cluster: its topic, its producer and its reader.

Each broker leads a partition, and so gets records; a reader without a group reads them all. When a
leader is away, or a broker comes or goes, the other partitions go on. What went wrong is said once,
on standard error, and tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.audit.canary.layout import Place, assignments_for, min_in_sync, to_elect
from headwater.cli.audit.canary.ledger import CanaryLedger
from headwater.client.admin import AdminOperations, NewTopic, OffsetTime
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.errors import DeadlineError, UnknownTopicError
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata

#: How often it is looked who leads, and which brokers there are.
_LOOK_S: Final = 2.0
_POLL_S: Final = 0.2
_POSITION_S: Final = 1.0
_RETENTION_MS: Final = 3_600_000
_SEGMENT_BYTES: Final = 16 << 20
#: A record that was not written in this time has failed.
_DELIVERY_MS: Final = 30_000
_REQUEST_MS: Final = 10_000


class CanaryOptions(NamedTuple):
    topic: str
    interval_s: float
    #: Rounds of records; None for no end.
    round_count: int | None
    #: How long records are sent; None for no end.
    for_s: float | None
    #: How long to wait in the end for what is under way.
    wait_s: float


class Canary:
    """Use it with `async with`; `run` sends and reads until its options say that it is enough."""

    def __init__(
        self,
        connection: ClusterConnection,
        servers: str,
        options: CanaryOptions,
        warn: Callable[[str], None],
    ) -> None:
        self.ledger = CanaryLedger()
        self._admin = AdminOperations(connection)
        self._options = options
        self._warn = warn
        self._trouble = ""
        self._is_closing = False
        self._run = uuid.uuid4().hex
        #: Who leads the partitions that are read, or should.
        self._leaders: dict[int, int] = {}
        self._producer = AsyncProducer(
            bootstrap_servers=servers,
            linger_ms=0,
            max_block_ms=_REQUEST_MS,
            request_timeout_ms=_REQUEST_MS,
            delivery_timeout_ms=_DELIVERY_MS,
        )
        self._consumer = AsyncConsumer(
            bootstrap_servers=servers,
            enable_auto_commit=False,
            request_timeout_ms=_REQUEST_MS,
            # What is gone from the front is gone: never jump over what is there.
            auto_offset_reset="earliest",
        )

    async def __aenter__(self) -> Self:
        await self._producer.start()
        await self._consumer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._consumer.close()
        # What is not written by now nobody waits for, and hears no more of.
        self._is_closing = True
        await self._producer.close(0)

    # -- the topic -------------------------------------------------------------------------------

    async def look(self) -> None:
        """See to the topic, and learn who leads what. Raises `KafkaError`."""
        topic = self._options.topic
        cluster = await self._admin.describe_cluster()
        brokers = [node.broker_id for node in cluster.brokers]
        for broker_id in brokers:
            self.ledger.knows(broker_id)
        places = await self._places()
        missing = assignments_for(brokers, places)
        if not places:
            await self._create(missing, min_in_sync(brokers))
        elif missing:
            await self._admin.create_partitions(
                {topic: len(places) + len(missing)}, assignments={topic: missing}
            )
        if missing:
            places = await self._places()
        wrong = [TopicPartition(topic, number) for number in to_elect(brokers, places)]
        if wrong:
            # Brokers do it by themselves too, if later; and one that cannot stays as it is.
            await self._admin.elect_leaders(wrong, raise_errors=False)
            places = await self._places()
        self._leaders = {each.partition: each.leader_id for each in places}
        await self._read_also(list(self._leaders))

    async def _places(self) -> list[Place]:
        topic = self._options.topic
        found = (await self._admin.describe_topics([topic]))[topic]
        if isinstance(found, UnknownTopicError):
            return []
        if isinstance(found, KafkaError):
            raise found
        return [
            Place(each.partition, each.leader_id, each.replicas, each.isr)
            for each in found.partitions
        ]

    async def _create(self, assignments: list[list[int]], min_isr: int) -> None:
        new = NewTopic(
            self._options.topic,
            assignments=dict(enumerate(assignments)),
            configs={
                "retention.ms": _RETENTION_MS,
                "segment.bytes": _SEGMENT_BYTES,
                "min.insync.replicas": min_isr,
            },
        )
        try:
            await self._admin.create_topics([new])
        except KafkaError as error:
            # Another canary was quicker.
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _read_also(self, numbers: list[int]) -> None:
        """Read on at the end of partitions that are not read yet; one without a leader waits."""
        topic = self._options.topic
        known = self._consumer.assignment()
        new = {
            TopicPartition(topic, number)
            for number in numbers
            if TopicPartition(topic, number) not in known and self._leaders[number] >= 0
        }
        if not new:
            return
        ends = await self._admin.list_offsets(dict.fromkeys(new, OffsetTime.LATEST))
        found = {key: each for key, each in ends.items() if not isinstance(each, KafkaError)}
        self._consumer.assign(known | set(found))
        for key, end in found.items():
            self._consumer.seek(key, end.offset)

    # -- records ---------------------------------------------------------------------------------

    async def send_round(self) -> None:
        """A record to each partition that is read."""
        for number, broker_id in sorted(self._leaders.items()):
            if TopicPartition(self._options.topic, number) in self._consumer.assignment():
                await self._send(number, broker_id)

    async def _send(self, partition: int, broker_id: int) -> None:
        number = self.ledger.sending(partition, broker_id, time.monotonic())
        if number is None:
            return
        value = {"run": self._run, "number": number, "time": time.time_ns() // 1_000_000}
        try:
            await self._producer.send(
                self._options.topic,
                json.dumps(value).encode(),
                partition=partition,
                on_delivery=self._told(partition, number),
            )
        except KafkaError as error:
            self.ledger.failed(partition, number)
            self._say(error)

    def _told(self, partition: int, number: int) -> OnDelivery:
        def note(written: RecordMetadata | None, error: KafkaError | None) -> None:
            if written is not None:
                self.ledger.acknowledged(partition, number, written.offset)
            elif error is not None:
                self.ledger.failed(partition, number)
                self._say(error)

        return note

    async def read(self) -> None:
        """What has come by now, or comes in a moment."""
        for record in await self._consumer.poll(_POLL_S):
            number = self._number(record.value)
            if number is not None:
                self.ledger.came(record.partition, record.offset, number, time.monotonic())
        for partition in list(self.ledger.waiting_partitions()):
            key = TopicPartition(self._options.topic, partition)
            with contextlib.suppress(DeadlineError):  # Looked for: it comes back to it.
                position = await self._consumer.position(key, _POSITION_S)
                self.ledger.passed(partition, position)

    def _number(self, value: bytes | None) -> int | None:
        """Which record of this run it is; None if it is none of them."""
        try:
            fields = json.loads(value or b"")
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("run") != self._run:
            return None
        number = fields.get("number")
        return number if type(number) is int else None

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send and read; raises `KafkaError` if it cannot even begin."""
        await self.look()
        reading = asyncio.ensure_future(self._again(self.read, 0))
        looking = asyncio.ensure_future(self._again(self.look, _LOOK_S))
        try:
            await self._send_all()
            await self._wait_for_all()
        finally:
            reading.cancel()
            looking.cancel()
            await asyncio.wait({reading, looking})

    async def _again(self, work: Callable[[], Awaitable[None]], pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            try:
                await work()
            except KafkaError as error:
                self._say(error)
                await asyncio.sleep(_POLL_S)

    async def _send_all(self) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        begun_s = loop.time()
        rounds = 0
        while options.round_count is None or rounds < options.round_count:
            due_s = begun_s + rounds * options.interval_s
            if options.for_s is not None and due_s - begun_s >= options.for_s:
                break
            if due_s > loop.time():
                await asyncio.sleep(due_s - loop.time())
            await self.send_round()
            rounds += 1

    async def _wait_for_all(self) -> None:
        end_s = asyncio.get_running_loop().time() + self._options.wait_s
        while self.ledger.outstanding_count and asyncio.get_running_loop().time() < end_s:
            await asyncio.sleep(_POLL_S / 4)

    def _say(self, error: KafkaError) -> None:
        """Each trouble once in a row."""
        if not self._is_closing and str(error) != self._trouble:
            self._trouble = str(error)
            self._warn(str(error))
