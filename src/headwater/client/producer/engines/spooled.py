"""A producer whose records go to disk first: interceptors and serializers, then the spool.

The partitioner runs when a record is shipped, in the ordinary producer that the spool has for it,
so that records are taken while no broker can be reached.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import validate_topic_name
from headwater.base.settings import SettingError, SettingValues
from headwater.client.errors import ClientClosedError
from headwater.client.given_items import given_seconds
from headwater.client.machines.background_loop import forked_error
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.engines.open_producers import WaitForExit
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.intake.serialized_record import TIMESTAMP_MAX
from headwater.client.producer.intake.serializers import checked_headers
from headwater.client.producer.intake.wrong_arguments import check_place, wrong_timestamp
from headwater.client.producer.record import ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery
from headwater.client.spool.sends import SpooledSends
from headwater.client.spool.shipping.producer import ShippingProducer


class SpooledEngine:
    def __init__(
        self,
        spool_dir: str | os.PathLike[str],
        values: SettingValues,
        options: SendOptions,
        clock: Clock,
        make_producer: Callable[[Mapping[str, object]], ShippingProducer],
    ) -> None:
        if values.optional_text("transactional.id") is not None:
            raise SettingError("A producer with a spool_dir cannot have a transactional.id.")
        self.name = f"The producer on the spool {os.fspath(spool_dir)}"
        self.exit_flush_s = values.integer("exit.flush.timeout.ms") / 1000
        self._is_forked = False
        self._is_closed = False
        self._options = options
        interceptors = options.interceptors
        self._spool = SpooledSends(
            os.fspath(spool_dir),
            values,
            make_producer=make_producer,
            on_drop=options.on_drop,
            on_acknowledged=interceptors.on_acknowledgement if interceptors else None,
            clock=clock,
        )

    def send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> DeliveryFuture:
        """Take a record; it is on disk, as `spool.fsync` wants it, when this returns."""
        self._check_open()
        options = self._options
        if options.interceptors:
            record = options.interceptors.on_send(record)
        try:
            check_place(record.topic, record.partition)
            validate_topic_name(record.topic)
            key = options.serialize_key(record.topic, record.key)
            value = options.serialize_value(record.topic, record.value)
            timestamp_ms = options.wall_ms() if record.timestamp_ms is None else record.timestamp_ms
            if type(timestamp_ms) is not int or not 0 <= timestamp_ms <= TIMESTAMP_MAX:
                raise wrong_timestamp(timestamp_ms)
            return self._spool.append(
                record.topic,
                record.partition,
                key,
                value,
                checked_headers(record.headers),
                timestamp_ms,
                on_delivery,
            )
        except KafkaError as error:
            options.interceptors.on_acknowledgement(None, error)
            raise

    def flush(self, timeout_s: float | None) -> None:
        self._check_open()
        self._spool.flush(given_seconds(timeout_s))

    def _check_open(self) -> None:
        if self._is_forked:
            raise forked_error()
        if self._is_closed:
            raise ClientClosedError("The producer is closed.")

    def metrics(self) -> dict[str, float]:
        return self._spool.metrics()

    def close(self, timeout_s: float | None) -> None:
        if not self._is_forked:
            self._is_closed = True
            self._spool.close(timeout_s)
            self._options.interceptors.close()

    # -- if nobody closes it, see `open_producers` -----------------------------------------------

    def begin_exit(self) -> WaitForExit:
        # It ships by itself, and nothing is lost: the records are on disk.
        return self._spool.leave

    def drop(self) -> None:
        """It goes on shipping until the program ends."""

    def forked(self) -> None:
        """The files are the parent's to write."""
        self._is_forked = True
