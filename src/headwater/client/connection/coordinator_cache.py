"""Which broker coordinates what, as far as a client knows.

The driver fills it in; whoever is told that a broker does not coordinate something (any more) has
it forgotten, and the next request to that coordinator looks for it first.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode
from headwater.client.machines.ask import CoordinatorOf

#: Errors after which the coordinator has to be looked for again.
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class CoordinatorCache:
    def __init__(self) -> None:
        self._broker_ids: dict[CoordinatorOf, int] = {}

    def get(self, coordinator: CoordinatorOf) -> int | None:
        return self._broker_ids.get(coordinator)

    def learn(self, coordinator: CoordinatorOf, broker_id: int) -> None:
        self._broker_ids[coordinator] = broker_id

    def forget(self, coordinator: CoordinatorOf) -> None:
        self._broker_ids.pop(coordinator, None)

    def note_error(self, coordinator: CoordinatorOf, error_code: int) -> None:
        """Forget it if an answer with this error code means that it has moved."""
        if error_code in MOVED:
            self.forget(coordinator)
