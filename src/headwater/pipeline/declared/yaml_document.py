"""A YAML file as values that know their line and column, with each problem of its own form found.

PyYAML's nodes have the marks; its constructors would lose them, so the values here are made from
nodes: texts, lists and mappings. A scalar stays the text that the file has, because what a text
means depends on the field it is for, and a topic may be called `007` or `no`. The order of a
mapping is kept; a key that comes twice, an alias that leads into itself, and a file that unfolds
into more values than anybody writes are problems and no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from headwater.pipeline.declared.problems import NOWHERE, Place, Problems

VALUE_COUNT_MAX: Final = 20_000
_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"
_NULL: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class TextValue:
    """A scalar. `is_plain` tells that it has no quotes, so that `5` may mean a number."""

    place: Place
    text: str
    is_plain: bool = False
    #: Written as a block with `|`: its lines are lines of the file, from the next one on.
    is_block: bool = False
    #: The file has it on one line and letter by letter, from this column on.
    column: int | None = None
    #: A variable in it has no value, which has been said: nothing more can be told about the text.
    is_unknown: bool = False

    def place_at(self, offset: int) -> Place:
        """Where the letter at `offset` stands in the file, as exactly as that can be told."""
        line_index = self.text.count("\n", 0, offset)
        if self.is_block:
            return Place(self.place.line + 1 + line_index, 1)
        if self.column is not None:
            return Place(self.place.line, self.column + offset)
        return self.place


@dataclass(frozen=True, slots=True)
class ListValue:
    place: Place
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping, where it stands, and its value."""

    key: str
    place: Place
    value: Value


@dataclass(frozen=True, slots=True)
class MapValue:
    place: Place
    entries: tuple[Entry, ...]

    def get(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == key), None)


@dataclass(frozen=True, slots=True)
class NoValue:
    """What stands after `key:` with nothing behind it, or `null`."""

    place: Place


Value: TypeAlias = TextValue | ListValue | MapValue | NoValue


def read_document(text: str, problems: Problems) -> Value | None:
    """The one document of the file; None if its form is wrong or it is empty."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            problems.add(Place(1, 1), "the file is empty.")
            return None
        return _Conversion(text, problems).value(node)
    except yaml.MarkedYAMLError as error:
        place = _error_place(error)
        line = [*text.splitlines(), ""][min(place.line, text.count("\n") + 1) - 1]
        words = _error_words(error)
        if "${" in line and "flow" in (error.context or ""):
            words = "between braces or brackets, a value with ${...} needs quotes"
        problems.add(place, f"this is not YAML: {words}.")
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        problems.add(Place(line_number, 1), f"this is not YAML: {error.reason}.")
    except yaml.YAMLError as error:
        problems.add(NOWHERE, f"this is not YAML: {' '.join(str(error).split())}.")
    except RecursionError:
        problems.add(Place(1, 1), "the values are nested too deeply.")
    except _TooManyValuesError:
        problems.add(Place(1, 1), f"the file has more than {VALUE_COUNT_MAX} values.")
    return None


class _TooManyValuesError(Exception):
    pass


class _Conversion:
    """From PyYAML's nodes to values."""

    def __init__(self, text: str, problems: Problems) -> None:
        self._lines = text.splitlines()
        self._problems = problems
        self._count = 0
        #: The nodes that the current one is in, by identity.
        self._path: list[int] = []

    def value(self, node: yaml.Node) -> Value:
        self._count += 1
        if self._count > VALUE_COUNT_MAX:
            raise _TooManyValuesError
        place = _place(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if id(node) in self._path:
            self._problems.add(place, "this value contains itself.")
            return NoValue(place)
        self._path.append(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return ListValue(place, tuple(self.value(item) for item in node.value))
            return MapValue(place, tuple(self._entries(node)))
        finally:
            self._path.pop()

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Value:
        is_plain = node.style is None
        if is_plain and node.tag == _NULL:
            return NoValue(place)
        text = str(node.value)
        column = place.column + (0 if is_plain else 1)
        line = self._lines[place.line - 1] if place.line <= len(self._lines) else ""
        on_one_line = "\n" not in text and line[column - 1 :].startswith(text)
        return TextValue(place, text, is_plain, node.style == "|", column if on_one_line else None)

    def _entries(self, node: yaml.Node) -> Iterator[Entry]:
        seen: dict[str, Place] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            place = _place(key_node.start_mark)
            if key_node.tag == _MERGE:
                merged.append(value_node)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.add(place, "a key must be a string.")
                continue
            key = str(key_node.value)
            if key in seen:
                self._problems.add(place, f"{key!r} is here twice, first in line {seen[key].line}.")
                continue
            seen[key] = place
            yield Entry(key, place, self.value(value_node))
        for value_node in merged:
            yield from self._merged(value_node, seen)

    def _merged(self, node: yaml.Node, seen: dict[str, Place]) -> Iterator[Entry]:
        """What `<<: *name` brings in: the keys that the mapping has not itself."""
        value = self.value(node)
        for mapping in value.items if isinstance(value, ListValue) else (value,):
            if not isinstance(mapping, MapValue):
                self._problems.add(value.place, "`<<` takes a mapping.")
                continue
            for entry in mapping.entries:
                if entry.key not in seen:
                    seen[entry.key] = entry.place
                    yield entry


def is_unknown(value: Value) -> bool:
    """Whether it holds a variable without a value, at any depth."""
    if isinstance(value, TextValue):
        return value.is_unknown
    if isinstance(value, ListValue):
        return any(map(is_unknown, value.items))
    return isinstance(value, MapValue) and any(is_unknown(entry.value) for entry in value.entries)


def plain_value(value: Value) -> object:
    """The value as Python's own, with YAML's meaning of `5`, `true` and so on."""
    if isinstance(value, NoValue):
        return None
    if isinstance(value, ListValue):
        return [plain_value(item) for item in value.items]
    if isinstance(value, MapValue):
        return {entry.key: plain_value(entry.value) for entry in value.entries}
    if not value.is_plain:
        return value.text
    try:
        # Only scalars get here, so this is the resolution of one scalar and nothing else.
        loader: Any = yaml.SafeLoader("")
        tag = loader.resolve(yaml.ScalarNode, value.text, (True, False))
        return (
            value.text
            if tag == _TEXT
            else loader.construct_object(yaml.ScalarNode(tag, value.text))
        )
    except (yaml.YAMLError, ValueError, OverflowError):
        return value.text


def _place(mark: yaml.Mark) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _error_place(error: yaml.MarkedYAMLError) -> Place:
    mark = error.problem_mark or error.context_mark
    return _place(mark) if mark is not None else Place(1, 1)


def _error_words(error: yaml.MarkedYAMLError) -> str:
    words = " ".join((error.problem or error.context or "its form is wrong").split())
    if "'\\t'" in words:
        return "a tab is used for indentation, where only spaces may be"
    if "mapping values are not allowed" in words:
        return "a colon is not expected here; a string with a colon in it needs quotes"
    if error.context and error.problem:
        return f"{words}, {' '.join(error.context.split())}"
    return words
