"""What happens to a record whose handler fails: it is tried again, then skipped, or all stops.

Stopping loses nothing: the record is not committed, and whoever goes on reads it again. Skipping
does what the callback makes of it, such as sending the record to a topic for dead letters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from headwater.client.consumer.record import ConsumerRecord

#: Gets every record that is handled.
Handle = Callable[[ConsumerRecord], object]
#: Gets a record that could not be handled, and why. Its own failure stops everything.
OnSkip = Callable[[ConsumerRecord, Exception], object]


class Interrupted(Exception):
    """Trying again was called off."""


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    #: How often a record is tried again; None tries until it succeeds.
    retry_count_max: int | None = 0
    #: Before the first repetition, doubled for each further one.
    backoff_s: float = 0.1
    backoff_max_s: float = 10.0
    #: None stops everything.
    on_skip: OnSkip | None = None

    @classmethod
    def stop(cls) -> Self:
        """The first failure ends it."""
        return cls()

    @classmethod
    def retry(cls, count_max: int | None = None, *, backoff_s: float = 0.1) -> Self:
        """Try again, so often or without end; then stop."""
        return cls(retry_count_max=count_max, backoff_s=backoff_s)

    @classmethod
    def skip(cls, on_skip: OnSkip, *, retry_count_max: int = 0, backoff_s: float = 0.1) -> Self:
        """Try again so often, then tell the callback and go on with the next record."""
        return cls(retry_count_max=retry_count_max, backoff_s=backoff_s, on_skip=on_skip)

    def run(self, handle: Handle, record: ConsumerRecord, is_ending: threading.Event) -> None:
        """Handle the record; raises what it failed with if everything has to stop.

        Raises `Interrupted` if it would be tried again but `is_ending` is set: it is not done.
        """
        backoff_s = self.backoff_s
        retry_count = 0
        while True:
            try:
                handle(record)
                return
            except Exception as error:
                if self.retry_count_max is not None and retry_count >= self.retry_count_max:
                    if self.on_skip is None:
                        raise
                    self.on_skip(record, error)
                    return
            if is_ending.wait(backoff_s):
                raise Interrupted
            retry_count += 1
            backoff_s = min(2 * backoff_s, self.backoff_max_s)
