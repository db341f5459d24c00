"""Which records of a topic are traced: each with the same probability, whatever came before it.

Instead of drawing for every record, the sampler draws how many to leave out until the next, which
has the same effect: the gaps between successes are geometric. So a record that is not traced costs
one look into a dictionary. Threads may count the same record twice, which shifts a gap by one.
"""

from __future__ import annotations

import math
import random
from typing import Final

#: No record of the topic is traced.
_NEVER: Final = math.inf


class Sampler:
    """Called from any thread."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator
        self._shares: dict[str, float] = {}
        #: By topic, how many records are left out before the next one that is traced.
        self.left: dict[str, float] = {}

    @property
    def topics(self) -> list[str]:
        """Those whose share is known."""
        return sorted(self._shares)

    def share(self, topic: str) -> float | None:
        """Which share of the topic's records is traced; None if that is not known."""
        return self._shares.get(topic)

    def set_share(self, topic: str, share: float) -> None:
        """From now on that share is traced."""
        if self._shares.get(topic) != share:
            self._shares[topic] = share
            self.left[topic] = self._gap(share)

    def take(self, topic: str) -> bool:
        """Whether the record at hand is traced; the next question is about the next record."""
        left = self.left.get(topic)
        if left is None:
            return False
        if left > 0:
            self.left[topic] = left - 1
            return False
        self.left[topic] = self._gap(self._shares[topic])
        return True

    def _gap(self, share: float) -> float:
        if share <= 0.0:
            return _NEVER
        if share >= 1.0:
            return 0
        # The generator's zero has no logarithm.
        drawn = 1.0 - self._generator.random()
        gap = math.log(drawn) / math.log1p(-share)
        return math.floor(gap) if math.isfinite(gap) else _NEVER
