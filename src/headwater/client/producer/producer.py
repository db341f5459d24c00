"""Producer: writes records from any thread; a thread of its own talks to the cluster.

`send` runs interceptors, serializers and the partitioner in the caller's thread and puts the record
into the accumulator; everything else happens on the background loop.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingError
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.environment import ClientEnvironment, HasEnvironment
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.engines.open_producers import OPEN_PRODUCERS
from headwater.client.producer.engines.threaded import ThreadedEngine
from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.client.producer.intake.delay_request import DelayArguments, read_delay_request
from headwater.client.producer.intake.partitioners import PartitionerLike
from headwater.client.producer.intake.record_intake import Offer
from headwater.client.producer.intake.send_options import OnDrop, make_send_options
from headwater.client.producer.intake.serializers import SerializerLike
from headwater.client.producer.intake.wrong_arguments import check_place
from headwater.client.producer.record import HeadersLike, ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery
from headwater.client.producer.transactions.scope import SyncTransaction
from headwater.client.producer.transactions.waiting import Transactions
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.producer_settings import (
    PRODUCER_SETTINGS,
    check_producer_settings,
)
from headwater.client.settings.typed import ProducerSettings

if TYPE_CHECKING:
    import pyarrow

    from headwater.client.producer.engines.spooled import SpooledEngine


class Producer(HasEnvironment):
    """Writes records, from any thread. Use it with `with`, or call `close` at the end.

    Settings have Kafka's names: in the mapping `config` as they are, as keywords with underscores
    for dots. `help(headwater.ProducerSettings)` shows them all, with types and defaults.
    With `spool_dir` records go to disk first, and survive this process.
    """

    #: Whether the end of the program waits for it, if nobody has closed it.
    _is_awaited = True

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        key_serializer: SerializerLike | None = None,
        value_serializer: SerializerLike | None = None,
        partitioner: PartitionerLike | None = None,
        interceptors: Iterable[object] = (),
        spool_dir: str | os.PathLike[str] | None = None,
        on_drop: OnDrop | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        values = parse_settings(PRODUCER_SETTINGS, config, settings)
        check_producer_settings(values)
        environment = self._make_environment()
        options = make_send_options(
            values,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partitioner=partitioner,
            interceptors=interceptors,
            on_drop=on_drop,
            wall_ms=environment.clock.wall_ms,
        )
        self._offer: Offer = _offer_nothing
        self._threaded: ThreadedEngine | None = None
        self._engine: ThreadedEngine | SpooledEngine
        if spool_dir is None:
            self._engine = self._threaded = ThreadedEngine(values, options, environment)
            self._offer = self._threaded.offer
        else:
            if not isinstance(spool_dir, str | os.PathLike):
                raise TypeError(f"spool_dir cannot be {spool_dir!r}: it must be a path.")
            from headwater.client.producer.engines.spooled import SpooledEngine

            def make_producer(overrides: Mapping[str, object]) -> Producer:
                named = {name.replace("_", "."): value for name, value in settings.items()}
                return _SpoolsProducer(
                    {**(config or {}), **named, **overrides}, partitioner, environment
                )

            self._engine = SpooledEngine(
                spool_dir, values, options, environment.clock, make_producer
            )

        if self._is_awaited:
            OPEN_PRODUCERS.add(self._engine)
            dropped = weakref.finalize(self, OPEN_PRODUCERS.drop, self._engine)
            dropped.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- records ---------------------------------------------------------------------------------

    def send(
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
        """Take a record to be written; the future tells where it was written.

        Waits for up to `max.block.ms` for a topic that is not known yet, and for memory. Headers
        are a dict or pairs. `on_delivery(metadata, error)` is called by the thread that talks to
        the cluster, and should be quick.

        With `delay`, such as "30s", a timedelta or milliseconds, or with `deliver_at`, a datetime
        or milliseconds since 1970, consumers see the record only then; its topic must allow it
        with `delay.mode`. Until then it is known by `future.result().message_id`, and by
        `delay_id` if you give one. From `expire_at` on it is not delivered any more.
        """
        if delayed:
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            topic, value, key, partition, headers, timestamp_ms = self._delayed(record, delayed)
        try:
            future = self._offer(topic, value, key, partition, headers, timestamp_ms, on_delivery)
            if future is not None:
                return future
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            return self._engine.send(record, on_delivery)
        except TypeError:
            check_place(topic, partition)
            raise

    def _delayed(self, record: ProducerRecord, given: DelayArguments) -> ProducerRecord:
        """The record as the cluster wants to have one that is delivered later."""
        check_place(record.topic, record.partition)
        asked = read_delay_request(given, has_timestamp=record.timestamp_ms is not None)
        if asked is None:
            return record
        engine = self._without_spool
        delayed_records = engine.core.delayed_records
        ready = delayed_records.ready(record, asked)
        return engine.run(delayed_records.prepare(record, asked)) if ready is None else ready

    def send_arrow(
        self,
        topic: str,
        batch: pyarrow.RecordBatch | pyarrow.Table,
        *,
        partition: int | None = None,
    ) -> DeliveryGroup:
        """Take all rows of an Arrow batch. What is returned tells when all are written.

        The batch has a column `value`, and may have `key`, `timestamp` and `headers`.
        """
        return self._without_spool.send_arrow(topic, batch, partition)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything that was sent is written or has failed."""
        self._engine.flush(timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Write what was sent, for at most that time if one is given. What is left then fails."""
        try:
            self._engine.close(timeout_s)
        finally:
            OPEN_PRODUCERS.discard(self._engine)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic. A cluster that creates topics automatically creates it."""
        engine = self._without_spool
        return engine.run(engine.core.partitions_for(topic))

    def metrics(self) -> dict[str, float]:
        """Counters and measurements, by the names that Kafka has for them."""
        return self._engine.metrics()

    # -- transactions ----------------------------------------------------------------------------

    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Become the only producer of the `transactional.id`. Call it once, before all others."""
        self._without_spool.run(self._transactions.initialize(keep_prepared))

    def begin_transaction(self) -> None:
        """Begin a transaction: all that is sent belongs to it until it is committed or aborted."""
        self._without_spool.run(self._transactions.begin())

    def commit_transaction(self) -> None:
        """Write what was sent, and have readers see all of the transaction; waits for it."""
        self._without_spool.run(self._transactions.commit())

    def abort_transaction(self) -> None:
        """Have readers see nothing of the transaction; waits for it."""
        self._without_spool.run(self._transactions.abort())

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupIdentity
    ) -> None:
        """Commit a group's offsets if, and only if, the transaction is committed."""
        self._without_spool.run(self._transactions.send_offsets(offsets, group))

    def prepare_transaction(self) -> PreparedTransactionState:
        """Write all of the transaction, and keep it open until its outcome is decided."""
        return self._without_spool.run(self._transactions.prepare())

    def complete_transaction(self, decided: PreparedTransactionState | str) -> None:
        """Commit the prepared transaction if it is the one that was decided on, else abort it."""
        self._without_spool.run(self._transactions.complete(decided))

    @property
    def prepared_transaction(self) -> PreparedTransactionState:
        """What is prepared at the moment, by this producer or kept from the one before it."""
        return self._transactions.prepared

    def transaction(self) -> SyncTransaction:
        """For `with`: commits at its end, or aborts if an exception leaves it."""
        return SyncTransaction(self)

    @property
    def _without_spool(self) -> ThreadedEngine:
        if self._threaded is None:
            raise SettingError(
                "A producer with a spool_dir has no transactions, no delays, no send_arrow() and "
                "no partitions_for()."
            )
        return self._threaded

    @property
    def _transactions(self) -> Transactions:
        return self._without_spool.transactions


class _SpoolsProducer(Producer):
    """What ships a spool's records. They are on disk, and the spool closes it."""

    _is_awaited = False

    def __init__(
        self,
        config: Mapping[str, object],
        partitioner: PartitionerLike | None,
        environment: ClientEnvironment,
    ) -> None:
        self._given_environment = environment
        super().__init__(config, partitioner=partitioner)


def _offer_nothing(*_: object) -> None:
    """Every record for a spool takes the long way."""
