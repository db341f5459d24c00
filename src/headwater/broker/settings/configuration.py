"""Reads what a broker is told when it starts: a properties file, then single assignments over it.

Whoever writes a configuration wants to hear of everything that is wrong with it, not of one thing
at each attempt. So faults are collected, and told when all of it has been read. A name that a file
of Kafka's may well have, and Headwater does not know, is no fault: as with Kafka it is left out,
with a warning. On the command line it is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headwater.base.properties_file import Property, properties_in
from headwater.base.setting import refuse
from headwater.base.setting_values import nearest_settings
from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.static_settings import contradictions
from headwater.broker.settings.tables import BROKER_SETTINGS

ASSIGNMENT_SOURCE = "--set"


class Configuration:
    """What has been read so far; `settle` gives the values, or tells what is wrong."""

    def __init__(self) -> None:
        #: With the defaults where nothing is set, or what is set cannot be read.
        self.values = BROKER_SETTINGS.defaults()
        #: What is left out, in a sentence for each file.
        self.warnings: list[str] = []
        self._faults: list[str] = []
        self._unread: set[str] = set()

    def read_file(self, text: str, name: str) -> None:
        """The text of a properties file."""
        properties: dict[str, Property] = {}
        for found in properties_in(text, name):
            if isinstance(found, SettingError):
                self._faults += found.sentences
            else:
                properties[found.name] = found
        texts: dict[str, str] = {}
        unknown: list[Property] = []
        for each in properties.values():
            if each.name not in BROKER_SETTINGS:
                unknown.append(each)
            elif self._is_readable(each.name, each.value, f"line {each.line} of {name}"):
                texts[each.name] = each.value
        self.values = self.values.with_overrides(texts, name)
        if unknown:
            self.warnings.append(_left_out(unknown, name))

    def read_assignments(self, assignments: Iterable[str]) -> None:
        """Arguments of the form `name=value`; the last one of a name counts."""
        texts: dict[str, str] = {}
        for assignment in assignments:
            name, equals, text = assignment.partition("=")
            if equals and name.strip():
                texts[name.strip()] = text
            else:
                self._faults.append(f"{assignment!r} sets nothing: it must be name=value.")
        self.read_texts(texts, ASSIGNMENT_SOURCE)

    def read_texts(self, texts: Mapping[str, str], source: str) -> None:
        """Values by name, from whom every name must be one of ours."""
        readable = {
            name: text for name, text in texts.items() if self._is_readable(name, text, source)
        }
        self.values = self.values.with_overrides(readable, source)

    def settle(self) -> SettingValues:
        """The values; raises `SettingError` with every fault of all that was read."""
        refuse([*self._faults, *contradictions(self.values, self._unread)])
        return self.values

    def _is_readable(self, name: str, text: str, place: str) -> bool:
        try:
            BROKER_SETTINGS.defaults().with_overrides({name: text}, place)
        except SettingError as error:
            self._faults += error.sentences
            self._unread.add(name)
            return False
        return True


def _left_out(unknown: Sequence[Property], file: str) -> str:
    """Every name on one line, with what may have been meant."""
    names = [f"{each.name} (line {each.line}{_hint(each.name)})" for each in unknown]
    what = "a setting" if len(names) == 1 else f"{len(names)} settings"
    return f"{file} has {what} that Headwater does not know and leaves out: {', '.join(names)}."


def _hint(name: str) -> str:
    near = nearest_settings(name, (row.name for row in BROKER_SETTINGS))
    return f"; did you mean {' or '.join(near)}?" if near else ""
