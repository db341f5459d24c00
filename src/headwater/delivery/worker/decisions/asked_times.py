"""The times after which handlers want a record back, and the longest that its retry topic allows.

A topic refuses what asks for more. A record is not worth less for that: it asks for the longest
time there is.
"""

from __future__ import annotations

import logging

from headwater.base.durations import show_duration

_logger = logging.getLogger(__name__)


class AskedTimes:
    """Of one worker."""

    def __init__(self, group: str) -> None:
        self._group = group
        #: None if nobody knows of one.
        self.longest_ms: int | None = None
        self._is_told = False

    def instead_of(self, asked_ms: int | None) -> str | None:
        """What to ask for in place of what would be refused; None if that is fine."""
        longest_ms = self.longest_ms
        if asked_ms is None or longest_ms is None or asked_ms <= longest_ms:
            return None
        if not self._is_told:
            self._is_told = True
            _logger.warning(
                "A handler wants a record back after %s, and delay.max.ms of the retry topic of %s "
                "is %s: it comes after that, and so will others.",
                *(show_duration(asked_ms), self._group, show_duration(longest_ms)),
            )
        return show_duration(longest_ms)
