"""One level: fetch, hold until due, send. One task, one queue, no locks.

The consumer is polled all the time, also while every partition is paused or sending fails, so that
the group keeps this member. Rebalances happen inside a poll, hence never during a round.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from headwater.base.clocks import Clock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.errors import WakeupError
from headwater.client.consumer.listeners import RebalanceListener
from headwater.delivery.delay_service.delay_queue import DelayQueue, numbers
from headwater.delivery.delay_service.destination import size_of
from headwater.delivery.delay_service.forwarder import Forwarder, RecordRefusedError
from headwater.delivery.delay_service.level_figures import LatenessFigures, LevelFigures
from headwater.delivery.delay_service.options import ServiceOptions, Stage
from headwater.delivery.delay_service.routing import Routing

#: A jump of the wall clock is noticed after so long.
_POLL_S_MAX: Final = 1.0
_RETRY_MS: Final = 1_000.0
#: A round's records, and about its bytes; a transaction more costs little beside so many.
_ROUND_RECORDS: Final = 2_000
_ROUND_BYTES: Final = 8 << 20

_logger = logging.getLogger(__name__)


class LevelReport(NamedTuple):
    level: str
    partition_count: int
    waiting_count: int
    forwarded_count: int
    dead_count: int
    lateness: LatenessFigures


class LevelLoop(RebalanceListener):
    """Owns the level's consumer and its queue."""

    def __init__(
        self, options: ServiceOptions, level: Stage, routing: Routing, clock: Clock
    ) -> None:
        self._level = level
        self._clock = clock
        self._figures = LevelFigures()
        self._queue = DelayQueue(
            level.delay_ms, options.waiting_max_per_partition, options.waiting_bytes_max
        )
        self._consumer = AsyncConsumer(options.consumer_config(level))
        self._forwarder = Forwarder(options, level, routing, self._figures, clock)
        self._is_stopping = False
        #: Whether it is known what was sent, and a producer is there to send more.
        self._is_sound = False
        self._retry_ms = 0.0

    async def run(self) -> None:
        """Until `stop`; raises a `KafkaError` that will not pass."""
        try:
            self._consumer.subscribe([self._level.topic], listener=self)
            while not self._is_stopping:
                await self._turn()
        except WakeupError:
            pass
        finally:
            await self._forwarder.close()
            await self._consumer.close()

    def stop(self) -> None:
        """End after the round that is under way."""
        self._is_stopping = True
        self._consumer.wakeup()

    def report(self) -> LevelReport:
        """What was done so far, and how late since this was asked last."""
        return LevelReport(
            self._level.name,
            self._queue.partition_count,
            len(self._queue),
            self._figures.forwarded_count,
            self._figures.dead_count,
            self._figures.take_lateness(),
        )

    # -- a turn ----------------------------------------------------------------------------------

    async def _turn(self) -> None:
        for record in await self._consumer.poll(self._wait_s()):
            self._queue.add(record, size_of(record), self._clock.wall_ms())
        self._consumer.pause(self._partitions(self._queue.to_pause()))
        if self._retry_ms <= self._clock.monotonic_ms():
            await self._send()
        self._consumer.resume(self._partitions(self._queue.to_resume()))

    async def _send(self) -> None:
        try:
            if not self._is_sound:
                await self._make_sound()
            await self._send_due()
        except KafkaError as error:
            self._is_sound = False
            self._retry_ms = self._clock.monotonic_ms() + _RETRY_MS
            _logger.warning(
                "Level %s could not forward what is due, and tries again: %s",
                self._level.name,
                error,
            )

    def _wait_s(self) -> float:
        """Until there is something to do besides."""
        retry_s = max(0.0, (self._retry_ms - self._clock.monotonic_ms()) / 1000)
        if not self._is_sound:
            # Before anything is read: an earlier life may have left open where to begin.
            return min(retry_s, _POLL_S_MAX)
        next_due_ms = self._queue.next_due_ms
        if next_due_ms is None:
            return _POLL_S_MAX
        due_s = (next_due_ms - self._clock.wall_ms()) / 1000
        return min(max(due_s, retry_s), _POLL_S_MAX)

    async def _make_sound(self) -> None:
        """Settle what a failure, or an earlier life, left open, and learn what was sent."""
        await self._forwarder.renew()
        committed = await self._consumer.committed(self._consumer.assignment())
        self._queue.forget_done(
            {
                partition.partition: found.offset
                for partition, found in committed.items()
                if found is not None
            }
        )
        self._is_sound = True

    async def _send_due(self) -> None:
        due = self._queue.take_due(self._clock.wall_ms(), _ROUND_RECORDS, _ROUND_BYTES)
        if not due:
            return
        count = self._forwarder.in_one_round(due)
        done_count = 0
        try:
            await self._forwarder.forward(due[:count], self._consumer)
            done_count = count
        except RecordRefusedError:
            _logger.debug("Level %s sends in another way what was refused.", self._level.name)
        finally:
            self._queue.done(due[:done_count])
            self._queue.put_back(due[done_count:])

    def _partitions(self, wanted: set[int]) -> list[TopicPartition]:
        return [TopicPartition(self._level.topic, number) for number in sorted(wanted)]

    # -- rebalances ------------------------------------------------------------------------------

    def on_partitions_assigned(
        self, _consumer: AsyncConsumer, partitions: frozenset[TopicPartition]
    ) -> None:
        self._queue.assign(numbers(partitions))
        _logger.info("Level %s reads partitions %s.", self._level.name, sorted(numbers(partitions)))

    def on_partitions_revoked(
        self, _consumer: AsyncConsumer, partitions: frozenset[TopicPartition]
    ) -> None:
        """Others read what waits there, from what was committed on."""
        self._queue.drop(numbers(partitions))
