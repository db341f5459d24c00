"""What the user has to hear, by way of a poll: each once, in the order in which it happened.

The loop adds, the polling thread takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.errors import InvalidOffsetError

#: Who does not poll does not need to hear more.
_COUNT_MAX: Final = 100


class Failures:
    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._errors: deque[KafkaError] = deque()

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, error: KafkaError) -> None:
        if len(self._errors) < _COUNT_MAX:
            self._errors.append(error)
        self._notify()

    def take(self) -> KafkaError | None:
        return self._errors.popleft() if self._errors else None

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Somebody has chosen other positions for these: what was wrong with them is over."""
        for error in list(self._errors):
            if isinstance(error, InvalidOffsetError) and error.topic_partition in partitions:
                self._errors.remove(error)
