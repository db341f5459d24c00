"""The sender of a level: what is due, and how far that was, in one transaction a round.

A reader of committed data sees each record once, because the offsets that say what is done are
committed with what was written, or neither is. Who has lost its partitions to another service
cannot commit: the offsets name its place in the group, which the group has given up.

When a round fails, nobody knows for sure whether it was committed. A new producer of the same
transactional id settles that, and then the group's offsets tell: see `level_loop`.

A record that the cluster refuses would fail its round again and again. Those that are suspected
are sent alone; which one is refused alone becomes a dead letter.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.line_budget import LineBudget
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.delivery.delay_service.delay_queue import Waiting
from headwater.delivery.delay_service.destination import Letter, UndeliverableError, place_of
from headwater.delivery.delay_service.level_figures import LevelFigures
from headwater.delivery.delay_service.options import ServiceOptions, Stage
from headwater.delivery.delay_service.routing import Routing

#: What the cluster says of a record that it would say again.
_REFUSALS: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.POLICY_VIOLATION,
    }
)

#: A sender that is wrong may send much: the log tells of so many dead letters in so long.
_DEAD_LINES: Final = 10
_DEAD_LINES_S: Final = 60.0

_logger = logging.getLogger(__name__)


class _Place(NamedTuple):
    partition: int
    offset: int


class RecordRefusedError(Exception):
    """The round was aborted for what it held; the next one does something else about it."""


class Forwarder:
    """Owns the level's producer. Not usable before `renew`, nor after an error of `forward`."""

    def __init__(
        self,
        options: ServiceOptions,
        stage: Stage,
        routing: Routing,
        figures: LevelFigures,
        clock: Clock,
    ) -> None:
        self._config = options.producer_config(stage)
        self._routing = routing
        self._figures = figures
        self._clock = clock
        self._producer: AsyncProducer | None = None
        #: To be sent alone, because something in their round was refused.
        self._suspects: set[_Place] = set()
        #: Why each of these becomes a dead letter.
        self._dead: dict[_Place, str] = {}
        #: Even their dead letters were refused, and are written without key and value.
        self._bare: set[_Place] = set()
        self._lines = LineBudget(_DEAD_LINES, _DEAD_LINES_S)

    async def renew(self) -> None:
        """Have a new producer, after which no transaction of an earlier one is undecided."""
        await self.close()
        self._routing.forget()
        producer = AsyncProducer(self._config)
        await producer.start()
        self._producer = producer
        await producer.init_transactions()

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                await producer.close(timeout_s=0)

    def in_one_round(self, taken: Sequence[Waiting]) -> int:
        """How many of these, from the first, can be sent together."""
        for number, waiting in enumerate(taken):
            if _place(waiting) in self._suspects:
                return max(1, number)
        return len(taken)

    async def forward(self, taken: Sequence[Waiting], consumer: AsyncConsumer) -> None:
        """Write these and commit their offsets.

        Raises `RecordRefusedError` if nothing was done and the next try will do better, and a
        `KafkaError` if it is not known what was done: then `renew`.
        """
        producer = self._producer
        if producer is None:
            raise RuntimeError("The forwarder has no producer.")
        letters = [await self._letter(waiting, producer) for waiting in taken]
        refused = await self._write(producer, taken, letters, consumer)
        if refused:
            self._blame(taken, letters, refused)
            raise RecordRefusedError
        now_ms = self._clock.wall_ms()
        for waiting, letter in zip(taken, letters, strict=True):
            self._count(waiting, letter, now_ms)

    async def _letter(self, waiting: Waiting, producer: AsyncProducer) -> Letter:
        reason = self._dead.get(_place(waiting))
        if reason is None:
            try:
                return await self._routing.letter(waiting, producer)
            except UndeliverableError as error:
                reason = str(error)
        letter = self._routing.dead(waiting.record, reason, self._clock.wall_ms())
        return self._routing.bare(letter) if _place(waiting) in self._bare else letter

    async def _write(
        self,
        producer: AsyncProducer,
        taken: Sequence[Waiting],
        letters: Sequence[Letter],
        consumer: AsyncConsumer,
    ) -> dict[int, KafkaError]:
        """Do it all; or do nothing, and tell by number what was refused."""
        await producer.begin_transaction()
        futures: list[DeliveryFuture] = []
        try:
            for letter in letters:
                futures.append(await _send(producer, letter))
            await producer.send_offsets_to_transaction(
                {
                    TopicPartition(waiting.record.topic, waiting.partition): waiting.offset + 1
                    for waiting in taken
                },
                consumer.group_identity(),
            )
            await producer.commit_transaction()
        except KafkaError as error:
            if error.code not in _REFUSALS:
                raise
            # Only then all records know what became of them.
            await producer.abort_transaction()
            refused = {
                number: failure
                for number, future in enumerate(futures)
                if (failure := future.exception(timeout_s=0)) is not None
                and failure.code in _REFUSALS
            }
            # If it is none of those that were sent, the client itself did not take the next.
            return refused or {min(len(futures), len(letters) - 1): error}
        return {}

    def _blame(
        self, taken: Sequence[Waiting], letters: Sequence[Letter], refused: dict[int, KafkaError]
    ) -> None:
        for number, error in refused.items():
            topic, place = letters[number].topic, _place(taken[number])
            is_dead = letters[number].dead_reason is not None
            is_forbidden = error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if is_forbidden and not is_dead:
                self._routing.forbidden(topic, error)
            elif len(taken) > 1:
                self._suspects.add(place)
            elif not is_dead:
                self._dead[place] = f"The topic {topic!r} refused it: {error}"
            elif is_forbidden or place in self._bare:
                # Nothing can be done but to wait until somebody mends that topic.
                raise error
            else:
                _logger.error("A dead letter was refused, and is written without value: %s", error)
                self._bare.add(place)

    def _count(self, waiting: Waiting, letter: Letter, now_ms: int) -> None:
        place = _place(waiting)
        self._suspects.discard(place)
        self._bare.discard(place)
        self._dead.pop(place, None)
        if letter.dead_reason is None:
            self._figures.forwarded(now_ms - waiting.due_ms)
            return
        self._figures.dead_count += 1
        left_out = self._lines.take(self._clock.monotonic_ms() / 1000)
        if left_out is not None:
            others = f", and {left_out} others before" if left_out else ""
            place_text = place_of(waiting.record)
            _logger.warning(
                "%s went to %s%s: %s", place_text, letter.topic, others, letter.dead_reason
            )


async def _send(producer: AsyncProducer, letter: Letter) -> DeliveryFuture:
    return await producer.send(
        letter.topic,
        letter.value,
        letter.key,
        partition=letter.partition,
        headers=letter.headers,
        timestamp_ms=letter.timestamp_ms,
    )


def _place(waiting: Waiting) -> _Place:
    return _Place(waiting.partition, waiting.offset)
