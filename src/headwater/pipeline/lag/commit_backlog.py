"""What is still to be committed, and when to try: the newest offsets of each group, no more.

Offsets that wait are replaced by newer ones of the same group, so the backlog is no larger than the
groups and partitions are many, however long a cluster cannot be reached. What has been committed is
not committed again; what was refused, because its topic is gone for example, is given up until
there are newer offsets. A group whose commit failed for a passing reason waits before the next
attempt, twice as long each time up to a limit, and only its first failure in a row is worth a line
in a log.

Nothing here reads a clock or sends anything. It has one owner, who takes care of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headwater.base.ids import TopicPartition
from headwater.pipeline.lag.finished_batch import GroupKey

RETRY_DELAY_MIN_S: Final = 1.0
RETRY_DELAY_MAX_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class DueCommit:
    """Offsets to commit now."""

    key: GroupKey
    positions: Mapping[TopicPartition, int]
    note: str


@dataclass(slots=True)
class _Group:
    settled: dict[TopicPartition, int] = field(default_factory=dict)
    waiting: dict[TopicPartition, int] = field(default_factory=dict)
    note: str = ""
    refusal: str = ""
    failure_count: int = 0
    not_before_s: float = 0.0


class CommitBacklog:
    """The groups of all queries that somebody listens to."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}

    def add(self, key: GroupKey, positions: Mapping[TopicPartition, int], note: str) -> None:
        """A batch was finished: these are its group's offsets now."""
        group = self._groups.setdefault(key, _Group())
        for partition, offset in positions.items():
            if group.settled.get(partition) == offset:
                group.waiting.pop(partition, None)
            else:
                group.waiting[partition] = offset
        group.note = note

    def next_due(self, now_s: float) -> DueCommit | None:
        """A commit whose time has come, if there is one."""
        for key, group in self._groups.items():
            if group.waiting and group.not_before_s <= now_s:
                return DueCommit(key, dict(group.waiting), group.note)
        return None

    def wait_s(self, now_s: float) -> float | None:
        """How long until something is due; None if nothing waits."""
        waiting = [group.not_before_s for group in self._groups.values() if group.waiting]
        return max(0.0, min(waiting) - now_s) if waiting else None

    def settled(self, due: DueCommit, refusal: str = "") -> bool:
        """`due` was committed, or refused for good; what was added meanwhile stays.

        Whether there is news: a `refusal` that the last commits of the group did not meet.
        """
        group = self._groups[due.key]
        group.settled |= due.positions
        group.waiting = {tp: at for tp, at in group.waiting.items() if due.positions.get(tp) != at}
        group.failure_count = 0
        group.not_before_s = 0.0
        is_news = refusal not in ("", group.refusal)
        group.refusal = refusal
        return is_news

    def failed(self, due: DueCommit, now_s: float) -> bool:
        """`due` was not committed; whether that is news."""
        group = self._groups[due.key]
        delay_s = min(RETRY_DELAY_MIN_S * 2**group.failure_count, RETRY_DELAY_MAX_S)
        group.not_before_s = now_s + delay_s
        group.failure_count += 1
        return group.failure_count == 1

    def hurry(self) -> None:
        """Try all at the next occasion, for one who is about to leave."""
        for group in self._groups.values():
            group.not_before_s = 0.0

    @property
    def is_empty(self) -> bool:
        return not any(group.waiting for group in self._groups.values())
