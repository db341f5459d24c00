"""Interceptors: user code that sees, and may change, every record before it is serialized.

They run in the order in which they were given. One that fails is logged and skipped: measuring and
tracing must never cost a record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headwater.base.errors import KafkaError
from headwater.client.producer.record import ProducerRecord
from headwater.client.producer.record_metadata import RecordMetadata

if TYPE_CHECKING:
    from headwater.client.producer.batches.audit_numbers import EndedBatch

_logger = logging.getLogger(__name__)


class ProducerInterceptor:
    """What an interceptor may do; override what is of interest."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Called in the thread that sends; what is returned goes on instead of the record."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Called for every record, in the sender's thread: be quick."""

    def close(self) -> None:
        """The producer is closed."""


class Interceptors:
    """Calls all of them. Any object with some of the methods will do."""

    def __init__(self, interceptors: Iterable[object]) -> None:
        if not isinstance(interceptors, Iterable):
            raise TypeError(f"interceptors cannot be {interceptors!r}: give a list of them.")
        self._interceptors = list(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        headers = record.headers
        if headers is None or isinstance(headers, Mapping):
            # They need not care about the form in which the user gave them.
            record = record._replace(headers=tuple(headers.items() if headers else ()))
        for interceptor in self._interceptors:
            on_send = getattr(interceptor, "on_send", None)
            if on_send is None:
                continue
            try:
                returned = on_send(record)
            except Exception:
                _logger.exception("%r failed in on_send.", interceptor)
                continue
            if isinstance(returned, ProducerRecord):
                record = returned
            else:
                _logger.error(
                    "%r returned %r from on_send, and not a ProducerRecord: the record goes on as "
                    "it was.",
                    interceptor,
                    returned,
                )
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        for interceptor in self._interceptors:
            on_acknowledgement = getattr(interceptor, "on_acknowledgement", None)
            if on_acknowledgement is None:
                continue
            try:
                on_acknowledgement(metadata, error)
            except Exception:
                _logger.exception("%r failed in on_acknowledgement.", interceptor)

    def on_batch_ended(self, ended: EndedBatch) -> None:
        """Asked with `audit.ids.enable` alone, and of those that count batches."""
        for interceptor in self._interceptors:
            on_batch_ended = getattr(interceptor, "on_batch_ended", None)
            if on_batch_ended is None:
                continue
            try:
                on_batch_ended(ended)
            except Exception:
                _logger.exception("%r failed in on_batch_ended.", interceptor)

    def close(self) -> None:
        for interceptor in self._interceptors:
            close = getattr(interceptor, "close", None)
            if close is None:
                continue
            try:
                close()
            except Exception:
                _logger.exception("%r failed in close.", interceptor)
