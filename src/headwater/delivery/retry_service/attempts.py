"""What becomes of a record that failed: it waits in a level topic, or goes to the dead letters.

It is the same that the broker of a retry topic does: the same headers, counted by the same rules. A
record whose headers make no sense, which a broker would refuse, is a dead letter that says so.
"""

from __future__ import annotations

import contextlib
from typing import Final

from headwater.base.clocks import Clock
from headwater.base.durations import parse_duration_ms, show_duration
from headwater.base.errors import KafkaError
from headwater.base.message_id import MessageId
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.delay_levels import (
    PARTITION_HEADER,
    TOPIC_HEADER,
    Level,
    level_for,
)
from headwater.client.producer.record import HeaderValue
from headwater.delivery.delay_service.delay_queue import Waiting
from headwater.delivery.delay_service.destination import Letter, UndeliverableError
from headwater.delivery.retry_service.options import RetryServiceOptions
from headwater.wire.delayed.attempts import (
    count_failure,
    dead_letter_headers,
    last_header,
)
from headwater.wire.delayed.copies import with_origin
from headwater.wire.delayed.headers import (
    ATTEMPTS_HEADER,
    DEAD_HEADER,
    ERROR_HEADER,
    FIRST_FAILURE_HEADER,
    LAST_FAILURE_HEADER,
    ORIGIN_HEADER,
)
from headwater.wire.delayed.retry_topics import ready_topic
from headwater.wire.records import Header

#: What takes longer than so many levels one after the other cannot be asked for.
_LEVELS_MAX: Final = 100
#: What a dead letter keeps that is refused with all of its contents, besides Kafka's own headers.
_KEPT: Final = frozenset(
    {
        ATTEMPTS_HEADER,
        DEAD_HEADER,
        FIRST_FAILURE_HEADER,
        LAST_FAILURE_HEADER,
        ORIGIN_HEADER,
    }
)
_FAMILY: Final = "__dlq.errors."


class AttemptRouting:
    """A `Routing` of what a group sends on."""

    def __init__(self, options: RetryServiceOptions, clock: Clock) -> None:
        self._options = options
        self._levels = options.waiting.levels
        self._clock = clock

    async def letter(self, waiting: Waiting, producer: AsyncProducer) -> Letter:
        record = waiting.record
        policy = self._options.policy
        try:
            headers = with_origin(record.headers, _partition(record), record.offset)
            failure = count_failure(headers, self._failed_ms(record))
            if failure.is_dead or failure.attempts > policy.attempts_max:
                return self._dead(record, failure.headers, self._clock.wall_ms())
            if failure.after is None:
                delay_ms = policy.delays_ms[min(failure.attempts, len(policy.delays_ms)) - 1]
            else:
                delay_ms = parse_duration_ms(failure.after.decode("ascii", "replace"))
            way = levels_to_pass(delay_ms, self._levels)
        except ValueError as error:
            raise UndeliverableError(str(error)) from None
        kept: list[tuple[str, HeaderValue]] = [
            each for each in failure.headers if each[0] not in (TOPIC_HEADER, PARTITION_HEADER)
        ]
        kept.append((TOPIC_HEADER, ready_topic(self._options.group)))
        # Of several the last one counts, and is taken away: see `delay_service.destination`.
        kept += [(TOPIC_HEADER, level.topic) for level in reversed(way[1:])]
        return Letter(way[0].topic, None, record.key, record.value, kept, self._clock.wall_ms())

    def dead(self, record: ConsumerRecord, reason: str, now_ms: int) -> Letter:
        headers = with_origin(_without_false_origin(record), _partition(record), record.offset)
        # Where the headers are what is wrong with it, they stay as they are.
        with contextlib.suppress(ValueError):
            headers = count_failure(headers, self._failed_ms(record)).headers
        return self._dead(record, (*headers, (DEAD_HEADER, reason.encode())), now_ms)

    def _dead(self, record: ConsumerRecord, headers: tuple[Header, ...], now_ms: int) -> Letter:
        reason = last_header(headers, DEAD_HEADER) or last_header(headers, ERROR_HEADER)
        told = (reason or b"All attempts are used up.").decode("utf-8", "replace")
        written: list[tuple[str, HeaderValue]] = [
            *dead_letter_headers(headers, self._options.group)
        ]
        dead_topic = self._options.dead_topic
        return Letter(dead_topic, None, record.key, record.value, written, now_ms, told)

    def bare(self, letter: Letter) -> Letter:
        headers = [each for each in letter.headers if each[0] in _KEPT or _is_kafkas(each[0])]
        return letter._replace(key=None, value=None, headers=headers)

    def forbidden(self, topic: str, error: KafkaError) -> None:
        """Neither level topics nor dead letters have anything in their place."""
        raise error

    def forget(self) -> None:
        """It looks up nothing."""

    def _failed_ms(self, record: ConsumerRecord) -> int:
        now_ms = self._clock.wall_ms()
        return now_ms if record.timestamp < 0 else min(record.timestamp, now_ms)


def levels_to_pass(delay_ms: int, levels: tuple[Level, ...]) -> list[Level]:
    """The levels that together take as long as asked for, or a little longer.

    `ValueError`, with a sentence, if these are too many.
    """
    longest = levels[-1]
    count, rest_ms = divmod(delay_ms, longest.delay_ms)
    if count >= _LEVELS_MAX:
        raise ValueError(
            f"A delay of {show_duration(delay_ms)} is more than {_LEVELS_MAX} times that of the "
            f"longest level, {longest.name}."
        )
    rest = [level_for(rest_ms, levels)] if rest_ms or not count else []
    return [longest] * count + rest


def _without_false_origin(record: ConsumerRecord) -> tuple[Header, ...]:
    origin = last_header(record.headers, ORIGIN_HEADER)
    try:
        MessageId.parse((origin or b"").decode("ascii", "replace"))
    except ValueError:
        return tuple(each for each in record.headers if each[0] != ORIGIN_HEADER)
    return record.headers


def _partition(record: ConsumerRecord) -> str:
    return str(record.topic_partition)


def _is_kafkas(name: str) -> bool:
    return name.startswith(_FAMILY)
