"""How long a shipper waits for a topic that the cluster does not have.

A topic that is created a moment after its first records were spooled should get them; one whose
name is a mistake must not hold up all others. So a missing topic is waited for once, and for a
while after that its records are refused without asking.
"""

from __future__ import annotations

from headwater.client.errors import DeadlineError, UnknownTopicError

PATIENCE_MS = 60_000
MEMORY_MS = 300_000


class MissingTopics:
    """Sans-io: the caller says what time it is."""

    def __init__(self, patience_ms: float = PATIENCE_MS, memory_ms: float = MEMORY_MS) -> None:
        self._patience_ms = patience_ms
        self._memory_ms = memory_ms
        self._missing_since_ms: dict[str, float] = {}
        self._given_up_ms: dict[str, float] = {}

    def check(self, topic: str, now_ms: float) -> None:
        """Raise if it is known that there is no such topic."""
        given_up_ms = self._given_up_ms.get(topic)
        if given_up_ms is None:
            return
        if now_ms < given_up_ms + self._memory_ms:
            raise DeadlineError(f"There is no topic {topic!r}.") from UnknownTopicError.topic(topic)
        del self._given_up_ms[topic]

    def is_given_up(self, topic: str, now_ms: float) -> bool:
        """The cluster said that there is no such topic; whether it has been waited for enough."""
        if topic in self._given_up_ms:
            return True
        since_ms = self._missing_since_ms.setdefault(topic, now_ms)
        if now_ms < since_ms + self._patience_ms:
            return False
        self.give_up(topic, now_ms)
        return True

    def give_up(self, topic: str, now_ms: float) -> None:
        """Refuse its records for a while."""
        self._missing_since_ms.pop(topic, None)
        self._given_up_ms[topic] = now_ms

    def found(self, topic: str) -> None:
        if self._missing_since_ms:
            self._missing_since_ms.pop(topic, None)
