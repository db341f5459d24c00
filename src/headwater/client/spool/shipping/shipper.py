"""The thread that carries records from a spool to the cluster, in order, until each has arrived.

It reads the spool, sends through an ordinary idempotent producer, and writes down how far all is
delivered. It never reads further than a window beyond the position that is on disk: so whenever the
process ends, at most a window of records has been sent that the next process sends again.

A producer that cannot go on is replaced, and what it did not deliver is sent through the next one.
Records that a broker refuses for good are set aside in `refused.log`. A broker judges whole
batches, so a refused record is sent once more on its own before it counts as refused.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

from headwater.base.clocks import Clock, SystemClock
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import DeadlineError
from headwater.client.spool.errors import SpoolDamagedError, SpoolError
from headwater.client.spool.files.reader import NumberedRecord, SpoolReader
from headwater.client.spool.files.refused_log import RefusedLog
from headwater.client.spool.outcome import Outcome
from headwater.client.spool.shipping.missing_topics import MEMORY_MS, PATIENCE_MS, MissingTopics
from headwater.client.spool.shipping.outbox import Outbox
from headwater.client.spool.shipping.producer import ShippingProducer, Trouble, trouble_of
from headwater.client.spool.shipping.shipment import Shipment
from headwater.client.spool.spool import Spool

POSITION_INTERVAL_MS: Final = 100
_REFUSALS: Final = frozenset({Trouble.REFUSED, Trouble.TOPIC_MISSING})

_logger = logging.getLogger(__name__)


class Shipper:
    """Starts with `start`. `on_outcome` hears what became of each record.

    It hears that in the spool's order, except for records that turn out to be damaged.
    """

    def __init__(
        self,
        spool: Spool,
        make_producer: Callable[[], ShippingProducer],
        on_outcome: Callable[[int, Outcome], None],
        *,
        window_records: int,
        patience_ms: float = PATIENCE_MS,
        memory_ms: float = MEMORY_MS,
        policy: RetryPolicy | None = None,
        generator: Random | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.delivered_count = 0
        self.refused_count = 0
        self.damaged_count = 0
        self._spool = spool
        self._on_outcome = on_outcome
        self._window_records = window_records
        self._clock: Clock = SystemClock() if clock is None else clock
        self._patience_ms = patience_ms
        self._outbox = Outbox(
            make_producer,
            MissingTopics(patience_ms, memory_ms),
            policy or RetryPolicy(),
            generator or Random(),
            self._clock,
        )
        self._refused = RefusedLog(spool.directory, spool.files)
        self._reader = SpoolReader(spool, spool.position)
        self._window: deque[Shipment] = deque()
        #: A record that was read and that no producer has taken yet.
        self._unsent: Shipment | None = None
        self._is_recovering = False
        #: The oldest record under way, and since when it is that.
        self._head: Shipment | None = None
        self._head_since_ms = 0.0
        self._position_written_ms = 0.0
        self._settled = spool.position
        self._is_stopping = False
        self._has_ended = False
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="headwater-shipper", daemon=True)

    def start(self) -> None:
        # Made here, so that settings which no producer takes are the caller's to hear of.
        self._outbox.open()
        self._thread.start()

    @property
    def settled_number(self) -> int:
        """All before it is delivered or set aside; the position on disk follows a little later."""
        if self._window:
            return self._window[0].number
        return self._reader.next_number if self._unsent is None else self._unsent.number

    def wait_shipped(self, number: int, timeout_s: float | None) -> None:
        """Wait until all before `number` is settled."""
        with self._progress:
            is_shipped = self._progress.wait_for(
                lambda: self._settled >= number or self._has_ended, timeout_s
            )
        if not is_shipped or self._settled < number:
            count = number - self._settled
            left = "1 record" if count == 1 else f"{count} records"
            waited = "before it was closed" if timeout_s is None else f"within {timeout_s:g} s"
            raise DeadlineError(
                f"The spool {self._spool.directory} was not shipped {waited};"
                f" it still holds {left}."
            )

    def stop(self, timeout_s: float | None = None) -> bool:
        """End the thread, and tell whether it has ended; what is not delivered stays in the spool.

        It may be waiting for the cluster, for a second or so.
        """
        self._is_stopping = True
        self._spool.arrival.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def producer_metrics(self) -> dict[str, float]:
        return self._outbox.metrics()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._spool.arrival.clear()
                try:
                    has_moved = self._step()
                except (OSError, SpoolError) as error:
                    # A disk may have room again, or come back: nothing is lost by waiting.
                    _logger.error(
                        "The spool %s cannot go on now: %s.", self._spool.directory, error
                    )
                    self._outbox.pause()
                    has_moved = False
                if not has_moved:
                    self._spool.arrival.wait(self._wait_s())
            self._end()
        except Exception:
            _logger.exception("The shipping of %s ended.", self._spool.directory)
        finally:
            with self._progress:
                self._has_ended = True
                self._progress.notify_all()

    def _step(self) -> bool:
        """Do what can be done now; whether that was anything."""
        has_moved = self._settle()
        self._look_at_head()
        if self._clock.monotonic_ms() >= self._outbox.resume_ms:
            has_moved |= self._recover() if self._is_recovering else self._fill()
        self._note_progress()
        return self._write_position() or has_moved

    def _wait_s(self) -> float | None:
        """How long nothing will happen by itself."""
        now_ms = self._clock.monotonic_ms()
        times_ms = []
        if self._outbox.resume_ms > now_ms:
            times_ms.append(self._outbox.resume_ms)
        if self._head is not None:
            times_ms.append(self._head_since_ms + self._patience_ms)
        if self.settled_number > self._spool.position:
            times_ms.append(self._position_written_ms + POSITION_INTERVAL_MS)
        return max(0.0, (min(times_ms) - now_ms) / 1000) if times_ms else None

    def _end(self) -> None:
        self._outbox.close()
        self._settle()
        self._note_progress()
        self._write_position(at_once=True)
        self._refused.close()

    # -- from the spool to the producer ----------------------------------------------------------

    def _fill(self) -> bool:
        has_moved = False
        while (shipment := self._next_shipment()) is not None:
            # Kept before anything can go wrong, or it would count as delivered.
            self._unsent = shipment
            if not self._outbox.send(shipment, alone=False):
                return has_moved
            self._unsent = None
            self._window.append(shipment)
            has_moved = True
        return has_moved

    def _next_shipment(self) -> Shipment | None:
        if self._unsent is not None:
            return self._unsent
        if self._is_stopping:
            return None
        if self._reader.next_number - self._spool.position >= self._window_records:
            return None
        numbered = self._read()
        return None if numbered is None else Shipment(numbered)

    def _read(self) -> NumberedRecord | None:
        while True:
            first = self._reader.next_number
            try:
                return self._reader.read()
            except SpoolDamagedError as error:
                _logger.error("%s", error)
                for number in range(first, self._reader.next_number):
                    self.damaged_count += 1
                    self._on_outcome(number, error)

    # -- from the producer to the position -------------------------------------------------------

    def _settle(self) -> bool:
        """Take leave of what is delivered at the head of the window."""
        has_moved = False
        while self._window:
            head = self._window[0]
            if not head.is_done:
                self._watch(head)
                break
            if head.error is not None:
                has_moved |= not self._is_recovering
                self._is_recovering = True
                break
            self._window.popleft()
            self.delivered_count += 1
            has_moved = True
            self._on_outcome(head.number, head.metadata())
        return has_moved

    def _look_at_head(self) -> None:
        """A record that takes very long may be for a topic that is gone."""
        head = self._window[0] if self._window else None
        now_ms = self._clock.monotonic_ms()
        if head is not self._head:
            self._head, self._head_since_ms = head, now_ms
        elif head is not None and now_ms >= self._head_since_ms + self._patience_ms:
            self._head_since_ms = now_ms
            if not head.is_done:
                self._outbox.give_up_topic_if_gone(head.record.topic)

    def _recover(self) -> bool:
        """Send again what failed, once nothing else is under way, so that order is kept."""
        pending = next((shipment for shipment in self._window if not shipment.is_done), None)
        if pending is not None:
            self._watch(pending)
            return False
        failed = [shipment for shipment in self._window if shipment.error is not None]
        if not failed:
            self._is_recovering = False
            return True
        errors = [shipment.error for shipment in failed if shipment.error is not None]
        troubles = {trouble_of(error) for error in errors}
        if Trouble.PRODUCER_SPENT in troubles:
            spent = next(e for e in errors if trouble_of(e) is Trouble.PRODUCER_SPENT)
            self._outbox.replace_producer(spent)
            for shipment in failed:
                shipment.forget_producer()
            return False
        if troubles & _REFUSALS:
            return self._recover_one(failed[0])
        return all(self._outbox.send(shipment, alone=False) for shipment in failed)

    def _recover_one(self, shipment: Shipment) -> bool:
        error = shipment.error
        if error is None or trouble_of(error) not in _REFUSALS or not shipment.was_alone:
            return self._outbox.send(shipment, alone=True)
        self._refused.append(shipment.record, error)
        self.refused_count += 1
        self._window.remove(shipment)
        self._on_outcome(shipment.number, error)
        return True

    def _write_position(self, *, at_once: bool = False) -> bool:
        settled = self.settled_number
        ahead = settled - self._spool.position
        now_ms = self._clock.monotonic_ms()
        is_due = now_ms >= self._position_written_ms + POSITION_INTERVAL_MS
        if ahead <= 0 or not (at_once or is_due or 2 * ahead >= self._window_records):
            return False
        self._spool.advance(settled)
        self._position_written_ms = now_ms
        return True

    # -- smaller things --------------------------------------------------------------------------

    def _note_progress(self) -> None:
        settled = self.settled_number
        if settled != self._settled:
            with self._progress:
                self._settled = settled
                self._progress.notify_all()

    def _watch(self, shipment: Shipment) -> None:
        delivery = shipment.delivery
        if delivery is not None and not shipment.is_watched:
            shipment.is_watched = True
            delivery.add_done_callback(lambda _: self._spool.arrival.set())
