"""Counts for a partition's breaker what is given up there, and tells when it opens and closes."""

from __future__ import annotations

import logging
from typing import Final

from headwater.base.durations import show_duration
from headwater.delay.delay_state import DelayState
from headwater.replication.partition.partition import Partition
from headwater.storage.breaker import Breaker

_PAUSED: Final = " Until it closes dead letters are refused, and who has some to send stands still."

_logger = logging.getLogger(__name__)


class BreakerWatch:
    """Owned by the partition's `PartitionDelays`, which looks after each piece of the log."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._breaker = Breaker()
        #: How many letters of the state are counted, or were there before.
        self._seen_count = 0
        self._is_told = False

    def begin(self, state: DelayState) -> None:
        """All of the log is read: what was given up before is history."""
        self._partition.log.breaker = self._breaker
        self._seen_count = state.given_up_count

    def look(self, state: DelayState, now_ms: int) -> None:
        """Count what is new, if this broker leads."""
        new_count = state.given_up_count - self._seen_count
        self._seen_count = state.given_up_count
        if not self._partition.is_leader:
            return
        rules = self._partition.log.config.delay.retry.breaker
        if new_count:
            self._breaker.add(new_count, rules, now_ms)
        is_open = self._breaker.is_open(rules, now_ms)
        if is_open == self._is_told:
            return
        self._is_told = is_open
        place = self._partition.topic_partition
        if is_open:
            _logger.warning(
                "The breaker of %s is open: %d records or more were given up within %s.%s",
                *(place, rules.letters, show_duration(rules.window_ms)),
                _PAUSED if rules.is_pausing else "",
            )
        else:
            _logger.info("The breaker of %s is closed again.", place)

    def is_open(self, now_ms: int) -> bool:
        rules = self._partition.log.config.delay.retry.breaker
        return self._breaker.is_open(rules, now_ms)
