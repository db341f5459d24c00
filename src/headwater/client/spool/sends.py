"""The part of a producer that puts records into a spool instead of into memory.

`Producer(spool_dir=...)` hands its records here after interceptors and serializers have run. They
are in the spool, as durable as `spool.fsync` says, before `send` returns; a `Shipper` sends them
through an ordinary producer whenever the cluster answers, and then their futures are completed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.base.clocks import Clock, SystemClock
from headwater.base.errors import KafkaError
from headwater.base.setting_values import SettingValues
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.engines.open_producers import WRITING_SHARE
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata
from headwater.client.spool.errors import SpoolFullError
from headwater.client.spool.files.record import SpooledRecord
from headwater.client.spool.outcome import Outcome, SpooledOutcome, SpooledOutcomes
from headwater.client.spool.shipping.producer import SHIPPING_SETTINGS, ShippingProducer
from headwater.client.spool.shipping.shipper import Shipper
from headwater.client.spool.spool import FsyncPolicy, Spool
from headwater.wire.records import Header

_DROP = "drop"

_logger = logging.getLogger(__name__)


class SpooledSends:
    """Opens the spool and begins to ship what an earlier process left in it."""

    def __init__(
        self,
        spool_dir: str,
        values: SettingValues,
        *,
        make_producer: Callable[[Mapping[str, object]], ShippingProducer],
        on_drop: Callable[..., object] | None = None,
        on_acknowledged: OnDelivery | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._on_drop = on_drop
        self._on_acknowledged = on_acknowledged
        self._drops = values.text("buffer.full.policy") == _DROP
        self._block_s = 0.0 if self._drops else values.integer("max.block.ms") / 1000
        self._close_timeout_s = values.integer("delivery.timeout.ms") / 1000
        self._dropped_count = 0
        self._is_closed = False
        self._count_lock = threading.Lock()
        self._outcomes = SpooledOutcomes()
        self._spool = Spool(
            spool_dir,
            fsync=FsyncPolicy(values.text("spool.fsync")),
            fsync_interval_ms=values.integer("spool.fsync.interval.ms"),
            max_bytes=values.integer("spool.max.bytes"),
            segment_bytes=values.integer("spool.segment.bytes"),
            clock=self._clock,
        )
        self._shipper = Shipper(
            self._spool,
            lambda: make_producer(SHIPPING_SETTINGS),
            self._note_outcome,
            window_records=values.integer("spool.window.records"),
            patience_ms=values.integer("max.block.ms"),
            memory_ms=values.integer("metadata.max.age.ms"),
            policy=RetryPolicy(
                values.integer("retry.backoff.ms"), values.integer("retry.backoff.max.ms")
            ),
            clock=self._clock,
        )
        try:
            self._shipper.start()
        except BaseException:
            self._spool.close()
            raise

    def append(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        timestamp_ms: int,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Take a record; it is in the spool when this returns."""
        record = SpooledRecord(topic, partition, key, value, headers, timestamp_ms)
        outcome = SpooledOutcome(topic, partition, self._outcomes)
        future = DeliveryFuture(outcome, 0)
        try:
            self._spool.append(
                record,
                timeout_s=self._block_s,
                register=lambda number: self._outcomes.add(number, outcome, on_delivery),
            )
        except SpoolFullError as error:
            if not self._drops:
                raise
            self._drop(record, outcome, on_delivery, error)
        return future

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until all that is in the spool by now has been delivered."""
        self._shipper.wait_shipped(self._spool.next_number, timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Ship what can be shipped in that time; the next producer here sends the rest."""
        if self._is_closed:
            return
        self._is_closed = True
        wait_s = self._close_timeout_s if timeout_s is None else timeout_s
        try:
            if wait_s > 0:
                self.flush(wait_s)
        except DeadlineError as error:
            _logger.warning("%s", error)
        finally:
            self._shipper.stop()
            self._end()

    def leave(self, timeout_s: float) -> str:
        """The program ends: close within that time, or leave the spool as a crash would.

        Returns how much stays in it, in a sentence, or nothing.
        """
        self._is_closed = True
        deadline_ms = self._clock.monotonic_ms() + timeout_s * 1000
        left = ""
        try:
            self.flush(timeout_s * WRITING_SHARE)
        except DeadlineError as error:
            left = str(error)
        if self._shipper.stop(max(0.0, (deadline_ms - self._clock.monotonic_ms()) / 1000)):
            self._end()
        return left

    def _end(self) -> None:
        self._spool.close()
        self._outcomes.complete_all(
            ClientClosedError(
                f"The producer was closed; the record stays in the spool"
                f" {self._spool.directory}, and the next producer on it sends it."
            )
        )

    def metrics(self) -> dict[str, float]:
        shipper, spool = self._shipper, self._spool
        return {
            **shipper.producer_metrics(),
            "spool-size-bytes": float(spool.size_bytes),
            "spool-waiting-records": float(spool.next_number - shipper.settled_number),
            "spool-delivered-total": float(shipper.delivered_count),
            "spool-refused-total": float(shipper.refused_count),
            "spool-damaged-total": float(shipper.damaged_count),
            "spool-dropped-total": float(self._dropped_count),
        }

    def _drop(
        self,
        record: SpooledRecord,
        outcome: SpooledOutcome,
        on_delivery: OnDelivery | None,
        error: KafkaError,
    ) -> None:
        with self._count_lock:
            self._dropped_count += 1
        outcome.complete(error)
        self._call(on_delivery, None, error)
        self._call(self._on_acknowledged, None, error)
        self._call(self._on_drop, record.topic, record.key, record.value)

    def _note_outcome(self, number: int, outcome: Outcome) -> None:
        self._outcomes.complete(number, outcome)
        if self._on_acknowledged is None:
            return
        if isinstance(outcome, RecordMetadata):
            self._call(self._on_acknowledged, outcome, None)
        else:
            self._call(self._on_acknowledged, None, outcome)

    def _call(self, function: Callable[..., object] | None, *arguments: Any) -> None:
        if function is None:
            return
        try:
            function(*arguments)
        except Exception:
            _logger.exception("A callback of the producer failed.")
