"""The error codes in an answer, found by the tables of fields that messages bring along.

An answer has an error code for itself, for each thing that was asked for, or both. Which fields of
a class hold one, and which lists lead to more of them, is looked up once. The codes of a list are
read and compared without a line of Python for each: an answer may have a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from headwater.wire.schema import Message, Struct

_Read = Callable[[Any], Any]


class _Places(NamedTuple):
    """Where the error codes of a class are."""

    codes: tuple[_Read, ...]
    #: Lists of structs that have some themselves. No struct that is not in a list does.
    lists: tuple[tuple[_Read, _Places], ...]


_KNOWN: Final[dict[type[Struct], _Places]] = {}


def error_codes(response: Message) -> list[int]:
    """The codes of all that failed; what went well does not count."""
    found: list[int] = []
    _collect((response,), _places(type(response)), found)
    return found


def _collect(structs: Iterable[Struct], places: _Places, found: list[int]) -> None:
    for code_of in places.codes:
        found.extend(filter(None, map(code_of, structs)))
    for list_of, inner in places.lists:
        for items in filter(None, map(list_of, structs)):
            _collect(items, inner, found)


def _places(struct: type[Struct]) -> _Places:
    places = _KNOWN.get(struct)
    if places is None:
        places = _KNOWN[struct] = _find_places(struct)
    return places


def _find_places(struct: type[Struct]) -> _Places:
    codes = []
    lists = []
    for field in struct.FIELDS:
        if field.name == "error_code" or field.name.endswith("_error_code"):
            codes.append(attrgetter(field.name))
        elif field.array and not isinstance(field.kind, str):
            inner = _places(field.kind)
            if inner.codes or inner.lists:
                lists.append((attrgetter(field.name), inner))
    return _Places(tuple(codes), tuple(lists))
