"""Calls a consumer's interceptors, in the order in which they were given.

One that fails is logged and passed over: what only looks on must not cost records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.record import ConsumerRecord

_logger = logging.getLogger("headwater.client")


class Interceptors:
    """Any object with some of the methods of `ConsumerInterceptor` will do."""

    def __init__(self, interceptors: Iterable[object]) -> None:
        if not isinstance(interceptors, Iterable):
            raise TypeError(f"interceptors cannot be {interceptors!r}: give a list of them.")
        self._interceptors = list(interceptors)

    def with_first(self, interceptor: object | None) -> Interceptors:
        """These, and another in front of them if there is one."""
        if interceptor is None:
            return self
        return Interceptors([interceptor, *self._interceptors])

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for interceptor in self._interceptors:
            on_consume = getattr(interceptor, "on_consume", None)
            if on_consume is not None:
                try:
                    records = _returned(interceptor, on_consume(records), records)
                except Exception:
                    _logger.exception("%r failed in on_consume.", interceptor)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._interceptors:
            on_commit = getattr(interceptor, "on_commit", None)
            if on_commit is not None:
                try:
                    on_commit(offsets)
                except Exception:
                    _logger.exception("%r failed in on_commit.", interceptor)

    def close(self) -> None:
        for interceptor in self._interceptors:
            close = getattr(interceptor, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:
                    _logger.exception("%r failed in close.", interceptor)


def _returned(
    interceptor: object, returned: object, records: list[ConsumerRecord]
) -> list[ConsumerRecord]:
    """What goes on: one that forgets to return something must not cost records."""
    if isinstance(returned, list):
        return returned
    _logger.error(
        "%r returned %r from on_consume, and not a list: the records go on as they were.",
        interceptor,
        returned,
    )
    return records
