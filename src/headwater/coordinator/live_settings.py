"""Settings as they are now: some change while a broker runs, so they are read when they count."""

from __future__ import annotations

from typing import Protocol


class LiveSettings(Protocol):
    """What coordinators need of the broker's settings; names are Kafka's."""

    def is_set(self, name: str) -> bool: ...

    def integer(self, name: str) -> int: ...

    def boolean(self, name: str) -> bool: ...

    def text(self, name: str) -> str: ...

    def texts(self, name: str) -> tuple[str, ...]: ...


class LiveGroupSettings(LiveSettings, Protocol):
    """Those of coordinators of groups, which may have settings of their own."""

    def group_integer(self, group_id: str, name: str) -> int: ...
