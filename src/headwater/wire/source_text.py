"""Source code in the making, and how Kafka's types look in `struct` formats.

This is what the writing of readers and the writing of writers have in common: lines with their
indentation, names that are not taken yet, and the objects that the source refers to by name.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from headwater.wire.schema import Struct

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
# The lengths of classic versions; flexible versions have varints everywhere.
LENGTH_FORMATS: Final = {"string": "h", "bytes": "i", "records": "i"}

# Arrays of numbers up to this length are read and written by a struct that is compiled already.
SHORT_ARRAY_LENGTH_MAX: Final = 16


class SourceText:
    """Lines of Python, and the namespace that they are to run in."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = dict(namespace)
        self._lines: list[str] = []
        self._indentation = ""
        self._names_count = 0

    def line(self, text: str) -> None:
        self._lines.append(self._indentation + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._indentation += "    "
        yield
        self._indentation = self._indentation[:-4]

    def fresh(self, prefix: str) -> str:
        """A variable that nothing else uses."""
        self._names_count += 1
        return f"{prefix}{self._names_count}"

    def named(self, name: str, value: object) -> str:
        """The name under which the source can refer to `value`."""
        self.namespace[name] = value
        return name

    def literal(self, value: object) -> str:
        """`value` as an expression."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return repr(value)
        return self.named(self.fresh("K"), value)

    def struct_method(self, method: str, letters: str) -> str:
        """A method of a compiled struct, such as `unpack_from`."""
        name = f"{method}_{letters.replace('?', 'o')}"
        if name not in self.namespace:
            self.named(name, getattr(struct.Struct(f">{letters}"), method))
        return name

    def struct_methods(self, method: str, letter: str) -> str:
        """A table of methods: the one at index n is for n numbers of that format."""
        return self.named(f"{method}s_{letter.replace('?', 'o')}", _short_arrays(method, letter))

    def function(self, name: str) -> Callable[..., Any]:
        """Run the source, and give the function that it defines."""
        source = "\n".join(self._lines)
        exec(compile(source, f"<generated {name}>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace[name]
        return function


def size_bytes(letters: str) -> int:
    """How long a struct of that format is."""
    return struct.calcsize(f">{letters}")


def has_records(struct_class: type[Struct], version: int) -> bool:
    """Whether there is a field of records in the struct or in one inside it."""
    return any(
        field.kind == "records"
        or (isinstance(field.kind, type) and has_records(field.kind, version))
        for field in struct_class.FIELDS
        if field.exists_in(version)
    )


def _short_arrays(method: str, letter: str) -> tuple[Callable[..., Any], ...]:
    key = (method, letter)
    if key not in _SHORT_ARRAYS:
        _SHORT_ARRAYS[key] = tuple(
            getattr(struct.Struct(f">{count}{letter}"), method)
            for count in range(SHORT_ARRAY_LENGTH_MAX + 1)
        )
    return _SHORT_ARRAYS[key]


_SHORT_ARRAYS: dict[tuple[str, str], tuple[Callable[..., Any], ...]] = {}
