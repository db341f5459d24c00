"""`Consumer`: reads records, for programs with threads.

    with Consumer(bootstrap_servers="127.0.0.1:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            ...

Network and heartbeats are on a background thread, so that slow code in the loop above does not cost
the membership until `max.poll.interval.ms`. Records are decoded in the thread that polls. A
consumer belongs to one thread at a time; `wakeup` alone may be called from others.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, Unpack

from headwater.base.ids import TopicPartition
from headwater.client.consumer.calls import ConsumerCalls
from headwater.client.consumer.core import ConsumerCore
from headwater.client.consumer.deserializers import DeserializerLike
from headwater.client.consumer.errors import ConcurrentUseError, WakeupError
from headwater.client.consumer.listeners import RebalanceListener, given_listener
from headwater.client.consumer.membership.membership import RebalanceEvent
from headwater.client.consumer.options import make_options
from headwater.client.consumer.polling.poll_side import ARROW_RECORDS, record_limit
from headwater.client.consumer.polling.rebalances import tell_listener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import HasEnvironment
from headwater.client.given_items import given_names, given_partitions
from headwater.client.machines.background_loop import BackgroundLoop
from headwater.client.settings.typed import ConsumerSettings

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger("headwater.client")

CLOSE_TIMEOUT_S: Final = 30.0

T = TypeVar("T")


class Consumer(ConsumerCalls, HasEnvironment):
    """Reads records, in one thread at a time. Use it with `with`, or call `close` at the end.

    Settings have Kafka's names: in the mapping `config` as they are, as keywords with underscores
    for dots. `help(headwater.ConsumerSettings)` shows them all, with types and defaults.
    A deserializer is a function of bytes, or an object with `deserialize(topic, data)`.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        key_deserializer: DeserializerLike | None = None,
        value_deserializer: DeserializerLike | None = None,
        interceptors: Iterable[object] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None:
        options = make_options(
            config,
            settings,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            interceptors=interceptors,
            environment=self._make_environment(),
            is_threaded=True,
        )
        self._clock = options.environment.clock
        self._max_records = options.values.integer("max.poll.records")
        self._listener: RebalanceListener | None = None
        self._news = threading.Event()
        self._is_woken = False
        self._is_closed = False
        self._has_warned = False
        #: Held while somebody polls, who then is this thread.
        self._user = threading.Lock()
        self._user_id = 0
        background = BackgroundLoop(options.values.text("client.id"))
        self._background = background
        try:
            self._core = background.call(
                lambda: ConsumerCore(options, post=background.call_soon, notify=self._news.set)
            )
        except BaseException:
            background.close()
            raise
        self._side = self._core.poll_side

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- what is read ----------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read these topics, or all that match the pattern, shared with the rest of the group."""
        wanted = None if topics is None else given_names(topics)
        told = given_listener(listener)
        self._call(lambda: self._core.subscribe(wanted, pattern))
        self._listener = told

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        self._let_go(self._core.api_timeout_s)
        self._call(self._core.unsubscribe)
        self._listener = None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, whatever the other members of the group read."""
        chosen = given_partitions(partitions)
        self._call(lambda: self._core.assign(chosen))

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read at the moment."""
        return set(self._call(lambda: list(self._core.subscription.partitions)))

    def subscription(self) -> set[str]:
        """The topics that were subscribed to by name."""
        self._check_open()
        return set(self._core.subscription.subscription.topics)

    # -- records ---------------------------------------------------------------------------------

    def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, as soon as there are any; an empty list if none come in that time."""
        count = record_limit(max_records, self._max_records)

        def take(now_s: float) -> list[ConsumerRecord]:
            return self._side.take_left(count) or self._side.take(count, now_s)

        return self._poll(timeout_s, take) or []

    def poll_arrow(
        self,
        timeout_s: float = 1.0,
        max_records: int | None = None,
        *,
        schema: pa.Schema | None = None,
    ) -> pa.RecordBatch:
        """The next records as a `pyarrow.RecordBatch`, without an object for each of them.

        Keys and values are bytes: deserializers are not used. A batch has up to 65,536 records,
        whatever `max.poll.records` is. A schema chooses columns and types; keys and values as
        `binary_view` are not copied, but keep in memory all that was received with them.
        """
        if left := self._side.hand_out.first_left():
            self._call(lambda: self._core.give_back(list(left)))
        count = record_limit(max_records, ARROW_RECORDS)
        batch = self._poll(timeout_s, lambda now_s: self._side.take_arrow(count, now_s, schema))
        return self._side.empty_arrow(schema) if batch is None else batch

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records, one by one, until the consumer is closed or woken up.

        Stopping in the middle loses nothing: positions are after the record that was handed out.
        """
        self._check_open()
        hand_out = self._side.hand_out
        while not self._is_closed:
            yield from hand_out.begin(self.poll())

    def _poll(self, timeout_s: float, take: Callable[[float], T | None]) -> T | None:
        self._check_open()
        if not self._user.acquire(blocking=False):
            raise ConcurrentUseError("This consumer is being used by another thread.")
        self._user_id = threading.get_ident()
        try:
            now_s = self._now_s()
            end_s = self._side.end_of_wait_s(now_s, timeout_s)
            self._side.begin(now_s)
            while True:
                self._news.clear()
                if self._is_woken:
                    self._is_woken = False
                    raise WakeupError("The consumer was woken up.")
                if self._side.has_news:
                    self._handle_news()
                    self._check_open()
                taken = take(now_s)
                if taken:
                    return taken
                now_s = self._now_s()
                if now_s >= end_s:
                    self._warn_once()
                    return None
                self._news.wait(end_s - now_s)
                now_s = self._now_s()
        finally:
            self._side.end(self._now_s())
            self._user.release()

    def _handle_news(self) -> None:
        self._side.run_callbacks()
        rebalances = self._core.rebalances
        while (event := rebalances.event) is not None:
            self._run(rebalances.begin(event))
            try:
                self._tell_listener(event)
            finally:
                self._call(partial(rebalances.end, event))
        self._side.raise_failure()

    def _tell_listener(self, event: RebalanceEvent) -> None:
        if self._listener is not None:
            tell_listener(self._listener, self, event)

    def _warn_once(self) -> None:
        failure = self.connection_failure
        if failure is not None and not self._has_warned:
            self._has_warned = True
            _logger.warning("The cluster cannot be reached: %s", failure)

    def wakeup(self) -> None:
        """Let the poll that waits, or the next one, raise `WakeupError`; from any thread."""
        self._is_woken = True
        self._news.set()

    # -- the end ---------------------------------------------------------------------------------

    def close(self, timeout_s: float | None = None) -> None:
        """Commit, with `enable.auto.commit`, leave the group and close all connections."""
        if self._is_closed:
            return
        if self._user.locked() and self._user_id != threading.get_ident():
            raise ConcurrentUseError(
                "Another thread polls this consumer: wake it up, and close it there."
            )
        limit_s = CLOSE_TIMEOUT_S if timeout_s is None else timeout_s
        end_s = self._now_s() + limit_s
        try:
            self._let_go(limit_s)
            self._side.run_callbacks()
        finally:
            self._is_closed = True
            try:
                self._background.run(self._core.close(max(0.0, end_s - self._now_s())))
            finally:
                self._background.close()

    def _let_go(self, timeout_s: float) -> None:
        """Commit, and let the listener know, before nothing is read any more."""
        self._run(self._core.rebalances.commit_consumed(timeout_s))
        farewell = self._call(self._core.rebalances.farewell)
        if farewell is not None:
            self._tell_listener(farewell)
