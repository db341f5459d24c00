"""Python source of a writer, for one message class in one version.

A writer is one function that appends pieces of bytes to a list: a run of fixed-size fields,
together with the length of whatever comes next, is one precompiled `struct.pack`. In the source,
`w` appends to the list. Records that are a `Region` cannot become bytes, so there the pieces so far
are joined into one part, and the region is the next part. Large records that come as a tuple are a
part of their own as well, so that nobody copies them.

Fields that the version lacks are not looked at. Tagged fields are written only where they differ
from their default; for structs that is decided field by field, in the source.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from headwater.base.region import Part
from headwater.wire.schema import Field, Message, Struct
from headwater.wire.source_text import FIXED_FORMATS, LENGTH_FORMATS, SourceText

# Takes the message, the list of the pieces of the last part, and the list of the parts before it.
Writer = Callable[[Any, list[bytes], list[Part]], None]

#: From here on a copy costs more than one more part.
UNCOPIED_SIZE_MIN: Final = 32 << 10

_ONE_BYTE: Final = tuple(bytes([value]) for value in range(128))


def compile_writer(message_class: type[Message], version: int) -> Writer:
    """The function behind `codec.encode` and `codec.encode_parts`."""
    return _WriterSource(message_class, version).function("write")


def varint_bytes(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def append_records(records: Any, pieces: list[bytes], parts: list[Part]) -> None:
    """Records as bytes are one more piece; as a region they end a part and are the next one.

    So does the bulk of those in a tuple, if it is large enough that a copy costs more than a part.
    """
    if isinstance(records, (bytes, bytearray, memoryview)):
        pieces.append(records)  # type: ignore[arg-type]
    elif type(records) is tuple:  # Regions may be named ones.
        pieces += records
        if len(records[-1]) >= UNCOPIED_SIZE_MIN:
            bulk = pieces.pop()
            parts.append(b"".join(pieces))
            parts.append(bulk)
            pieces.clear()
    elif records.size > 0:
        parts.append(b"".join(pieces))
        parts.append(records)
        pieces.clear()


def records_size(records: Any) -> int:
    """How many bytes the records take."""
    if isinstance(records, (bytes, bytearray, memoryview)):
        return len(records)
    if type(records) is tuple:
        return sum(map(len, records))
    size: int = records.size
    return size


_NAMESPACE: Final[dict[str, Any]] = {
    "ONE_BYTE": _ONE_BYTE,
    "append_records": append_records,
    "records_size": records_size,
    "struct_of": struct.Struct,
    "varint": varint_bytes,
}


class _WriterSource(SourceText):
    """Writes the function `write(o, pieces, parts)`."""

    def __init__(self, message_class: type[Message], version: int) -> None:
        super().__init__(_NAMESPACE)
        self._version = version
        self._flexible = version >= message_class.FLEXIBLE_SINCE
        self._append = "w"
        self._pending: list[tuple[str, str]] = []
        self.line("def write(o, pieces, parts):")
        with self.indented():
            self.line("w = pieces.append")
            self._struct(message_class, "o")
            self._flush()
            self.line("return")

    def _struct(self, struct_class: type[Struct], source: str) -> None:
        tagged: list[Field] = []
        for field in struct_class.FIELDS:
            if field.is_tagged_in(self._version):
                tagged.append(field)
            elif field.exists_in(self._version):
                self._field(field, f"{source}.{field.name}")
        if self._flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), struct_class(), source)

    def _field(self, field: Field, source: str) -> None:
        nullable = field.is_nullable_in(self._version)
        if field.array:
            self._array(field.kind, source, nullable)
        elif isinstance(field.kind, type):
            self._nested(field.kind, source, nullable)
        else:
            self._plain(field.kind, source, nullable)

    def _nested(self, struct_class: type[Struct], source: str, nullable: bool) -> None:
        variable = self.fresh("o")
        if not nullable:
            self.line(f"{variable} = {source}")
            self._struct(struct_class, variable)
            return
        self._flush()
        self.line(f"{variable} = {source}")
        self.line(f"if {variable} is None:")
        self.line(f'    {self._append}(b"\\xff")')
        self.line("else:")
        with self.indented():
            self._put("b", "1")
            self._struct(struct_class, variable)
            self._flush()

    def _plain(self, kind: str, source: str, nullable: bool) -> None:
        if kind == "uuid":
            self._put("16s", f'{source}.int.to_bytes(16, "big")')
            return
        if kind in FIXED_FORMATS:
            self._put(FIXED_FORMATS[kind], source)
            return
        value, length = self.fresh("v"), self.fresh("n")
        self.line(f"{value} = {source}")
        measure = f"{length} = {'records_size' if kind == 'records' else 'len'}({value})"
        if kind == "string":
            measure = f"{value} = {value}.encode(); {measure}"
        if nullable:
            self.line(f'if {value} is None: {value} = b""; {length} = -1')
            self.line(f"else: {measure}")
        else:
            self.line(measure)
        self._put_length(LENGTH_FORMATS[kind], length)
        if kind == "records":
            self.line(f"append_records({value}, pieces, parts)")
        else:
            self.line(f"{self._append}({value})")

    def _array(self, kind: str | type[Struct], source: str, nullable: bool) -> None:
        array, length = self.fresh("a"), self.fresh("n")
        self.line(f"{array} = {source}")
        if nullable:
            self.line(f"if {array} is None: {array} = (); {length} = -1")
            self.line(f"else: {length} = len({array})")
        else:
            self.line(f"{length} = len({array})")
        self._put_length("i", length)
        if isinstance(kind, str) and kind in FIXED_FORMATS and kind != "uuid":
            letter = FIXED_FORMATS[kind]
            short = self.struct_methods("pack", letter)
            long = f'struct_of(f">{{{length}}}{letter}").pack'
            method = f"({short}[{length}] if {length} < len({short}) else {long})"
            self.line(f"if {array}: {self._append}({method}(*{array}))")
            return
        element = self.fresh("o")
        self.line(f"for {element} in {array}:")
        with self.indented():
            if isinstance(kind, type):
                self._struct(kind, element)
            else:
                self._plain(kind, element, False)
            self._flush()

    def _tags(self, tagged: list[Field], defaults: Struct, source: str) -> None:
        if not tagged:
            self._put("x", "")
            return
        self._flush()
        flags = []
        for field in tagged:
            flag = self.fresh("f")
            attribute = f"{source}.{field.name}"
            self.line(f"{flag} = {self._differs(attribute, getattr(defaults, field.name))}")
            flags.append(flag)
        self.line(f"if {' or '.join(flags)}:")
        with self.indented():
            self.line(f"{self._append}(varint({' + '.join(flags)}))")
            for field, flag in zip(tagged, flags, strict=True):
                self.line(f"if {flag}:")
                with self.indented():
                    self._tagged_field(field, f"{source}.{field.name}")
        self.line("else:")
        with self.indented():
            self.line(f'{self._append}(b"\\0")')

    def _tagged_field(self, field: Field, source: str) -> None:
        """The tag, the size, and a value whose pieces are gathered apart to know the size."""
        outer, inner, content = self._append, self.fresh("w"), self.fresh("c")
        self.line(f"{content} = []; {inner} = {content}.append")
        self._append = inner
        self._field(field, source)
        self._flush()
        self._append = outer
        self.line(f'{content} = b"".join({content})')
        self.line(f"{outer}(varint({field.tag})); {outer}(varint(len({content})))")
        self.line(f"{outer}({content})")

    def _differs(self, source: str, default: object) -> str:
        """An expression that is true if the value is not the default."""
        if isinstance(default, Struct):
            compared = (
                self._differs(f"{source}.{field.name}", getattr(default, field.name))
                for field in default.FIELDS
            )
            return f"({' or '.join(compared)})"
        if isinstance(default, list):
            return f"(len({source}) > 0)"
        operator = "is not" if default is None else "!="
        return f"({source} {operator} {self.literal(default)})"

    def _put_length(self, classic_letter: str, length: str) -> None:
        """Write a length, together with what is pending; -1 stands for null."""
        if not self._flexible:
            self._put(classic_letter, length)
            self._flush()
            return
        varint = self.fresh("n")
        self.line(f"{varint} = {length} + 1")
        if not self._pending:
            one_byte = f"ONE_BYTE[{varint}] if {varint} < 128 else varint({varint})"
            self.line(f"{self._append}({one_byte})")
            return
        pending = list(self._pending)
        self.line(f"if {varint} < 128:")
        with self.indented():
            self._put("B", varint)
            self._flush()
        self.line("else:")
        with self.indented():
            self._pending = pending
            self._flush()
            self.line(f"{self._append}(varint({varint}))")

    def _put(self, letter: str, expression: str) -> None:
        self._pending.append((letter, expression))

    def _flush(self) -> None:
        """Write the fixed-size values that are pending."""
        if not self._pending:
            return
        letters = "".join(letter for letter, _ in self._pending)
        values = ", ".join(expression for _, expression in self._pending if expression)
        self._pending.clear()
        if values:
            self.line(f"{self._append}({self.struct_method('pack', letters)}({values}))")
        else:
            self.line(f"{self._append}({bytes(len(letters))!r})")
