"""Serializers: from what a program has to the bytes that a record holds.

A serializer is an object with `serialize(topic, data)`, or any function of one argument such as
`str.encode`. None never comes to it: a key or a value that is None stays so, since a record without
a value deletes its key from a compacted topic. Without a serializer keys and values must be bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from headwater.base.errors import InvalidRecordError
from headwater.wire.records import Header


@runtime_checkable
class Serializer(Protocol):
    def serialize(self, topic: str, data: Any) -> bytes | None: ...


#: What `key_serializer` and `value_serializer` may be.
SerializerLike: TypeAlias = Serializer | Callable[[Any], bytes | None]
Serialize: TypeAlias = Callable[[str, Any], bytes | None]


class SerializationError(InvalidRecordError):
    """A key or a value that cannot be turned into bytes."""

    advice = ""


class BytesSerializer:
    """Takes what is bytes already: bytes, bytearray or memoryview."""

    def serialize(self, topic: str, data: Any) -> bytes | None:
        return _as_bytes(data, "A value", "")


class StringSerializer:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def serialize(self, topic: str, data: str) -> bytes:
        return data.encode(self._encoding)


class JsonSerializer:
    """Compact JSON in UTF-8."""

    def serialize(self, topic: str, data: Any) -> bytes:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


class IntegerSerializer:
    """Big-endian, as Java's `IntegerSerializer` (4 bytes) and `LongSerializer` (8) write them."""

    def __init__(self, size_bytes: int = 4) -> None:
        formats = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
        if size_bytes not in formats:
            raise ValueError(f"An integer has 1, 2, 4 or 8 bytes, not {size_bytes}.")
        self._pack = struct.Struct(formats[size_bytes]).pack

    def serialize(self, topic: str, data: int) -> bytes:
        return self._pack(data)


def serialize_with(serializer: SerializerLike | None, role: str) -> Serialize:
    """One function for all kinds of serializers; `role` is "key" or "value"."""
    if serializer is None:
        hint = f": give the producer a {role}_serializer"
        return lambda topic, data: _as_bytes(data, f"A {role}", hint)
    if isinstance(serializer, Serializer):
        serialize: Serialize = serializer.serialize
    elif callable(serializer):
        function = serializer

        def serialize(topic: str, data: Any) -> bytes | None:
            return function(data)

    else:
        raise TypeError(
            f"The {role} serializer {serializer!r} is neither a function nor has it "
            "a method serialize(topic, data)."
        )

    def checked(topic: str, data: Any) -> bytes | None:
        if data is None:
            return None
        try:
            serialized = serialize(topic, data)
        except Exception as error:
            raise SerializationError(
                f"A {role} for topic {topic!r} could not be serialized: {error}"
            ) from error
        return _as_bytes(serialized, f"A {role} that the serializer made", "")

    return checked


def checked_headers(headers: Sequence[Header]) -> tuple[Header, ...]:
    """The headers of a record, if they are pairs of text and bytes."""
    if not headers:
        return ()
    checked: list[Header] = []
    for header in headers:
        if len(header) != 2 or not isinstance(header[0], str):
            raise SerializationError(
                f"A header must be a pair of text and bytes or None, not {header!r}."
            )
        checked.append((header[0], _as_bytes(header[1], f"The header {header[0]!r}", "")))
    return tuple(checked)


def _as_bytes(data: Any, subject: str, hint: str) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise SerializationError(f"{subject} must be bytes or None, not {type(data).__name__}{hint}.")
