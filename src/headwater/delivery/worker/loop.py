"""The loop of a worker: poll, handle, commit; pause and go on; rebalances; the end.

It is polled all the time, also while every partition is paused, so that the group keeps this
member. Rebalances happen inside a poll, hence never while something is being committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.line_budget import LineBudget
from headwater.client.consumer.errors import WakeupError
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.worker.clients import WorkerConsumer
from headwater.delivery.worker.cluster_reach import ClusterReach
from headwater.delivery.worker.crews.crew import Crew, first_of_each
from headwater.delivery.worker.decisions.circuit import CircuitState
from headwater.delivery.worker.decisions.crash_notes import CrashNotes, DiedError
from headwater.delivery.worker.decisions.unsettled import Letter
from headwater.delivery.worker.decisions.work import Work
from headwater.delivery.worker.metrics import Health
from headwater.delivery.worker.options import WorkerOptions
from headwater.delivery.worker.settler import Settler

#: As many as a poll of Kafka's consumer returns by default.
_POLL_RECORDS: Final = 500
#: So many failed records are not kept waiting for others.
_UNSETTLED_MAX: Final = 1000
_RETRY_S: Final = 1.0
_RETRY_S_MAX: Final = 30.0
_COMMIT_S: Final = 20.0

_logger = logging.getLogger(__name__)


class WorkerLoop:
    """`now_s` is the monotonic clock."""

    def __init__(
        self,
        options: WorkerOptions,
        work: Work,
        consumer: WorkerConsumer,
        settler: Settler,
        crew: Crew,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._work = work
        self._consumer = consumer
        self._settler = settler
        self._crew = crew
        self._now_s = now_s
        self._notes = CrashNotes(options.crash_attempts) if options.count_crashes else None
        asked = options.consumer_config.get("max.poll.records", _POLL_RECORDS)
        self._poll_records = 1 if self._notes else min(int(str(asked)), self._window_records)
        self._paused: frozenset[TopicPartition] = frozenset()
        self._is_stopping = False
        self._settle_at_s = 0.0
        #: After a failure to commit nothing is read before that has gone well.
        self._is_held = False
        self._retry_s = _RETRY_S
        self._trouble = ""
        self._reach = ClusterReach(consumer, now_s())
        self._is_circuit_told = False
        self._state = "new"
        self._lines = LineBudget(5, 60.0)

    @property
    def _window_records(self) -> int:
        """In lanes a poll brings no more than half a window."""
        return 1 << 30 if self._options.is_direct else max(1, self._options.max_in_flight // 2)

    async def run(self) -> None:
        """Until `stop`; raises what does not pass."""
        self._state = "running"
        is_abandoned = False
        try:
            await self._settler.start()
            self._crew.start()
            while not self._is_stopping and self._crew.failure is None:
                await self._turn()
        except GeneratorExit:
            # The event loop is gone, and with it all that could be waited for.
            is_abandoned = True
            raise
        finally:
            self._state = "stopping"
            try:
                if not is_abandoned:
                    await self._end()
            finally:
                self._state = "ended"
        if self._crew.failure is not None:
            raise self._crew.failure

    def stop(self) -> None:
        """End once the records that are being handled are; a signal handler may call it."""
        self._is_stopping = True
        self._crew.stop()

    def health(self) -> Health:
        reason = self._trouble or self._reach.trouble
        if self._work.circuit.state is not CircuitState.CLOSED:
            reason = reason or (
                f"Nearly everything fails: the circuit is {self._work.circuit.state.value}."
            )
        if self._state == "ended":
            reason = reason or "The worker has ended."
        return Health(not reason and self._state != "new", self._state, reason)

    # -- a turn ----------------------------------------------------------------------------------

    async def _turn(self) -> None:
        await self._pause()
        circuit = self._work.circuit
        try:
            records = await self._consumer.poll(
                min(1.0, self._options.commit_interval_s), circuit.limit(self._poll_records)
            )
        except WakeupError:
            records = []
        if records:
            with self._work.lock:
                circuit.taken(len(records))
            await self._handle(records)
        self._tell_circuit()
        now_s = self._now_s()
        self._reach.look(now_s)
        is_much = self._work.unsettled_count >= _UNSETTLED_MAX and not self._is_held
        # A note is a commit, which must not go past a failure that is not written.
        is_noted = self._notes is not None and self._work.unsettled_count and not self._is_held
        if now_s >= self._settle_at_s or is_much or is_noted:
            await self._settle(now_s)

    async def _handle(self, records: list[ConsumerRecord]) -> None:
        if self._notes is not None and not await self._note(self._notes, records[0]):
            return
        try:
            await self._crew.handle(records)
        finally:
            # The consumer's positions are what is committed: they must not be past these.
            for record in first_of_each(self._crew.left):
                await self._consumer.seek(
                    record.topic_partition, record.offset, record.leader_epoch
                )

    async def _note(self, notes: CrashNotes, record: ConsumerRecord) -> bool:
        """Write down that the record is attempted; false if it is not to be handled now."""
        partition = record.topic_partition
        try:
            noted = notes.begin(record)
            await self._consumer.commit({partition: noted}, _COMMIT_S)
        except DiedError as error:
            decided = self._work.decide(record, error, self._options.in_process_attempts)
            if isinstance(decided, Letter):
                self._work.send_on(decided)
            self._work.handled([record], 1, self._now_s())
            return False
        except KafkaError as error:
            self._hold(error, self._now_s())
            await self._consumer.seek(partition, record.offset, record.leader_epoch)
            return False
        return True

    async def _pause(self) -> None:
        """Have the consumer read what may be read, and nothing else."""
        wanted = self._work.paused(self._now_s(), is_held=self._is_held)
        if wanted == self._paused:
            return
        if more := wanted - self._paused:
            await self._consumer.pause(more)
        if fewer := self._paused - wanted:
            await self._consumer.resume(fewer)
        full_count = self._work.metrics().full_partitions
        if more and full_count and self._lines.take(self._now_s()) is not None:
            _logger.info(
                "%d partitions wait: of each %d records are under way behind one that is not done.",
                *(full_count, self._options.max_in_flight),
            )
        self._paused = wanted

    def _tell_circuit(self) -> None:
        circuit = self._work.circuit
        if circuit.state is CircuitState.OPEN and not self._is_circuit_told:
            _logger.error(
                "Nearly everything that was handled has failed: nothing is read for %g s, and then "
                "a few records to see.",
                circuit.pause_s,
            )
        elif circuit.state is CircuitState.CLOSED and self._is_circuit_told:
            _logger.warning("Records can be handled again.")
        self._is_circuit_told = circuit.state is not CircuitState.CLOSED

    # -- committing ------------------------------------------------------------------------------

    async def _settle(self, now_s: float) -> None:
        try:
            await self._settler.settle()
        except KafkaError as error:
            self._hold(error, now_s)
            return
        self._is_held = False
        self._trouble = ""
        self._retry_s = _RETRY_S
        self._settle_at_s = now_s + self._options.commit_interval_s

    def _hold(self, error: KafkaError, now_s: float) -> None:
        """Read nothing until what is done can be committed."""
        self._trouble = f"What is done cannot be committed: {error}"
        self._is_held = True
        self._settle_at_s = now_s + self._retry_s
        if self._lines.take(now_s) is not None:
            _logger.warning(
                "What is done could not be committed, and nothing is read until it is; it is tried "
                "again in %g s: %s",
                *(self._retry_s, error),
            )
        self._retry_s = min(2 * self._retry_s, _RETRY_S_MAX)

    async def _settle_last(self) -> None:
        """Before partitions go, and before the end: there may be no other try."""
        try:
            await self._settler.settle()
        except KafkaError as error:
            _logger.warning(
                "What was handled could not be committed, and will be handled again: %s", error
            )

    # -- rebalances and the end ------------------------------------------------------------------

    async def assigned(
        self, partitions: frozenset[TopicPartition], retry_topics: Collection[str]
    ) -> None:
        self._work.assign(partitions)
        retried = [partition for partition in partitions if partition.topic in retry_topics]
        has_reset = self._options.consumer_config["auto.offset.reset"] != "earliest"
        asked = partitions if self._notes is not None else retried if has_reset else ()
        committed = await self._consumer.committed(asked) if asked else {}
        if self._notes is not None:
            self._notes.learn(committed)
        new = [partition for partition in retried if committed.get(partition, ...) is None]
        if has_reset and new:
            # Whatever the user wants to miss of his topics, nothing that failed must be missed.
            await self._consumer.seek_to_beginning(new)

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Wait for what is being handled, commit, and forget the rest."""
        self._work.drop_waiting(partitions)
        # At the end it has been waited for already.
        drain_s = self._options.drain_timeout_s if self._state == "running" else 0.0
        await self._drain(drain_s, partitions)
        await self._settle_last()
        self.lost(partitions)

    async def _drain(
        self, timeout_s: float, partitions: frozenset[TopicPartition] | None = None
    ) -> None:
        if not await self._crew.quiet(timeout_s, partitions):
            _logger.warning(
                "After %g s there are records that are still being handled: they are not waited "
                "for, and will be handled again.",
                timeout_s,
            )

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._work.forget(partitions)
        self._paused -= partitions
        if self._notes is not None:
            self._notes.forget(partitions)

    async def _end(self) -> None:
        """Closing the consumer has the listener told of all partitions, which does the rest."""
        self._crew.stop()
        self._work.drop_waiting()
        try:
            await self._drain(self._options.drain_timeout_s)
            await self._settle_last()
            await self._crew.end()
        finally:
            try:
                await self._consumer.close(self._options.drain_timeout_s)
            finally:
                await self._settler.close()
