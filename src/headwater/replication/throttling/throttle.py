"""One side of throttled replication: what this broker sends as a leader, or fetches as a follower.

A replica is throttled for one of two reasons, or for both:

    listed     a setting of its topic names it, as in Kafka: all of these together are given the
               rate that a setting of the broker says, and all that they carry counts
    added      its partition moves to this broker, or from here to another one, with a throttle: all
               that such replicas carry is measured together, and each goes on while that is no more
               than its own move may have

Only what is listed or added now is known here; what is not costs one look at an empty dict.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from headwater.base.byte_rate import WINDOW_COUNT, WINDOW_MS, ByteRate
from headwater.base.clocks import Clock

#: A partition: the id of its topic, and its number.
ThrottledKey = tuple[uuid.UUID, int]


class _Reasons(NamedTuple):
    is_listed: bool
    #: What its move may have, in bytes a second; 0 without a throttle.
    move_rate: int


_NONE: Final = _Reasons(is_listed=False, move_rate=0)


class Throttle:
    """Its owner is the event loop."""

    def __init__(
        self,
        limit: Callable[[], int],
        clock: Clock,
        *,
        window_count: int = WINDOW_COUNT,
        window_ms: int = WINDOW_MS,
    ) -> None:
        """`limit` tells what listed replicas may have right now."""
        self._limit = limit
        self._clock = clock
        self._listed_rate = ByteRate(window_count, window_ms)
        self._added_rate = ByteRate(window_count, window_ms)
        self._reasons: dict[ThrottledKey, _Reasons] = {}

    def __len__(self) -> int:
        return len(self._reasons)

    def __iter__(self) -> Iterator[ThrottledKey]:
        return iter(list(self._reasons))

    def take_note(self, key: ThrottledKey, *, is_listed: bool, move_rate: int) -> None:
        """Why a partition is throttled from now on."""
        if is_listed or move_rate:
            self._reasons[key] = _Reasons(is_listed, move_rate)
        elif self._reasons:
            self._reasons.pop(key, None)

    def forget(self, key: ThrottledKey) -> None:
        """It is not throttled any more."""
        self._reasons.pop(key, None)

    def wait_ms(self, key: ThrottledKey, *, is_added: bool) -> float:
        """How long a replica has to wait until it may have more; 0.0 if it need not."""
        reasons = self._reasons.get(key, _NONE)
        if reasons is _NONE:
            return 0.0
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._listed_rate.wait_ms(self._limit(), now_ms) if reasons.is_listed else 0.0
        if is_added and reasons.move_rate:
            wait_ms = max(wait_ms, self._added_rate.wait_ms(reasons.move_rate, now_ms))
        return wait_ms

    def record(self, key: ThrottledKey, size_bytes: int, *, is_added: bool) -> None:
        """A replica has got so much."""
        reasons = self._reasons.get(key, _NONE)
        if reasons is _NONE or not size_bytes:
            return
        now_ms = self._clock.monotonic_ms()
        if reasons.is_listed:
            self._listed_rate.record(size_bytes, now_ms)
        if is_added and reasons.move_rate:
            self._added_rate.record(size_bytes, now_ms)
