"""Why a value is not JSON that fits a schema, in words for whoever looks at a dead letter.

Spark says only that it does not fit. The few records for which it does are looked at again here, in
plain Python. The schema comes as its JSON form, since this runs in Spark's workers too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

_BITS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_SQL_NAMES: Final = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
_SHOWN_LENGTH: Final = 60


def json_problem(value: bytes, schema_json: str) -> str | None:
    """What is wrong with a value, or None if nothing was found that Python would mind."""
    try:
        found = json.loads(value.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return "the value is not UTF-8"
    except json.JSONDecodeError as error:
        return f"the value is not JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
    except (ValueError, RecursionError) as error:
        return f"the value is not JSON: {error}"
    if not isinstance(found, dict):
        return f"the value is {_kind(found)}, not a JSON object"
    return _struct_problem(found, json.loads(schema_json), "")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _struct_problem(found: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> str | None:
    for field in schema["fields"]:
        path, value = f"{prefix}{field['name']}", found.get(field["name"])
        problem = None if value is None else _value_problem(value, field["type"], path)
        if problem is not None:
            return problem
    return None


def _value_problem(value: Any, kind: Any, path: str) -> str | None:
    if isinstance(kind, Mapping):
        return _nested_problem(value, kind, path)
    fits = True
    if kind in _BITS:
        bound = 1 << (_BITS[kind] - 1)
        fits = type(value) is int and -bound <= value < bound
    elif kind in ("float", "double"):
        fits = type(value) in (int, float)
    elif kind == "boolean":
        fits = isinstance(value, bool)
    elif kind.startswith("decimal"):
        fits = type(value) in (int, float, str)
    elif kind in ("timestamp", "timestamp_ntz", "date"):
        fits = isinstance(value, str) and _is_time(value, kind)
    if fits:
        return None
    type_name = _SQL_NAMES.get(kind, kind.upper())
    return f"the field '{path}' is not of type {type_name}: {_shown(value)}"


def _nested_problem(value: Any, kind: Mapping[str, Any], path: str) -> str | None:
    match kind["type"]:
        case "struct":
            if not isinstance(value, dict):
                return f"the field '{path}' is not an object: {_shown(value)}"
            return _struct_problem(value, kind, f"{path}.")
        case "array":
            if not isinstance(value, list):
                return f"the field '{path}' is not a list: {_shown(value)}"
            elements, inside = value, kind["elementType"]
        case "map":
            if not isinstance(value, dict):
                return f"the field '{path}' is not an object: {_shown(value)}"
            elements, inside = list(value.values()), kind["valueType"]
        case _:
            return None
    found = (_value_problem(each, inside, f"{path}[]") for each in elements if each is not None)
    return next((each for each in found if each is not None), None)


def _is_time(text: str, kind: str) -> bool:
    try:
        if kind == "date":
            date.fromisoformat(text[:10])
        else:
            datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "a number"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
