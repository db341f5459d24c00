"""Whether the user still polls: `max.poll.interval.ms`.

Heartbeats only show that the process is alive. A consumer whose user has stopped to poll keeps its
partitions from others and reads nothing, so it leaves its group when the interval is over, and
joins again when the user polls again. Nor does one join whose user has never polled: it could not
let go of its partitions when others come.
"""

from __future__ import annotations


class PollLimit:
    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._polled_s: float | None = None
        #: Whether the interval was found to be over, and the user has not polled since; or never.
        self.is_overdue = True

    @property
    def due_s(self) -> float:
        """When the interval is over unless the user polls before."""
        return (self._polled_s or 0.0) + self._interval_s

    def polled(self, now_s: float) -> None:
        self._polled_s = now_s
        self.is_overdue = False

    def start_anew(self, now_s: float) -> None:
        """The interval begins now, for a user who has polled before."""
        if self._polled_s is not None:
            self.polled(now_s)

    def find_overdue(self, now_s: float) -> bool:
        """Whether the interval is over by now, and was not found to be so before."""
        if self.is_overdue or now_s < self.due_s:
            return False
        self.is_overdue = True
        return True

    @property
    def reason(self) -> str:
        return (
            f"the consumer was not polled for {self._interval_s:g} s (max.poll.interval.ms): what "
            "is done with the records takes too long; poll fewer at a time (max.poll.records), or "
            "allow more time"
        )
