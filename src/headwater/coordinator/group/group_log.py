"""What the log hears of groups: that they rebalance, and whom they lose.

Clients decide how often that happens, and a group whose members cannot agree does it many times a
second. So the shards of a broker share a budget of lines.
"""

from __future__ import annotations

import logging
from typing import Final

from headwater.base.line_budget import LineBudget
from headwater.base.printable import shortened

_logger = logging.getLogger(__name__)

LINES_MAX: Final = 20
INTERVAL_S: Final = 10.0


class GroupLog:
    """One for all groups of a broker."""

    def __init__(self) -> None:
        self._budget = LineBudget(LINES_MAX, INTERVAL_S)

    def rebalances(self, group_id: str, generation: int, reason: str, now_ms: int) -> None:
        """The members of a group are to share partitions anew, after this generation or epoch."""
        self._tell(
            f"The group {shortened(group_id)} rebalances after generation {generation}: "
            f"{shortened(reason, 300)}.",
            now_ms,
        )

    def loses(self, group_id: str, member_id: str, reason: str, now_ms: int) -> None:
        """A member has to go."""
        self._tell(f"The group {shortened(group_id)} loses {member_id}: {reason}.", now_ms)

    def _tell(self, sentence: str, now_ms: int) -> None:
        left_out = self._budget.take(now_ms / 1000)
        if left_out is not None:
            others = f" ({left_out} lines about groups were left out.)" if left_out else ""
            _logger.info("%s%s", sentence, others)
