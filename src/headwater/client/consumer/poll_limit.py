"""Whether the user still polls: `max.poll.interval.ms`.

Heartbeats only show that the process is alive. A consumer whose user has stopped to poll keeps its
partitions from others and reads nothing, so it leaves its group when the interval is over, and
joins again when the user polls again.
"""

from __future__ import annotations


class PollLimit:
    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._polled_s = 0.0
        #: Whether the interval was found to be over, and the user has not polled since.
        self.is_overdue = False

    @property
    def due_s(self) -> float:
        """When the interval is over unless the user polls before."""
        return self._polled_s + self._interval_s

    def polled(self, now_s: float) -> None:
        self._polled_s = now_s
        self.is_overdue = False

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
