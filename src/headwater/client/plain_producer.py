"""`PlainProducer`: writes records in batches, in order, without transactions or deduplication.

    async with PlainProducer(connection, compression=Compression.ZSTD) as producer:
        for line in lines:
            await producer.send("orders", line, key=key_of(line))

`send` only gathers; it waits when the buffer is full. Batches leave when they are full or have
waited for `linger_ms`, one at a time for each partition, so the order of a partition's records is
kept whatever must be repeated. A batch is tried until `delivery_timeout_s` has passed; if its
answer is lost it may be stored twice. `flush` waits for all and raises if any record was not
written, and so does leaving the `async with` block.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from headwater.base.clocks import Clock, SystemClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.cluster_metadata import NO_LEADER
from headwater.client.errors import (
    DeliveryError,
    NoBrokerError,
    UnknownBrokerError,
)
from headwater.client.kafka_errors import LeaderNotAvailableError, MessageTooLargeError
from headwater.client.produce_requests import ACKS_ALL, NO_OFFSET, ProduceRequests
from headwater.client.record_batches import RecordBatch, RecordBatches
from headwater.client.retry import may_retry
from headwater.client.topic_routes import TopicRoutes
from headwater.wire.records import Compression, Header, Record

BATCH_SIZE_BYTES: Final = 256 << 10
BATCH_RECORDS_MAX: Final = 10_000
BUFFER_BYTES: Final = 32 << 20
LINGER_MS: Final = 5
REQUEST_TIMEOUT_S: Final = 30.0
DELIVERY_TIMEOUT_S: Final = 120.0
#: A topic that is created because it was asked for takes a moment to show up.
TOPIC_TIMEOUT_S: Final = 10.0
#: A request of more than 100 MB is refused by every broker, by closing the connection.
RECORD_SIZE_MAX_BYTES: Final = 100_000_000


class Delivery(NamedTuple):
    """The end of a batch: written from `base_offset` on (-1 without acks), or failed."""

    topic_partition: TopicPartition
    records: Sequence[Record]
    base_offset: int
    error: KafkaError | None
    #: Loop times of the first record's arrival, of the last attempt, and of the end.
    opened_s: float
    sent_s: float
    ended_s: float


class PlainProducer:
    """See the module's text. Owned by one task."""

    def __init__(
        self,
        connection: ClusterConnection,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        compression_level: int | None = None,
        batch_size_bytes: int = BATCH_SIZE_BYTES,
        batch_records_max: int = BATCH_RECORDS_MAX,
        linger_ms: float = LINGER_MS,
        buffer_bytes: int = BUFFER_BYTES,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
        topic_timeout_s: float = TOPIC_TIMEOUT_S,
        on_delivery: Callable[[Delivery], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.delivered_count = 0
        self.failed_count = 0
        self._connection = connection
        self._compression = compression
        self._compression_level = compression_level
        self._buffer_bytes = buffer_bytes
        self._delivery_timeout_s = delivery_timeout_s
        self._on_delivery = on_delivery
        self._wall_ms = (clock or SystemClock()).wall_ms
        self._requests = ProduceRequests(
            connection,
            acks=acks,
            timeout_s=request_timeout_s,
            compression=compression,
            compression_level=compression_level,
        )
        self._batches = RecordBatches(
            batch_size_bytes=batch_size_bytes,
            batch_records_max=batch_records_max,
            linger_s=linger_ms / 1000,
        )
        self._routes = TopicRoutes(connection, timeout_s=topic_timeout_s)
        self._stale_topics: set[str] = set()
        self._first_failure: KafkaError | None = None
        self._breakdown: BaseException | None = None
        self._is_flushing = False
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_started = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self.close()

    async def prepare(self, topic: str) -> None:
        """Look a topic up, which `send` would do at its first record."""
        await self._routes.find(topic)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: tuple[Header, ...] = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Take a record to be written; waits while the buffer is full."""
        route = self._routes.get(topic) or await self._routes.find(topic)
        topic_partition = self._routes.choose(route, key, partition)
        if value is not None and len(value) > RECORD_SIZE_MAX_BYTES:
            raise MessageTooLargeError(
                f"A value of {len(value)} bytes is more than any broker accepts in a request."
            )
        while self._batches.buffered_bytes >= self._buffer_bytes:
            await self._wait_for_progress()
        full = self._batches.add(
            topic_partition,
            self._wall_ms() if timestamp_ms is None else timestamp_ms,
            key,
            value,
            headers,
            self._loop.time(),
        )
        self._wake.set()
        if not self._is_started:
            self._is_started = True
            self._start(self._send_batches())
        if full is not None:
            self._routes.batch_ended(full.topic_partition)
            # Encoded here, while the batch before it is on its way. Then others get a turn.
            full.encode(self._compression, self._compression_level)
            await asyncio.sleep(0)

    async def flush(self) -> None:
        """Wait until all is written; raises `DeliveryError` for what was not since the last one."""
        self._is_flushing = True
        self._wake.set()
        try:
            while not self._batches.is_empty:
                await self._wait_for_progress()
        finally:
            self._is_flushing = False
        failure, self._first_failure = self._first_failure, None
        if failure is not None:
            raise DeliveryError(failure.code, str(failure)) from failure

    async def close(self) -> None:
        """Give up on whatever was not written. `flush` first to write it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._batches.abandon()

    # -- sending ---------------------------------------------------------------------------------

    async def _send_batches(self) -> None:
        while True:
            self._wake.clear()
            ready = self._batches.take_ready(self._loop.time(), everything=self._is_flushing)
            if ready:
                self._dispatch(ready)
            if self._stale_topics:
                stale, self._stale_topics = self._stale_topics, set()
                self._start(self._routes.refresh(stale))
            due_s = self._batches.next_due_s(everything=self._is_flushing)
            try:
                async with asyncio.timeout_at(due_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _dispatch(self, batches: list[RecordBatch]) -> None:
        """Start a request for each leader."""
        by_leader: dict[int, list[RecordBatch]] = {}
        for batch in batches:
            self._routes.batch_ended(batch.topic_partition)
            try:
                leader_id = self._connection.metadata.leader_of(*batch.topic_partition)
                if leader_id == NO_LEADER:
                    raise LeaderNotAvailableError(f"{batch.topic_partition} has no leader.")
            except KafkaError as error:
                self._attempt_failed(batch, error)
            else:
                by_leader.setdefault(leader_id, []).append(batch)
        for leader_id, led in by_leader.items():
            self._start(self._send_to(leader_id, led))

    async def _send_to(self, leader_id: int, batches: list[RecordBatch]) -> None:
        for batch, outcome in await self._requests.attempt(leader_id, batches):
            if isinstance(outcome, KafkaError):
                self._attempt_failed(batch, outcome)
            else:
                self._settle(batch, outcome.base_offset, None)
        self._wake.set()

    def _attempt_failed(self, batch: RecordBatch, error: KafkaError) -> None:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._batches.send_in_halves(batch)
            return
        policy, generator = self._connection.policy, self._connection.generator
        retry_s = self._loop.time() + policy.pause_s(batch.attempt_count, generator)
        # What the cluster had a moment ago may be back after a restart.
        is_away = isinstance(error, NoBrokerError | UnknownBrokerError)
        may_pass = is_away or may_retry(error, unknown_topic_is_final=False)
        if may_pass and retry_s < batch.opened_s + self._delivery_timeout_s:
            self._stale_topics.add(batch.topic_partition.topic)
            self._batches.send_again(batch, retry_s)
        else:
            self._settle(batch, NO_OFFSET, error)

    def _settle(self, batch: RecordBatch, base_offset: int, error: KafkaError | None) -> None:
        self._batches.settle(batch)
        if error is None:
            self.delivered_count += len(batch.records)
        else:
            self.failed_count += len(batch.records)
            self._first_failure = self._first_failure or error
        self._progress.set()
        if self._on_delivery is not None:
            self._on_delivery(
                Delivery(
                    batch.topic_partition,
                    batch.records,
                    base_offset,
                    error,
                    batch.opened_s,
                    batch.sent_s,
                    self._loop.time(),
                )
            )

    # -- tasks -----------------------------------------------------------------------------------

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (breakdown := task.exception()) is not None:
            self._breakdown = breakdown
            self._progress.set()

    async def _wait_for_progress(self) -> None:
        """Until some batch has come to an end."""
        self._progress.clear()
        if self._breakdown is None:
            await self._progress.wait()
        if self._breakdown is not None:
            raise self._breakdown
