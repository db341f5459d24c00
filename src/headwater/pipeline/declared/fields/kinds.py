"""The kinds of values that fields of a pipeline's file have: how each is read, and its name.

A kind reads a value of the document, and answers None after it has said what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headwater.pipeline.declared.fields.durations import DurationError, parse_duration_ms
from headwater.pipeline.declared.problems import Problems, listed, suggestion
from headwater.pipeline.declared.yaml_document import (
    ListValue,
    MapValue,
    NoValue,
    TextValue,
    Value,
    plain_value,
)
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.table.local_path import local_path

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Kind(NamedTuple):
    """What the reference calls it, and how it is read: (value, the field's name, problems)."""

    words: str
    read: Callable[[Value, str, Problems], Any]


def _shape(value: Value) -> str:
    if isinstance(value, ListValue):
        return "a list"
    return "a mapping" if isinstance(value, MapValue) else "nothing"


def _read_text(value: Value, field: str, problems: Problems) -> str | None:
    if not isinstance(value, TextValue):
        problems.add(value.place, f"{field!r} must be a string, not {_shape(value)}.")
        return None
    if not value.text.strip():
        problems.add(value.place, f"{field!r} is empty.")
        return None
    return value.text


def _read_line(value: Value, field: str, problems: Problems) -> str | None:
    text = _read_text(value, field, problems)
    return text if text is None else text.strip()


def _read_lake(value: Value, field: str, problems: Problems) -> str | None:
    text = _read_line(value, field, problems)
    if text is None:
        return None
    try:
        local_path(text)
    except LakeError:
        problems.add(
            value.place,
            f"{field!r} cannot be {text!r}: a lake needs a local or mounted directory, because its "
            "commits need links, which object stores do not have.",
        )
        return None
    return text


def _read_topic(value: Value, field: str, problems: Problems) -> str | None:
    text = _read_line(value, field, problems)
    if text is not None and (not _TOPIC.fullmatch(text) or text in (".", "..")):
        problems.add(
            value.place,
            f"{text!r} is not a name for a topic: use up to 249 letters, digits, '.', '_' and '-'.",
        )
        return None
    return text


def _read_flag(value: Value, field: str, problems: Problems) -> bool | None:
    if isinstance(value, TextValue) and value.text.strip().lower() in _FLAGS:
        return _FLAGS[value.text.strip().lower()]
    found = repr(value.text) if isinstance(value, TextValue) else _shape(value)
    problems.add(value.place, f"{field!r} must be true or false, not {found}.")
    return None


def _read_count(value: Value, field: str, problems: Problems) -> int | None:
    text = value.text.strip().replace("_", "") if isinstance(value, TextValue) else ""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII) and int(text) > 0:
        return int(text)
    found = repr(value.text) if isinstance(value, TextValue) else _shape(value)
    problems.add(value.place, f"{field!r} must be a whole number above 0, not {found}.")
    return None


def _read_duration(value: Value, field: str, problems: Problems) -> int | None:
    text = _read_line(value, field, problems)
    if text is None:
        return None
    try:
        return parse_duration_ms(text)
    except DurationError as error:
        problems.add(value.place, f"{field!r}: {error}")
        return None


def _read_list(value: Value, field: str, problems: Problems) -> tuple[str, ...] | None:
    """A list of texts, or one text with commas, so that a variable may hold several."""
    found: list[str] = []
    if isinstance(value, TextValue):
        found = [part.strip() for part in value.text.split(",") if part.strip()]
    elif isinstance(value, ListValue):
        for item in value.items:
            if not isinstance(item, TextValue) or not item.text.strip():
                problems.add(item.place, f"{field!r} must be a list of strings.")
                return None
            found.append(item.text.strip())
    else:
        problems.add(value.place, f"{field!r} must be a list of strings, not {_shape(value)}.")
        return None
    if not found:
        problems.add(value.place, f"{field!r} is empty.")
        return None
    for position, name in enumerate(found):
        if name in found[:position]:
            problems.add(value.place, f"{field!r} has {name!r} twice.")
            return None
    return tuple(found)


def _read_names(value: Value, field: str, problems: Problems) -> tuple[str, ...] | None:
    """A list that may be empty."""
    if isinstance(value, ListValue) and not value.items:
        return ()
    return _read_list(value, field, problems)


def _read_topics(value: Value, field: str, problems: Problems) -> tuple[str, ...] | None:
    names = _read_list(value, field, problems)
    for name in names or ():
        if _read_topic(TextValue(value.place, name), field, problems) is None:
            return None
    return names


def _read_settings(value: Value, field: str, problems: Problems) -> dict[str, str] | None:
    if not isinstance(value, MapValue):
        found = "a string" if isinstance(value, TextValue) else _shape(value)
        problems.add(value.place, f"{field!r} must be a mapping of names to values, not {found}.")
        return None
    settings: dict[str, str] = {}
    for entry in value.entries:
        if isinstance(entry.value, TextValue):
            settings[entry.key] = entry.value.text
        else:
            problems.add(
                entry.value.place,
                f"{entry.key!r} in {field!r} must be a string, not {_shape(entry.value)}.",
            )
    return settings


def _read_arguments(value: Value, field: str, problems: Problems) -> dict[str, object] | None:
    if not isinstance(value, MapValue):
        problems.add(value.place, f"{field!r} must be a mapping of names to values.")
        return None
    found = plain_value(value)
    return found if isinstance(found, dict) else None


def _read_value(value: Value, field: str, problems: Problems) -> Value | None:
    """The value as it is, for a field that its section looks into."""
    if isinstance(value, NoValue) or (isinstance(value, TextValue) and not value.text.strip()):
        problems.add(value.place, f"{field!r} is empty.")
        return None
    return value


def _read_section(value: Value, field: str, problems: Problems) -> MapValue | None:
    if isinstance(value, MapValue) and value.entries:
        return value
    problems.add(value.place, f"{field!r} must be a mapping, and has at least one entry.")
    return None


def choice(*words: str) -> Kind:
    """One of a few words."""

    def read(value: Value, field: str, problems: Problems) -> str | None:
        text = _read_line(value, field, problems)
        if text is None or text.lower() in words:
            return text if text is None else text.lower()
        advice = suggestion(text, words)
        if advice == ".":
            advice = f"; it is {listed(words, 'or')}."
        problems.add(value.place, f"{field!r} cannot be {text!r}{advice}")
        return None

    return Kind(" \\| ".join(f"`{word}`" for word in words), read)


TEXT: Final = Kind("string", _read_line)
LONG_TEXT: Final = Kind("string", _read_text)
TOPIC: Final = Kind("topic", _read_topic)
TOPICS: Final = Kind("topics", _read_topics)
COLUMN: Final = Kind("column", _read_line)
COLUMNS: Final = Kind("columns", _read_list)
NAMES: Final = Kind("names", _read_names)
PATH: Final = Kind("path", _read_line)
LAKE: Final = Kind("path", _read_lake)
FLAG: Final = Kind("true \\| false", _read_flag)
COUNT: Final = Kind("number", _read_count)
DURATION: Final = Kind("duration", _read_duration)
SETTINGS: Final = Kind("mapping of strings", _read_settings)
ARGUMENTS: Final = Kind("mapping", _read_arguments)
SQL: Final = Kind("Spark SQL", _read_value)
FUNCTION: Final = Kind("`module:function`", _read_value)
SCHEMA: Final = Kind("schema", _read_value)
OFFSETS: Final = Kind("offsets", _read_value)
SECTION: Final = Kind("mapping", _read_section)
