"""Variables of a pipeline's file: `${name}` in any value, and `${env:NAME}` for the environment.

A variable is declared with its default under `variables:`; one without a default must be given on
the command line. `$${` stands for `${` itself. Keys are never substituted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headwater.pipeline.declared.problems import NOWHERE, Problems, suggestion
from headwater.pipeline.declared.yaml_document import (
    Entry,
    ListValue,
    MapValue,
    NoValue,
    TextValue,
    Value,
)

SECTION: Final = "variables"
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ENVIRONMENT: Final = "env:"


class Variables:
    """The values by name, and which of them were used."""

    def __init__(
        self, given: Mapping[str, str], environment: Mapping[str, str], problems: Problems
    ) -> None:
        self._given = given
        self._environment = environment
        self._problems = problems
        #: By name; None is one without a default that was not given either.
        self._values: dict[str, str | None] = dict(given)
        self._known: set[str] = set()

    def declare(self, section: Value | None) -> None:
        """Take the defaults under `variables:`."""
        if section is None or isinstance(section, NoValue):
            return
        if not isinstance(section, MapValue):
            self._problems.add(section.place, "'variables' must be a mapping of names to defaults.")
            return
        for entry in section.entries:
            if not _NAME.fullmatch(entry.key):
                self._problems.add(
                    entry.place,
                    f"{entry.key!r} is not a name for a variable: use letters, digits, '_', '-' "
                    "and '.'.",
                )
                continue
            self._known.add(entry.key)
            if isinstance(entry.value, ListValue | MapValue):
                self._problems.add(
                    entry.value.place, f"the default of variable {entry.key!r} must be a string."
                )
            elif entry.key not in self._given:
                default = None if isinstance(entry.value, NoValue) else self._text(entry.value).text
                self._values[entry.key] = default

    def substitute(self, value: Value) -> Value:
        """The value with variables put in, at any depth."""
        if isinstance(value, TextValue):
            return self._text(value) if "${" in value.text else value
        if isinstance(value, ListValue):
            return replace(value, items=tuple(map(self.substitute, value.items)))
        if isinstance(value, MapValue):
            entries = (
                Entry(entry.key, entry.place, self.substitute(entry.value))
                for entry in value.entries
            )
            return replace(value, entries=tuple(entries))
        return value

    def refuse_unknown(self) -> None:
        """Complain about what was given and is neither declared nor used."""
        for name in self._given:
            if name not in self._known:
                advice = suggestion(name, sorted(self._known))
                self._problems.add(NOWHERE, f"the file has no variable {name!r}{advice}")

    def _text(self, value: TextValue) -> TextValue:
        def replacement(match: re.Match[str]) -> str:
            if match[1] is None:
                return "${"
            return self._value_of(match[1].strip(), value, match.start())

        count = len(self._problems)
        text = _REFERENCE.sub(replacement, value.text)
        return replace(
            value,
            text=text,
            column=value.column if text == value.text else None,
            is_unknown=len(self._problems) > count or None in self._used(value.text),
        )

    def _used(self, text: str) -> list[str | None]:
        names = (match[1] for match in _REFERENCE.finditer(text) if match[1] is not None)
        return [self._values.get(name.strip(), "") for name in names]

    def _value_of(self, name: str, where: TextValue, offset: int) -> str:
        place = where.place_at(offset)
        if name.startswith(_ENVIRONMENT):
            variable = name.removeprefix(_ENVIRONMENT)
            if variable not in self._environment:
                self._problems.add(place, f"the environment has no variable {variable!r}.")
            return self._environment.get(variable, "")
        if name not in self._values:
            advice = suggestion(name, sorted(self._values))
            self._problems.add(place, f"there is no variable {name!r}{advice}")
            self._known.add(name)
            return ""
        self._known.add(name)
        found = self._values[name]
        if found is None:
            self._problems.add(
                place, f"variable {name!r} has no default: give it with --set {name}=VALUE."
            )
        return found or ""
