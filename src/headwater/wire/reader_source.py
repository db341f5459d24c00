"""Python source of a reader, for one message class in one version.

A reader is one function with no call or loop that the schema does not ask for: nested structs are
read in place, and a run of fixed-size fields, together with the length of whatever comes next, is
one precompiled `struct.unpack_from`. In the source, `b` is the buffer, `p` the position in it,
`end` where it ends, and `left` how many more array elements the message may have.

A reader trusts nothing. It compares every length with the bytes that are left before it slices (a
slice would silently be short), and leaves it to `unpack_from` and to indexing to refuse what lies
outside, by `struct.error` and `IndexError`; `codec.decode` turns those into the one error. `p`
never moves back, so every loop ends; nothing is nested deeper than the schema.
"""

import struct
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.wire.schema import Field, Message, Struct
from headwater.wire.source_text import (
    FIXED_FORMATS,
    LENGTH_FORMATS,
    SourceText,
    has_records,
    size_bytes,
)

# How many array elements, of all its arrays together, a message may have. A struct that takes two
# bytes in a message takes a hundred in memory, so the size of a message alone is no good limit. A
# request comes from anybody and is read by a broker that has others to serve; a response comes from
# a broker, and the metadata of a large cluster has millions.
REQUEST_ELEMENTS_MAX: Final = 100_000
RESPONSE_ELEMENTS_MAX: Final = 10_000_000

VARINT_SIZE_MAX: Final = 5

#: A string of a request was never longer before its length became a varint, and Kafka kept it so.
STRING_BYTES_MAX: Final = 0x7FFF

# Takes a buffer, the position to start at, and where to stop, or None for the buffer's end.
Reader = Callable[[Any, int, int | None], tuple[Any, int]]


class MalformedMessageError(KafkaError):
    """A peer's bytes are not a message of the class and version that they should be."""

    code = ErrorCode.INVALID_REQUEST


def compile_reader(message_class: type[Message], version: int) -> Reader:
    """The function behind `codec.decode`."""
    return _ReaderSource(message_class, version).function("read")


def read_varint(buffer: Any, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes, and the position after it."""
    value = 0
    for shift in range(0, 7 * VARINT_SIZE_MAX, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedMessageError("A varint is longer than five bytes.")


def skip_tags(buffer: Any, position: int, end: int) -> int:
    """The position after a block of tagged fields, all of them unknown."""
    count, position = read_varint(buffer, position)
    for _ in range(count):
        _, position = read_varint(buffer, position)
        size, position = read_varint(buffer, position)
        position += size
        if position > end:
            raise MalformedMessageError("A tagged field is longer than what is left.")
    return position


@lru_cache(4096)
def _uuid_from(raw: bytes) -> uuid.UUID:
    # The ids of topics come again and again, and making a UUID takes longer than all the rest.
    return uuid.UUID(bytes=raw)


_NAMESPACE: Final[dict[str, Any]] = {
    "Malformed": MalformedMessageError,
    "new": object.__new__,
    "skip_tags": skip_tags,
    "struct_of": struct.Struct,
    "uuid_from": _uuid_from,
    "varint": read_varint,
}


class _ReaderSource(SourceText):
    """Writes the function `read(b, p, end)`, which gives the message and the position after it."""

    def __init__(self, message_class: type[Message], version: int) -> None:
        super().__init__(_NAMESPACE)
        self._version = version
        self._flexible = version >= message_class.FLEXIBLE_SINCE
        self._is_request = message_class.__name__.endswith("Request")
        # With records in it, a message is read from a memoryview, so that they are not copied.
        self._from_view = has_records(message_class, version)
        self._pending: list[tuple[str, str]] = []
        self._conversions: list[str] = []
        self.line("def read(b, p, end):")
        with self.indented():
            self.line("if end is not None: b = memoryview(b)[:end]")
            if self._from_view:
                self.line("elif type(b) is not memoryview: b = memoryview(b)")
            else:
                # Most operations on bytes are faster by more than what the copy takes.
                self.line("if type(b) is memoryview: b = b.tobytes()")
                self.line("elif type(b) is not bytes: b = bytes(b)")
            elements_max = REQUEST_ELEMENTS_MAX if self._is_request else RESPONSE_ELEMENTS_MAX
            self.line(f"end = len(b); left = {elements_max}")
            self._struct(message_class, "o", "")
            self._flush()
            self.line("return o, p")

    def _struct(self, struct_class: type[Struct], target: str, path: str) -> None:
        self.line(f"{target} = new({self.named(struct_class.__name__, struct_class)})")
        defaults = struct_class()
        tagged: list[Field] = []
        for field in struct_class.FIELDS:
            attribute = f"{target}.{field.name}"
            is_tagged = field.is_tagged_in(self._version)
            if is_tagged:
                tagged.append(field)
            if field.exists_in(self._version) and not is_tagged:
                self._field(field, attribute, path + field.name)
            else:
                self._default(getattr(defaults, field.name), attribute)
        if self._flexible:
            self._tags(tagged, target, path)

    def _default(self, value: object, target: str) -> None:
        if isinstance(value, Struct):
            variable = self.fresh("d")
            class_name = self.named(type(value).__name__, type(value))
            self.line(f"{variable} = {target} = new({class_name})")
            for field in value.FIELDS:
                self._default(getattr(value, field.name), f"{variable}.{field.name}")
        elif isinstance(value, list):
            self.line(f"{target} = []")
        else:
            self.line(f"{target} = {self.literal(value)}")

    def _field(self, field: Field, target: str, path: str) -> None:
        nullable = field.is_nullable_in(self._version)
        if field.array:
            self._array(field.kind, target, path, nullable)
        elif isinstance(field.kind, type):
            self._nested(field.kind, target, path, nullable)
        else:
            self._plain(field.kind, target, path, nullable)

    def _nested(self, struct_class: type[Struct], target: str, path: str, nullable: bool) -> None:
        variable = self.fresh("o")
        if not nullable:
            self._struct(struct_class, variable, f"{path}.")
            self.line(f"{target} = {variable}")
            return
        marker = self.fresh("n")
        self._take("b", marker)
        self._flush()
        self.line(f"if {marker} < 0:")
        self._null(target, path, nullable)
        self.line("else:")
        with self.indented():
            self._struct(struct_class, variable, f"{path}.")
            self._flush()
            self.line(f"{target} = {variable}")

    def _plain(self, kind: str, target: str, path: str, nullable: bool) -> None:
        if kind == "uuid":
            raw = self.fresh("u")
            self._take("16s", raw)
            self._conversions.append(f"{target} = uuid_from({raw})")
            return
        if kind in FIXED_FORMATS:
            self._take(FIXED_FORMATS[kind], target)
            return
        length = self._length(LENGTH_FORMATS[kind])
        self.line(f"if {length} < 0:")
        self._null(target, path, nullable)
        self.line("else:")
        with self.indented():
            self.line(f"q = p + {length}")
            self._malformed("q > end", f"{path} is longer than what is left of the message.")
            if kind == "string" and self._flexible and self._is_request:
                self._malformed(f"{length} > {STRING_BYTES_MAX}", f"{path} is too long.")
            as_bytes = "b[p:q].tobytes()" if self._from_view else "b[p:q]"
            values = {"string": f"{as_bytes}.decode()", "bytes": as_bytes, "records": "b[p:q]"}
            self.line(f"{target} = {values[kind]}")
            self.line("p = q")

    def _array(self, kind: str | type[Struct], target: str, path: str, nullable: bool) -> None:
        length = self._length("i")
        self.line(f"if {length} < 0:")
        self._null(target, path, nullable)
        self.line("else:")
        with self.indented():
            self.line(f"left -= {length}")
            if isinstance(kind, str) and kind in FIXED_FORMATS and kind != "uuid":
                self._numbers(FIXED_FORMATS[kind], target, path, length)
                return
            # An element takes a byte at least, so an array that claims more is refused at once.
            self._malformed(f"{length} > end - p or left < 0", f"{path} has too many elements.")
            array, element = self.fresh("a"), self.fresh("o")
            self.line(f"{target} = {array} = []")
            # Half of a short loop's time would go into a range.
            self.line(f"while {length}:")
            with self.indented():
                self.line(f"{length} -= 1")
                if isinstance(kind, type):
                    self._struct(kind, element, f"{path}.")
                else:
                    self._plain(kind, element, path, False)
                self._flush()
                self.line(f"{array}.append({element})")

    def _numbers(self, letter: str, target: str, path: str, length: str) -> None:
        """The elements of an array of numbers, all in one `unpack_from`."""
        self.line(f"q = p + {length} * {size_bytes(letter)}")
        self._malformed("q > end or left < 0", f"{path} has too many elements.")
        short = self.struct_methods("unpack_from", letter)
        long = f'struct_of(f">{{{length}}}{letter}").unpack_from'
        method = f"({short}[{length}] if {length} < len({short}) else {long})"
        self.line(f"{target} = list({method}(b, p))")
        self.line("p = q")

    def _tags(self, tagged: list[Field], target: str, path: str) -> None:
        count = self.fresh("n")
        self._take("B", count)
        self._flush()
        self.line(f"if {count}:")
        with self.indented():
            if not tagged:
                self.line("p = skip_tags(b, p - 1, end)")
                return
            self._long_varint(count)
            tag, size, stop = self.fresh("t"), self.fresh("n"), self.fresh("s")
            self.line(f"while {count}:")
            with self.indented():
                self.line(f"{count} -= 1")
                for variable in (tag, size):
                    self.line(f"{variable} = b[p]; p += 1")
                    self._long_varint(variable)
                self.line(f"{stop} = p + {size}")
                self._malformed(f"{stop} > end", "A tagged field is longer than what is left.")
                for field in tagged:
                    self.line(f"if {tag} == {field.tag}:")
                    with self.indented():
                        self._field(field, f"{target}.{field.name}", path + field.name)
                        self._flush()
                        self._malformed(f"p != {stop}", f"{path}{field.name} has a wrong size.")
                self.line(f"p = {stop}")

    def _null(self, target: str, path: str, nullable: bool) -> None:
        error = f"raise Malformed({f'{path} must not be null.'!r})"
        self.line(f"    {target} = None" if nullable else f"    {error}")

    def _malformed(self, condition: str, text: str) -> None:
        self.line(f"if {condition}: raise Malformed({text!r})")

    def _length(self, classic_letter: str) -> str:
        """Read a length, together with what is pending; it is negative for null."""
        length = self.fresh("n")
        self._take("B" if self._flexible else classic_letter, length)
        self._flush()
        if self._flexible:
            self._long_varint(length)
            self.line(f"{length} -= 1")
        return length

    def _long_varint(self, variable: str) -> None:
        self.line(f"if {variable} > 127: {variable}, p = varint(b, p - 1)")

    def _take(self, letter: str, target: str) -> None:
        self._pending.append((letter, target))

    def _flush(self) -> None:
        """Read the fixed-size values that are pending."""
        if not self._pending:
            return
        letters = "".join(letter for letter, _ in self._pending)
        targets = ", ".join(target for _, target in self._pending)
        if letters == "B":
            self.line(f"{targets} = b[p]; p += 1")
        else:
            comma = "," if len(self._pending) == 1 else ""
            self.line(f"{targets}{comma} = {self.struct_method('unpack_from', letters)}(b, p)")
            self.line(f"p += {size_bytes(letters)}")
        for conversion in self._conversions:
            self.line(conversion)
        self._pending.clear()
        self._conversions.clear()
