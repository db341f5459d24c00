"""What opening logs took: how many there were, and what had to be read again to trust them."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.base.counted import counted


@dataclass(slots=True)
class RecoveredLogs:
    """Counted up while logs are opened."""

    log_count: int = 0
    #: Those that were scanned, at least in part.
    scanned_count: int = 0
    scanned_bytes: int = 0
    #: What was no whole, valid batch, and everything behind it.
    cut_bytes: int = 0

    def add(self, scanned_bytes: int | None, cut_bytes: int) -> None:
        """One more log is open; None if nothing of it had to be scanned."""
        self.log_count += 1
        if scanned_bytes is not None:
            self.scanned_count += 1
            self.scanned_bytes += scanned_bytes
            self.cut_bytes += cut_bytes

    def __str__(self) -> str:
        opened = f"{counted(self.log_count, 'log')} opened"
        if not self.scanned_count:
            return opened
        cut = f", of which {self.cut_bytes:,} were cut off" if self.cut_bytes else ""
        return f"{opened}, {self.scanned_count:,} recovered from {self.scanned_bytes:,} bytes{cut}"
