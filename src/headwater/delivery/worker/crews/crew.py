"""What the loop of a worker needs of those who run its handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterator, Sequence
from typing import Final, Protocol

from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord

#: What a handler may raise of its record. If something that it waits for is cancelled, that is no
#: `Exception`, and no less a failure of this one record: see `is_cancelled`.
FAILURES: Final = (Exception, asyncio.CancelledError)


class Crew(Protocol):
    #: What ended it, if it was no failure of a record.
    failure: BaseException | None
    #: What the last call of `handle` was given and has not begun, because the end has come.
    left: list[ConsumerRecord]

    def start(self) -> None: ...

    def handle(self, records: list[ConsumerRecord]) -> Awaitable[None]:
        """Handle these, or begin to."""
        ...

    def stop(self) -> None:
        """The end has come; may be called from a signal handler."""
        ...

    def quiet(
        self, timeout_s: float, partitions: Collection[TopicPartition] | None = None
    ) -> Awaitable[bool]:
        """Wait until nothing of these partitions, or of all, is left to do; tells whether."""
        ...

    def end(self) -> Awaitable[None]:
        """Nobody waits for anything any more."""
        ...


def is_cancelled(error: BaseException) -> bool:
    """Whether it is this very task that somebody cancels, and not what its handler waited for."""
    task = asyncio.current_task()
    is_meant = task is not None and task.cancelling() > 0
    return is_meant and isinstance(error, asyncio.CancelledError)


def first_of_each(records: Sequence[ConsumerRecord]) -> Iterator[ConsumerRecord]:
    """The first of each partition."""
    seen: set[tuple[str, int]] = set()
    for record in records:
        place = (record.topic, record.partition)
        if place not in seen:
            seen.add(place)
            yield record
