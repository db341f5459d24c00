"""Until when this broker's session with the metadata store lives for certain.

A broker that is cut off from the store goes on believing in what it leads and coordinates, long
after others have taken it over. Of what it writes nothing is acknowledged, since nobody follows it;
but what it says from memory may be old. Nobody can have taken over before the session is over, and
that is not before the store has heard nothing for the session's timeout. So the broker asks the
store for something every now and then, and knows: until then, counted from when it asked.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from headwater.base.errors import KafkaError
from headwater.cluster.node_locations import CONTROLLER
from headwater.cluster.store.errors import SessionExpiredError, StoreError
from headwater.cluster.store.metadata_store import MetadataStore

#: The store is asked so often in the time of a timeout.
_QUESTIONS: Final = 6


class SessionLease:
    """Of one broker, for one session after the other."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._until_s = -math.inf

    @property
    def holds(self) -> bool:
        return self._now_s() < self._until_s

    def end(self) -> None:
        self._until_s = -math.inf

    async def keep(self, session: MetadataStore) -> None:
        """Ask again and again, until the session is over."""
        timeout_s = session.timeout_s
        if timeout_s is None:
            self._until_s = math.inf
            return
        while True:
            asked_s = self._now_s()
            try:
                await session.exists(CONTROLLER)
                self._until_s = asked_s + timeout_s
            except SessionExpiredError:
                self.end()
                return
            except (StoreError, KafkaError):
                pass  # It is asked again; what is known holds for as long as it holds.
            await asyncio.sleep(timeout_s / _QUESTIONS)
