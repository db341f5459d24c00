"""How fast letters go: so many a second, evenly. Sans-io: time comes in."""

from __future__ import annotations

from typing import Final

#: A transaction has at most so many letters.
BATCH_LETTERS_MAX: Final = 5000
#: With a rate, as many as go in this time: so that an order is obeyed soon.
_BATCH_S: Final = 0.5


class Pace:
    """What was not used in the past is not caught up with."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next_s = 0.0

    @property
    def read_letters(self) -> int:
        """So many are read at a time, most of which a filter may leave out."""
        return BATCH_LETTERS_MAX

    @property
    def sent_letters(self) -> int:
        """So many are sent at a time."""
        if self._rate is None:
            return BATCH_LETTERS_MAX
        return max(1, min(BATCH_LETTERS_MAX, int(self._rate * _BATCH_S)))

    def wait_s(self, now_s: float) -> float:
        """How long it is until the next may go."""
        return max(0.0, self._next_s - now_s)

    def sent(self, count: int, now_s: float) -> None:
        if self._rate is not None:
            self._next_s = max(self._next_s, now_s) + count / self._rate
