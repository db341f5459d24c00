"""A list of delayed messages of one partition, page after page.

A page begins with what is due when the last one of the page before is, without the messages that
are listed already. Whatever a broker lists twice is left out here, and one that has no more to say
than before, as brokers do that know no pages, ends the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.client.admin.delayed_requests import Question
from headwater.wire.cluster_messages.describe_delayed import DescribedMessage

#: What a broker lists of a partition in one answer.
PAGE_MAX: Final = 1000
#: Of more that are due in one millisecond no further ones are listed: a broker refuses to look.
SKIP_MAX: Final = 100_000


class DelayedPages:
    def __init__(self, from_ms: int, to_ms: int, limit: int) -> None:
        self._from_ms = from_ms
        self._to_ms = to_ms
        self._limit = limit
        self._found: dict[int, DescribedMessage] = {}
        self._is_done = False
        #: Whether there are messages beyond those that are listed.
        self.has_more = False

    @property
    def messages(self) -> Sequence[DescribedMessage]:
        return list(self._found.values())

    def question(self) -> Question | None:
        """What to ask for next; None if the list is complete."""
        if self._is_done:
            return None
        skip = 0
        for message in reversed(self._found.values()):
            if message.due_ms != self._from_ms:
                break
            skip += 1
        if skip > SKIP_MAX:
            return None
        left_count = self._limit - len(self._found)
        return Question(
            from_ms=self._from_ms, to_ms=self._to_ms, limit=min(left_count, PAGE_MAX), skip=skip
        )

    def add(self, page: Sequence[DescribedMessage], *, has_more: bool) -> None:
        known_count = len(self._found)
        for message in page:
            self._found.setdefault(message.offset, message)
        if page:
            self._from_ms = page[-1].due_ms
        is_stuck = len(self._found) == known_count
        self._is_done = not has_more or is_stuck or len(self._found) >= self._limit
        self.has_more = has_more
