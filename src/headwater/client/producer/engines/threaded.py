"""A producer's core on a background thread, for callers on any other thread.

The core runs on an event loop; here is how a thread hands over a record that has to wait, and how
it waits for what the loop does.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.base.settings import SettingError, SettingValues
from headwater.client.environment import ClientEnvironment
from headwater.client.errors import ClientClosedError, DeadlineError
from headwater.client.machines.background_loop import BackgroundLoop, forked_error
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.batches.delivery_group import DeliveryGroup
from headwater.client.producer.core import ProducerCore
from headwater.client.producer.engines.open_producers import (
    OPEN_PRODUCERS,
    WRITING_SHARE,
    WaitForExit,
)
from headwater.client.producer.engines.unwritten_records import UnwrittenRecords, records_text
from headwater.client.producer.intake.record_intake import (
    ForShare,
    ForTopic,
    ForTurn,
    Wait,
)
from headwater.client.producer.intake.send_options import SendOptions
from headwater.client.producer.record import ProducerRecord
from headwater.client.producer.record_metadata import OnDelivery
from headwater.client.producer.transactions.waiting import Transactions

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class ThreadedEngine:
    """Starts at once; whether the cluster can be reached shows later."""

    def __init__(
        self, values: SettingValues, options: SendOptions, environment: ClientEnvironment
    ) -> None:
        self._max_block_s = values.integer("max.block.ms") / 1000
        transactional_id = values.optional_text("transactional.id")
        self.name = f"The producer {transactional_id or values.text('client.id')!r}"
        self.exit_flush_s = values.integer("exit.flush.timeout.ms") / 1000
        self._monotonic_ms = environment.clock.monotonic_ms
        self._background = BackgroundLoop(f"{values.text('client.id')}-producer")
        self._closing = threading.Lock()
        try:
            self._core = self._background.call(
                lambda: ProducerCore(values, options, environment, is_threaded=True)
            )
        except BaseException:
            self._background.close()
            raise
        self.offer = self._core.intake.offer

    # -- records ---------------------------------------------------------------------------------

    def send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> DeliveryFuture:
        """Take a record that may have to wait."""
        return self._drive(self._core.intake.steps(record, on_delivery))

    def send_arrow(
        self, topic: str, batch: pyarrow.RecordBatch | pyarrow.Table, partition: int | None
    ) -> DeliveryGroup:
        """Take an Arrow batch, on the background thread while the caller's waits.

        Encoding and sending let go of Python's lock again and again, for a moment each. Two threads
        would wait for each other every time, and be slower than one.
        """
        steps = self._core.arrow_intake.steps(topic, batch, partition)
        if self._background.is_current:
            return self._drive(steps)
        return self.run(self._core.drive(steps))

    def _drive(self, steps: Generator[Wait, None, T]) -> T:
        """Wait for what the steps ask for, for up to `max.block.ms`."""
        deadline_ms: float | None = None
        try:
            wait = next(steps)
            while True:
                if deadline_ms is None:
                    deadline_ms = self._monotonic_ms() + self._max_block_s * 1000
                try:
                    self._wait(wait, max(0.0, (deadline_ms - self._monotonic_ms()) / 1000))
                except Exception as error:
                    steps.throw(error)
                wait = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result

    def _wait(self, wait: Wait, timeout_s: float) -> None:
        if isinstance(wait, ForTurn):
            # On the loop itself, where the sender's turn comes when this is over.
            return
        if self._background.is_current:
            # A callback that sends must not wait for the thread that runs it.
            timeout_s = 0.0
        if isinstance(wait, ForTopic):
            self.run(self._core.topics.find(wait, timeout_s))
        elif isinstance(wait, ForShare):
            # A callback goes on without, and its records are not sampled until somebody asks.
            if not self._background.is_current:
                self.run(self._core.learn_share(wait, timeout_s))
        else:
            self._core.find_memory_in_thread(wait, timeout_s)

    # -- the rest --------------------------------------------------------------------------------

    @property
    def core(self) -> ProducerCore:
        return self._core

    @property
    def transactions(self) -> Transactions:
        transactions = self._core.transactions
        if transactions is None:
            raise SettingError("Transactions need the setting transactional.id.")
        return transactions

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for what is done on the loop."""
        if self._background.is_closed or self._background.is_current:
            work.close()
            if self._background.is_closed:
                raise ClientClosedError("The producer is closed.")
            raise DeadlineError(
                "A callback of the producer's cannot wait for the thread that runs it."
            )
        try:
            return self._background.run(work)
        except concurrent.futures.CancelledError:
            raise ClientClosedError("The producer was closed.") from None

    def flush(self, timeout_s: float | None) -> None:
        self.run(self._core.flush_for_user(timeout_s))

    def metrics(self) -> dict[str, float]:
        return self._core.metrics()

    def close(self, timeout_s: float | None) -> None:
        if self._background.is_forked:
            return
        with self._closing:
            if not self._background.is_closed:
                try:
                    self.run(self._core.close(timeout_s))
                finally:
                    self._background.close()

    # -- if nobody closes it, see `open_producers` -----------------------------------------------

    def begin_exit(self) -> WaitForExit:
        unwritten, was_open = self._core.unwritten(), self._has_open_transaction()
        closing: list[concurrent.futures.Future[None]] = []
        # Unless it was closed just now.
        with contextlib.suppress(ClientClosedError):
            work = self._write_and_close(self.exit_flush_s * WRITING_SHARE)
            closing.append(self._background.start(work))

        def wait(timeout_s: float) -> str:
            concurrent.futures.wait(closing, timeout_s)
            return self._told_losses(unwritten, was_open, "the program ended")

        return wait

    async def _write_and_close(self, timeout_s: float) -> None:
        if self._core.is_closed:
            # Somebody else is about to, but may take longer.
            await self._core.flush_within(timeout_s)
        else:
            await self._core.close(timeout_s)

    def drop(self) -> None:
        """Have the background thread write what is left, and end."""
        self._background.call_soon(self._begin_to_end)

    def forked(self) -> None:
        self._core.intake.refuse_all(forked_error())

    def _begin_to_end(self) -> None:
        unwritten, was_open = self._core.unwritten(), self._has_open_transaction()
        closing = self._background.loop.create_task(self._core.close(None))

        def end(_: object) -> None:
            OPEN_PRODUCERS.discard(self)
            self._background.close_soon()
            if lost := self._told_losses(unwritten, was_open, "it was dropped"):
                _logger.warning("%s", lost)

        closing.add_done_callback(end)

    def _has_open_transaction(self) -> bool:
        transactions = self._core.transactions
        return transactions is not None and transactions.is_open

    def _told_losses(self, unwritten: UnwrittenRecords, was_open: bool, when: str) -> str:
        if was_open:
            return (
                f"{self.name} had a transaction open when {when}. It is aborted: readers of "
                "committed data see none of its records."
            )
        count = unwritten.count
        if not count:
            return ""
        reason = "" if unwritten.reason is None else f" {unwritten.reason}"
        return (
            f"{self.name} lost {records_text(count)} that it had not written when {when}.{reason} "
            "Close a producer at its end, or use it with `with`."
        )
