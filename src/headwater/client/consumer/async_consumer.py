"""`AsyncConsumer`: reads records on the caller's event loop, without a thread.

    async with AsyncConsumer(bootstrap_servers="127.0.0.1:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

What only changes the consumer's mind (subscribe, assign, seek, pause, ...) is done at once; it may
be awaited like everything else, but need not be. A consumer belongs to one task at a time; `wakeup`
alone may be called by others. Code that keeps the loop busy keeps heartbeats from going out.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, Unpack

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_calls import DONE, AsyncConsumerCalls, Done
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
from headwater.client.errors import ClientClosedError
from headwater.client.settings.typed import ConsumerSettings

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger("headwater.client")

CLOSE_TIMEOUT_S: Final = 30.0

T = TypeVar("T")


def _call_now(call: Callable[[], object]) -> None:
    call()


class AsyncConsumer(AsyncConsumerCalls, HasEnvironment):
    """Reads records, on the caller's event loop. Use it with `async with`, or call `close`.

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
        self._options = make_options(
            config,
            settings,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            interceptors=interceptors,
            environment=self._make_environment(),
        )
        self._max_records = self._options.values.integer("max.poll.records")
        self._listener: RebalanceListener | None = None
        self._started: ConsumerCore | None = None
        self._news = asyncio.Event()
        self._is_woken = False
        self._is_closed = False
        self._is_polling = False
        self._has_warned = False

    async def start(self) -> None:
        """Begin to run on the caller's loop; the first call of anything else does it too."""
        self._begin()

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

    def _begin(self) -> ConsumerCore:
        if self._is_closed:
            raise ClientClosedError("The consumer is closed.")
        if self._started is None:
            self._started = ConsumerCore(self._options, post=_call_now, notify=self._news.set)
        return self._started

    # -- what is read ----------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> Done:
        """Read these topics, or all that match the pattern, shared with the rest of the group."""
        told = given_listener(listener)
        self._core.subscribe(topics, pattern)
        self._listener = told
        return DONE

    async def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        await self._let_go(self._core.api_timeout_s)
        self._core.unsubscribe()
        self._listener = None

    def assign(self, partitions: Iterable[TopicPartition]) -> Done:
        """Read exactly these partitions, whatever the other members of the group read."""
        self._core.assign(partitions)
        return DONE

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read at the moment."""
        return set(self._core.subscription.partitions)

    def subscription(self) -> set[str]:
        """The topics that were subscribed to by name."""
        return set(self._core.subscription.subscription.topics)

    # -- records ---------------------------------------------------------------------------------

    async def poll(
        self, timeout_s: float = 1.0, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """The next records, as soon as there are any; an empty list if none come in that time."""
        count = record_limit(max_records, self._max_records)
        side = self._core.poll_side

        def take(now_s: float) -> list[ConsumerRecord]:
            return side.take_left(count) or side.take(count, now_s)

        return await self._poll(timeout_s, take) or []

    async def poll_arrow(
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
        count = record_limit(max_records, ARROW_RECORDS)
        side = self._core.poll_side
        self._core.give_back(list(side.hand_out.first_left()))
        batch = await self._poll(timeout_s, lambda now_s: side.take_arrow(count, now_s, schema))
        return side.empty_arrow(schema) if batch is None else batch

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records, one by one, until the consumer is closed or woken up.

        Stopping in the middle loses nothing: positions are after the record that was handed out.
        """
        hand_out = self._core.poll_side.hand_out
        while not self._is_closed:
            for record in hand_out.begin(await self.poll()):
                yield record

    async def _poll(self, timeout_s: float, take: Callable[[float], T | None]) -> T | None:
        side = self._core.poll_side
        if self._is_polling:
            raise ConcurrentUseError("This consumer is being used by another task.")
        self._is_polling = True
        loop = asyncio.get_running_loop()
        try:
            now_s = loop.time()
            end_s = side.end_of_wait_s(now_s, timeout_s)
            side.begin(now_s)
            # Who always finds something would never let the loop do anything else.
            await asyncio.sleep(0)
            while True:
                self._news.clear()
                if self._is_woken:
                    self._is_woken = False
                    raise WakeupError("The consumer was woken up.")
                if side.has_news:
                    await self._handle_news()
                taken = take(now_s)
                if taken:
                    # Nothing is awaited from here on: a cancellation would lose these.
                    return taken
                if loop.time() >= end_s:
                    self._warn_once()
                    return None
                try:
                    async with asyncio.timeout_at(end_s):
                        await self._news.wait()
                except TimeoutError:
                    pass
                now_s = loop.time()
        finally:
            side.end(loop.time())
            self._is_polling = False

    async def _handle_news(self) -> None:
        self._core.poll_side.run_callbacks()
        rebalances = self._core.rebalances
        while (event := rebalances.event) is not None:
            await rebalances.begin(event)
            try:
                await self._tell_listener(event)
            finally:
                rebalances.end(event)
        self._core.poll_side.raise_failure()

    async def _tell_listener(self, event: RebalanceEvent) -> None:
        if self._listener is not None:
            told = tell_listener(self._listener, self, event)
            if inspect.isawaitable(told):
                await told

    def _warn_once(self) -> None:
        failure = self.connection_failure
        if failure is not None and not self._has_warned:
            self._has_warned = True
            _logger.warning("The cluster cannot be reached: %s", failure)

    def wakeup(self) -> None:
        """Let the poll that waits, or the next one, raise `WakeupError`."""
        self._is_woken = True
        self._news.set()

    # -- the end ---------------------------------------------------------------------------------

    async def close(self, timeout_s: float | None = None) -> None:
        """Commit, with `enable.auto.commit`, leave the group and close all connections."""
        core = self._started
        if self._is_closed or core is None:
            self._is_closed = True
            return
        limit_s = CLOSE_TIMEOUT_S if timeout_s is None else timeout_s
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        try:
            await self._let_go(limit_s)
            core.poll_side.run_callbacks()
        finally:
            self._is_closed = True
            self._started = None
            self._news.set()
            await core.close(max(0.0, end_s - loop.time()))

    async def _let_go(self, timeout_s: float) -> None:
        """Commit, and let the listener know, before nothing is read any more."""
        rebalances = self._core.rebalances
        await rebalances.commit_consumed(timeout_s)
        farewell = rebalances.farewell()
        if farewell is not None:
            await self._tell_listener(farewell)
