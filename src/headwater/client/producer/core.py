"""ProducerCore: the machines of one producer, their driver and connection, on one event loop.

Both shells run it: `AsyncProducer` on its caller's loop, `Producer` on a thread of its own. Only
the intake, and through it the accumulator, is called from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.environment import ClientEnvironment
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.given_items import given_seconds, given_topic
from headwater.client.machines.ask import Machine
from headwater.client.machines.driver import Driver
from headwater.client.producer.batches.accumulator import RecordAccumulator
from headwater.client.producer.batches.audit_numbers import AuditNumbers
from headwater.client.producer.batches.delivery_future import done_on_loop
from headwater.client.producer.batches.partition_queue import PartitionQueue
from headwater.client.producer.delayed_records import DelayedRecords
from headwater.client.producer.engines.unwritten_records import UnwrittenRecords
from headwater.client.producer.errors import BufferExhaustedError
from headwater.client.producer.intake.arrow_intake import ArrowIntake
from headwater.client.producer.intake.record_intake import (
    ForMemory,
    ForShare,
    ForTopic,
    ForTurn,
    Wait,
)
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.intake.topic_finder import TopicFinder
from headwater.client.producer.sending.sender import Sender, SenderSettings
from headwater.client.producer.traced_sends import TracedSends, make_intake, make_metrics
from headwater.client.producer.transactions.manager import TransactionManager
from headwater.client.producer.transactions.waiting import Transactions
from headwater.client.settings.connection_settings import make_connection, retry_policy
from headwater.client.settings.producer_settings import (
    acks_of,
    compression_of,
    delivery_timeout_ms,
    is_idempotent,
)
from headwater.wire.messages.api_versions import ApiVersionsResponse

T = TypeVar("T")


class ProducerCore:
    """Made and used on one loop, unless a method says otherwise."""

    def __init__(
        self,
        values: SettingValues,
        options: SendOptions,
        environment: ClientEnvironment,
        *,
        is_threaded: bool,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._max_block_s = values.integer("max.block.ms") / 1000
        generator = environment.generator
        policy = retry_policy(values)
        delivery_timeout_s = delivery_timeout_ms(values) / 1000
        self._connection = make_connection(values, environment)
        metadata = self._connection.metadata
        coordinators = CoordinatorCache()
        self._upkeep = MetadataUpkeep(
            metadata,
            max_age_s=values.integer("metadata.max.age.ms") / 1000,
            policy=policy,
            generator=generator,
            allow_auto_creation=True,
        )
        #: Gives every record an id; None if nobody asked for it.
        self._numbers: AuditNumbers | None = None
        if values.boolean("audit.ids.enable"):
            self._numbers = AuditNumbers(generator, options.interceptors.on_batch_ended)
        self._accumulator = RecordAccumulator(
            batch_size_bytes=values.integer("batch.size"),
            linger_s=values.integer("linger.ms") / 1000,
            buffer_bytes=values.integer("buffer.memory"),
            delivery_timeout_s=delivery_timeout_s,
            numbers=self._numbers,
        )
        self._manager: TransactionManager | None = None
        if is_idempotent(values):
            self._manager = TransactionManager(
                values,
                coordinators=coordinators,
                policy=policy,
                generator=generator,
                api_versions=self._api_versions,
            )
        self._traces = TracedSends.of_settings(values, environment, self._connection)
        self._metrics = make_metrics(self._loop.time(), self._traces)
        compression, compression_level = compression_of(values)
        self._sender = Sender(
            SenderSettings(
                acks=acks_of(values),
                request_timeout_ms=values.integer("request.timeout.ms"),
                delivery_timeout_s=delivery_timeout_s,
                request_bytes_max=values.integer("max.request.size"),
                in_flight_max=values.integer("max.in.flight.requests.per.connection"),
                retries=values.integer("retries"),
                compression=compression,
                compression_level=compression_level,
            ),
            self._accumulator,
            metadata,
            self._upkeep,
            self._manager,
            policy=policy,
            generator=generator,
            metrics=self._metrics,
            on_fatal=self._cannot_go_on,
        )
        machines: list[Machine] = [self._upkeep, self._sender]
        if self._manager is not None:
            machines.insert(1, self._manager)
        self._driver = Driver(self._connection, coordinators, machines)
        self.topics = TopicFinder(
            metadata,
            self._upkeep,
            self._accumulator,
            is_adaptive=values.boolean("partitioner.adaptive.partitioning.enable"),
            generator=generator,
            wake=self._driver.wake,
        )
        self._wake_is_due = False
        self.is_closed = False
        #: The loop's time, from whichever thread.
        self._now_s = self._time_from_thread(environment.clock) if is_threaded else self._loop.time
        wake = self.wake_from_thread if is_threaded else self._driver.wake
        self.intake = make_intake(
            self._traces,
            options,
            self._accumulator,
            self.topics.routes,
            now_s=self._now_s,
            wake=wake,
            on_exhausted=self._note_exhausted,
        )
        self.arrow_intake = ArrowIntake(
            values,
            self.intake,
            self._accumulator,
            self.topics.routes,
            wall_ms=options.wall_ms,
            now_s=self._loop.time,
            wake=self._driver.wake,
            numbers=self._numbers,
        )
        self.delayed_records = DelayedRecords(
            self._connection,
            self.partitions_for,
            timeout_s=self._max_block_s,
            wall_ms=options.wall_ms,
            now_s=self._now_s,
        )
        self.transactions: Transactions | None = None
        if self._manager is not None:
            self._manager.is_flushed = lambda: self._accumulator.is_empty
            self._manager.on_abort = self._sender.fail_waiting
            if self._manager.is_transactional:
                self.intake.set_check(self._check_in_transaction)
                self.transactions = Transactions(
                    self._manager, self._driver.wake, self._max_block_s
                )
        self._add_gauges()
        self._driver.wake()

    # -- time and waking -------------------------------------------------------------------------

    def _time_from_thread(self, clock: Clock) -> Callable[[], float]:
        """The loop's time for other threads: a loop may look at its clock only when it wakes."""
        ahead_s = self._loop.time() - clock.monotonic_ms() / 1000
        return lambda: clock.monotonic_ms() / 1000 + ahead_s

    def wake_from_thread(self) -> None:
        """Have the machines asked soon; from any thread, and cheap if that is due already."""
        if not self._wake_is_due:
            self._wake_is_due = True
            # After the end of the loop there is nobody to be woken.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self._wake_is_due = False
        self._driver.wake()

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic, waited for if it is not known."""
        if given_topic(topic) not in self.topics.routes:
            await self.topics.find(ForTopic(topic, is_known=False), self._max_block_s)
        return list(self._connection.metadata.existing_topic(topic).partitions)

    # -- taking records --------------------------------------------------------------------------

    async def drive(self, steps: Generator[Wait, None, T]) -> T:
        """Wait for what the steps ask for, for up to `max.block.ms` without getting on."""
        deadline_s = self._loop.time() + self._max_block_s
        try:
            wait = next(steps)
            while True:
                try:
                    if isinstance(wait, ForTurn):
                        await asyncio.sleep(0)
                        deadline_s = self._loop.time() + self._max_block_s
                    else:
                        await self._wait(wait, max(0.0, deadline_s - self._loop.time()))
                except Exception as error:
                    steps.throw(error)
                wait = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _wait(self, wait: ForTopic | ForMemory | ForShare, timeout_s: float) -> None:
        if isinstance(wait, ForTopic):
            await self.topics.find(wait, timeout_s)
        elif isinstance(wait, ForShare):
            await self.learn_share(wait, timeout_s)
        else:
            await self._find_memory(wait, timeout_s)

    async def learn_share(self, wait: ForShare, timeout_s: float) -> None:
        """Know which share of a topic's records is traced, or take it for none."""
        if self._traces is not None:
            await self._traces.shares.learn(wait.topic, timeout_s)

    async def _find_memory(self, wait: ForMemory, timeout_s: float) -> None:
        """Wait on the loop until there is memory; raises `BufferExhaustedError`."""
        freed = asyncio.Event()
        tell = freed.set
        began_s = self._loop.time()
        self._accumulator.when_memory(wait.size_bytes, tell)
        self._driver.wake()
        try:
            async with asyncio.timeout(timeout_s):
                await freed.wait()
        except TimeoutError:
            raise self._buffer_exhausted() from None
        finally:
            self._accumulator.forget_waiter(tell)
            self._metrics.add_time("bufferpool-wait-time-ns-total", self._loop.time() - began_s)

    def find_memory_in_thread(self, wait: ForMemory, timeout_s: float) -> None:
        """The same for any other thread than the loop's."""
        freed = threading.Event()
        tell = freed.set
        began_s = self._now_s()
        self._accumulator.when_memory(wait.size_bytes, tell)
        # Now that somebody waits, batches that are not full may go.
        self.wake_from_thread()
        try:
            if not freed.wait(timeout_s):
                raise self._buffer_exhausted()
        finally:
            self._accumulator.forget_waiter(tell)
            self._metrics.add_time("bufferpool-wait-time-ns-total", self._now_s() - began_s)

    def _note_exhausted(self) -> None:
        self._metrics.buffer_exhausted(self._loop.time())

    def _buffer_exhausted(self) -> BufferExhaustedError:
        self._note_exhausted()
        return BufferExhaustedError(
            "buffer.memory was used up for longer than max.block.ms by records that are not "
            "written yet."
        )

    # -- the end ---------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until everything that was sent before is written or has failed."""
        began_s = self._loop.time()
        self._accumulator.begin_flush()
        self._driver.wake()
        try:
            for batch in self._accumulator.unfinished():
                await done_on_loop(batch)
        finally:
            self._accumulator.end_flush()
            self._metrics.add_time("flush-time-ns-total", self._loop.time() - began_s)

    async def flush_for_user(self, timeout_s: float | None) -> None:
        """The same, and raise if the producer is closed or cannot go on."""
        if self.is_closed:
            raise ClientClosedError("The producer is closed.")
        self._check_transactions()
        await self.flush_within(given_seconds(timeout_s))
        self._check_transactions()

    def _check_transactions(self) -> None:
        """Raise what ended a transactional producer."""
        if self.transactions is not None:
            self.transactions.check_goes_on()

    def _cannot_go_on(self, error: KafkaError) -> None:
        self.intake.refuse_all(error)
        self.topics.end(error)
        if self.transactions is not None:
            # Whatever has been written of it is aborted, so nobody has to wait for answers.
            self._sender.fail_all(error)

    async def flush_within(self, timeout_s: float | None) -> None:
        """The same, or `DeadlineError`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.flush()
        except TimeoutError:
            raise DeadlineError(f"Not all records were written within {timeout_s:g} s.") from None

    async def close(self, timeout_s: float | None) -> None:
        """Write what was sent, within that time; what is left then fails."""
        if self.is_closed:
            return
        self.is_closed = True
        closed = ClientClosedError("The producer is closed.")
        self.intake.refuse_all(closed)
        self.topics.end(closed)
        try:
            async with asyncio.timeout(timeout_s):
                if self.transactions is not None:
                    await self.transactions.close()
                await self.flush()
        except TimeoutError:
            pass
        finally:
            error = ClientClosedError("The producer was closed before the record was written.")
            if self._manager is not None:
                self._manager.close(error)
            self._sender.fail_all(error)
            if self._traces is not None:
                await self._traces.close(timeout_s)
            await self._driver.close()
            await self._connection.close()
            self._options.interceptors.close()

    @property
    def is_loop_closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._loop.is_closed()

    def unwritten(self) -> UnwrittenRecords:
        """What is not written by now; from any thread."""
        return UnwrittenRecords(self._accumulator.unfinished())

    # -- the rest --------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        return self._metrics.figures(self._loop.time())

    def _check_in_transaction(self, queue: PartitionQueue) -> None:
        manager = self._manager
        if manager is not None:
            manager.check_may_send(queue.topic_partition)
            manager.note_partition(queue.topic_partition)

    def _api_versions(self) -> ApiVersionsResponse | None:
        channel = self._connection.open_channel(None)
        return None if channel is None else channel.api_versions

    def _add_gauges(self) -> None:
        accumulator = self._accumulator
        gauges: dict[str, Callable[[], float]] = {
            "requests-in-flight": lambda: self._sender.in_flight_count,
            "buffer-total-bytes": lambda: accumulator.buffer_bytes,
            "buffer-available-bytes": lambda: accumulator.available_bytes,
            "waiting-threads": lambda: accumulator.waiter_count,
            "record-drop-total": lambda: self.intake.dropped_count,
        }
        numbers = self._numbers
        if numbers is not None:
            gauges["audit-id-total"] = lambda: numbers.numbered_count
            gauges["audit-acknowledged-total"] = lambda: numbers.acknowledged_count
            gauges["audit-given-up-total"] = lambda: numbers.given_up_count
        for name, read in gauges.items():
            self._metrics.gauge(name, read)
