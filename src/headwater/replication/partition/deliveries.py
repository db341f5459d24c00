"""What a partition tells those who deliver its delayed messages: see `headwater.delay`."""

from __future__ import annotations

from typing import Protocol


class Deliveries(Protocol):
    def wake(self) -> None:
        """The log has grown, or the partition has another role."""
        ...

    def truncated(self) -> None:
        """The log was cut back."""
        ...

    def log_start_raised(self) -> None:
        """Records were deleted."""
        ...

    def log_replaced(self) -> None:
        """The log lies in another directory now."""
        ...
