"""AsyncProducer: writes records from an event loop, on which it runs itself, without a thread."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingError
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.environment import HasEnvironment
from headwater.client.errors import ClientClosedError
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.core import ProducerCore
from headwater.client.producer.engines.unwritten_records import records_text
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.intake.delay_request import DelayArguments, read_delay_request
from headwater.client.producer.intake.partitioners import PartitionerLike
from headwater.client.producer.intake.send_options import OnDrop, make_send_options
from headwater.client.producer.intake.serializers import SerializerLike
from headwater.client.producer.intake.wrong_arguments import check_place
from headwater.client.producer.record import HeadersLike, ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.producer.transactions.scope import AsyncTransaction
from headwater.client.producer.transactions.waiting import Transactions
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import (
    PRODUCER_SETTINGS,
    check_producer_settings,
)
from headwater.client.settings.typed import ProducerSettings

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

#: Whoever sends without end lets the sender have its turn after so much, in so many batches: enough
#: of them for a request, which costs little more for several batches than for one.
_TURN_BYTES: Final = 128 << 10
_TURN_BATCHES_MAX: Final = 8

_logger = logging.getLogger(__name__)


class AsyncProducer(HasEnvironment):
    """Writes records, on the caller's event loop. Use it with `async with`, or `start` and `close`.

    Settings have Kafka's names: in the mapping `config` as they are, as keywords with underscores
    for dots. `help(headwater.ProducerSettings)` shows them all, with types and defaults.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        key_serializer: SerializerLike | None = None,
        value_serializer: SerializerLike | None = None,
        partitioner: PartitionerLike | None = None,
        interceptors: Iterable[object] = (),
        spool_dir: object = None,
        on_drop: OnDrop | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        if spool_dir is not None:
            raise SettingError("A spool needs threads: use Producer with spool_dir.")
        self._values = parse_settings(PRODUCER_SETTINGS, config, settings)
        check_producer_settings(self._values)
        self._environment = self._make_environment()
        self._rules = make_send_options(
            self._values,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=interceptors,
            on_drop=on_drop,
            wall_ms=self._environment.clock.wall_ms,
        )
        batch_bytes = max(1, self._values.integer("batch.size"))
        self._turn_batches = min(max(1, _TURN_BYTES // batch_bytes), _TURN_BATCHES_MAX)
        self._core: ProducerCore | None = None

    async def start(self) -> None:
        """Begin to run on the caller's loop; whether the cluster can be reached shows later."""
        if self._core is None:
            self._core = ProducerCore(
                self._values, self._rules, self._environment, is_threaded=False
            )
            name = self._values.text("client.id")
            weakref.finalize(self, _tell_unwritten, self._core, name, os.getpid())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- records ---------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
        **delayed: Unpack[DelayArguments],
    ) -> DeliveryFuture:
        """Take a record to be written, and return once there is room for it.

        Await what is returned to learn where the record was written. Waits for up to `max.block.ms`
        for a topic that is not known yet, and for memory. Headers are a dict or pairs.

        With `delay`, such as "30s", a timedelta or milliseconds, or with `deliver_at`, a datetime
        or milliseconds since 1970, consumers see the record only then; its topic must allow it
        with `delay.mode`. Until then it is known by the `message_id` of what the future tells,
        and by `delay_id` if you give one. From `expire_at` on it is not delivered any more.
        """
        intake = self._running.intake
        if delayed:
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            topic, value, key, partition, headers, timestamp_ms = await self._delayed(
                record, delayed
            )
        try:
            future = intake.offer(topic, value, key, partition, headers, timestamp_ms, on_delivery)
            if future is not None:
                return future
            opened_count = intake.opened_count
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            future = await self._running.drive(intake.steps(record, on_delivery))
        except TypeError:
            check_place(topic, partition)
            raise
        if intake.opened_count // self._turn_batches != opened_count // self._turn_batches:
            # A loop that does nothing but send would never let the sender have its turn.
            await asyncio.sleep(0)
        return future

    async def _delayed(self, record: ProducerRecord, given: DelayArguments) -> ProducerRecord:
        """The record as the cluster wants to have one that is delivered later."""
        check_place(record.topic, record.partition)
        asked = read_delay_request(given, has_timestamp=record.timestamp_ms is not None)
        if asked is None:
            return record
        delayed_records = self._running.delayed_records
        ready = delayed_records.ready(record, asked)
        return await delayed_records.prepare(record, asked) if ready is None else ready

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = (),
        timestamp_ms: int | None = None,
        **delayed: Unpack[DelayArguments],
    ) -> RecordMetadata:
        """Write a record, and return where it was written."""
        return await (
            await self.send(
                topic,
                value,
                key,
                partition=partition,
                headers=headers,
                timestamp_ms=timestamp_ms,
                **delayed,
            )
        )

    async def send_arrow(
        self,
        topic: str,
        batch: pyarrow.RecordBatch | pyarrow.Table,
        *,
        partition: int | None = None,
    ) -> DeliveryGroup:
        """Take all rows of an Arrow batch. Await what is returned to know that all are written.

        The batch has a column `value`, and may have `key`, `timestamp` and `headers`.
        """
        core = self._running
        return await core.drive(core.arrow_intake.steps(topic, batch, partition))

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything that was sent is written or has failed."""
        await self._running.flush_for_user(timeout_s)

    async def close(self, timeout_s: float | None = None) -> None:
        """Write what was sent, for at most that time if one is given. What is left then fails."""
        if self._core is not None:
            await self._core.close(timeout_s)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic. A cluster that creates topics automatically creates it."""
        return await self._running.partitions_for(topic)

    async def metrics(self) -> dict[str, float]:
        """Counters and measurements, by the names that Kafka has for them."""
        return self._running.metrics()

    # -- transactions ----------------------------------------------------------------------------

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Become the only producer of the `transactional.id`. Call it once, before all others."""
        await self._transactions.initialize(keep_prepared)

    async def begin_transaction(self) -> None:
        """Begin a transaction: all that is sent belongs to it until it is committed or aborted."""
        await self._transactions.begin()

    async def commit_transaction(self) -> None:
        """Write what was sent, and have readers see all of the transaction; waits for it."""
        await self._transactions.commit()

    async def abort_transaction(self) -> None:
        """Have readers see nothing of the transaction; waits for it."""
        await self._transactions.abort()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupIdentity
    ) -> None:
        """Commit a group's offsets if, and only if, the transaction is committed."""
        await self._transactions.send_offsets(offsets, group)

    async def prepare_transaction(self) -> PreparedTransactionState:
        """Write all of the transaction, and keep it open until its outcome is decided."""
        return await self._transactions.prepare()

    async def complete_transaction(self, decided: PreparedTransactionState | str) -> None:
        """Commit the prepared transaction if it is the one that was decided on, else abort it."""
        await self._transactions.complete(decided)

    @property
    def prepared_transaction(self) -> PreparedTransactionState:
        """What is prepared at the moment, by this producer or kept from the one before it."""
        return self._transactions.prepared

    def transaction(self) -> AsyncTransaction:
        """For `async with`: commits at its end, or aborts if an exception leaves it."""
        return AsyncTransaction(self)

    # -- waiting ---------------------------------------------------------------------------------

    @property
    def _running(self) -> ProducerCore:
        if self._core is None:
            raise ClientClosedError("The producer is not started: use it with `async with`.")
        return self._core

    @property
    def _transactions(self) -> Transactions:
        transactions = self._running.transactions
        if transactions is None:
            raise SettingError("Transactions need the setting transactional.id.")
        return transactions


def _tell_unwritten(core: ProducerCore, name: str, process_id: int) -> None:
    """The producer was dropped, or the program ends.

    Nobody can wait for it here: what it has is written if its loop goes on for long enough.
    """
    # A forked child has a copy, whose records are the parent's to write.
    if core.is_closed or os.getpid() != process_id:
        return
    if count := core.unwritten().count:
        outlook = "lost" if core.is_loop_closed else "lost if its loop ends before they are written"
        _logger.warning(
            "The AsyncProducer %r was not closed while it had %s to write, which will be %s. Close "
            "it at its end, or use it with `async with`.",
            name,
            records_text(count),
            outlook,
        )
