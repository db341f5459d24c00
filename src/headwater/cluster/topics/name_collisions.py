"""Finds topics whose names differ from a new one only by `.` and `_`.

Names of metrics replace the dot by an underscore, so two such topics would share their metrics.
Kafka therefore refuses the second one.
"""

from __future__ import annotations

from collections.abc import Iterable


class NameCollisions:
    """The names that exist, by what they collide under."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        # A name without either character collides with none but itself.
        if "." in name or "_" in name:
            self._names[_unified(name)] = name

    def discard(self, name: str) -> None:
        if self._names.get(_unified(name)) == name:
            del self._names[_unified(name)]

    def find(self, name: str) -> str | None:
        """Another topic that the name collides with."""
        other = self._names.get(_unified(name))
        return None if other == name else other


def _unified(name: str) -> str:
    return name.replace(".", "_")
