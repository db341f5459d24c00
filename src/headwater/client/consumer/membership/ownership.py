"""What a consumer has, and what it must be told of before the membership can go on.

One event at a time. It does not change once it is told, because the polling thread may be in the
middle of handling it; whatever has happened meanwhile is told after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.checks import check
from headwater.base.ids import TopicPartition
from headwater.client.consumer.membership.membership import Notify, RebalanceEvent, RebalanceKind


class Ownership:
    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._event: RebalanceEvent | None = None
        #: As the consumer said when it had handled the last event.
        self.owned: frozenset[TopicPartition] = frozenset()

    @property
    def event(self) -> RebalanceEvent | None:
        return self._event

    def tell(self, kind: RebalanceKind, partitions: Iterable[TopicPartition]) -> None:
        check(self._event is None, "an event was told before the last one was handled")
        self._event = RebalanceEvent(kind, frozenset(partitions))
        self._notify()

    def handled(self, owned: Iterable[TopicPartition]) -> None:
        check(self._event is not None, "an event was handled that nobody had told")
        self._event = None
        self.owned = frozenset(owned)

    def clear(self) -> None:
        """The consumer has given everything up by itself."""
        self._event = None
        self.owned = frozenset()
