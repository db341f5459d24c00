"""The values of a table's settings, with typed access.

Asking for a setting that the table does not have, or for another type than its row says, is a
mistake in the program and fails as such. Values do not change: `with_overrides` gives new ones.
"""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from headwater.base.checks import InvariantError, check
from headwater.base.setting import Setting, SettingError, SettingValue

T = TypeVar("T")


class SettingValues:
    """What each setting of a table is, and which of them somebody set.

    `sources` says for each explicitly set value where it comes from; a setting that is at its
    default is not in there.
    """

    def __init__(
        self,
        area: str,
        rows: Mapping[str, Setting],
        values: Mapping[str, SettingValue],
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._area = area
        self._rows = rows
        self._values = dict(values)
        self.sources: Mapping[str, str] = MappingProxyType(dict(sources or {}))

    def with_overrides(self, texts: Mapping[str, str], source: str = "") -> "SettingValues":
        """These values with some replaced by what `source` says; raises `SettingError`."""
        values = dict(self._values)
        sources = dict(self.sources)
        for name, text in texts.items():
            row = self._rows.get(name)
            if row is None:
                raise unknown_setting(name, self._rows, self._area, source)
            values[name] = row.parse(text, source)
            sources[name] = source
        return SettingValues(self._area, self._rows, values, sources)

    def value(self, name: str) -> SettingValue:
        """The value whatever its type, for code that treats all settings alike."""
        check(name in self._values, "the program asked for %s, which is no setting", name)
        return self._values[name]

    def render(self, name: str, *, reveal: bool = False) -> str | None:
        """The value as text; passwords are hidden unless revealed."""
        value = self.value(name)
        return self._rows[name].render(value, reveal=reveal)

    def is_set(self, name: str) -> bool:
        """Whether somebody chose the value, were it the default."""
        return name in self.sources

    def boolean(self, name: str) -> bool:
        return self._required(name, bool)

    def integer(self, name: str) -> int:
        return self._required(name, int)

    def number(self, name: str) -> float:
        return self._required(name, float)

    def text(self, name: str) -> str:
        return self._required(name, str)

    def texts(self, name: str) -> tuple[str, ...]:
        return self._required(name, tuple)

    def optional_integer(self, name: str) -> int | None:
        return self._optional(name, int)

    def optional_number(self, name: str) -> float | None:
        return self._optional(name, float)

    def optional_text(self, name: str) -> str | None:
        return self._optional(name, str)

    def optional_texts(self, name: str) -> tuple[str, ...] | None:
        return self._optional(name, tuple)

    def _optional(self, name: str, wanted: type[T]) -> T | None:
        value = self.value(name)
        # The exact type, because Python counts a bool as an int and Kafka does not.
        if value is None or (type(value) is wanted and isinstance(value, wanted)):
            return value
        raise InvariantError(f"the program read {name} as {wanted.__name__}, which it is not")

    def _required(self, name: str, wanted: type[T]) -> T:
        value = self._optional(name, wanted)
        if value is None:
            raise InvariantError(f"the program needs {name}, which may be unset")
        return value


def unknown_setting(name: str, known: Iterable[str], area: str, source: str = "") -> SettingError:
    """The error for a name that no row has, with the nearest ones that exist."""
    place = f" in {source}" if source else ""
    near = nearest_settings(name, known)
    hint = f"; did you mean {' or '.join(near)}?" if near else "."
    return SettingError(f"There is no {area} setting {name!r}{place}{hint}")


def nearest_settings(name: str, known: Iterable[str]) -> list[str]:
    """The names that are most like one that is not there."""
    return difflib.get_close_matches(name, list(known), n=3)
