"""What becomes of spooled records, for those who asked while this process took them.

A broker may be away for a day while a process goes on spooling, so an outcome is kept only as long
as somebody can still see it: a future that its caller dropped costs nothing, unless it has a
callback. Records that an earlier process took are shipped without anybody to tell.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.producer.record_metadata import OnDelivery, RecordMetadata

Outcome = RecordMetadata | KafkaError

_logger = logging.getLogger(__name__)


class SpooledOutcome:
    """The part of a `DeliveryFuture` that knows the result, for one record of a spool."""

    __slots__ = ("__weakref__", "_callbacks", "_outcome", "_outcomes", "number", "topic_partition")

    def __init__(self, topic: str, partition: int | None, outcomes: SpooledOutcomes) -> None:
        #: For people: which partition it is may not be known before it is shipped.
        self.topic_partition = TopicPartition(topic, -1 if partition is None else partition)
        self.number = -1
        self._outcomes = outcomes
        self._outcome: Outcome | None = None
        self._callbacks: list[Callable[[Any], object]] = []

    @property
    def is_done(self) -> bool:
        return self._outcome is not None

    def outcome(self, index: int = 0) -> Outcome:
        check(self._outcome is not None, "an outcome was asked for before it was there")
        return cast("Outcome", self._outcome)

    def when_done(self, callback: Callable[[Any], object]) -> None:
        """Call it with this object: at once if it is done, else on the shipper's thread."""
        with self._outcomes.lock:
            if self._outcome is None:
                self._callbacks.append(callback)
                self._outcomes.keep(self)
                return
        callback(self)

    def complete(self, outcome: Outcome) -> None:
        with self._outcomes.lock:
            self._outcome = outcome
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                _logger.exception("A callback failed for a record of %s.", self.topic_partition)


class SpooledOutcomes:
    """The outcomes that somebody waits for, by the number of their record."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._seen: weakref.WeakValueDictionary[int, SpooledOutcome] = weakref.WeakValueDictionary()
        self._kept: dict[int, SpooledOutcome] = {}

    def add(self, number: int, outcome: SpooledOutcome, on_delivery: OnDelivery | None) -> None:
        """The record of an outcome has got its number."""
        outcome.number = number
        self._seen[number] = outcome
        if on_delivery is not None:
            outcome.when_done(lambda done: _tell(on_delivery, done.outcome()))

    def keep(self, outcome: SpooledOutcome) -> None:
        """Somebody must hear of it, although the future may be dropped."""
        self._kept[outcome.number] = outcome

    def complete(self, number: int, outcome: Outcome) -> None:
        found = self._seen.pop(number, None)
        self._kept.pop(number, None)
        if found is not None:
            found.complete(outcome)

    def complete_all(self, outcome: Outcome) -> None:
        """For those that this process will not see the end of."""
        for number in sorted({*self._seen.keys(), *self._kept}):
            self.complete(number, outcome)


def _tell(on_delivery: OnDelivery, outcome: Outcome) -> None:
    if isinstance(outcome, KafkaError):
        on_delivery(None, outcome)
    else:
        on_delivery(outcome, None)
