"""Serializers: from what a program has to the bytes that a record holds.

A serializer is an object with `serialize(topic, data)`, or any function of one argument such as
`str.encode`. None never comes to it: a key or a value that is None stays so, since a record without
a value deletes its key from a compacted topic. Without a serializer keys and values must be bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from headwater.base.errors import InvalidRecordError
from headwater.client.producer.record import HeadersLike
from headwater.wire.records import Header


@runtime_checkable
class Serializer(Protocol):
    def serialize(self, topic: str, data: Any) -> bytes | None: ...


#: What `key_serializer` and `value_serializer` may be.
SerializerLike: TypeAlias = Serializer | Callable[[Any], bytes | None]
Serialize: TypeAlias = Callable[[str, Any], bytes | None]


_FITTING: Final = (
    (str, "StringSerializer()"),
    (bool, "JsonSerializer()"),
    (int, "IntegerSerializer()"),
    (object, "JsonSerializer()"),
)
_HEADERS: Final = "give a dict or pairs, as in {'source': b'web'} or [('source', b'web')]"


class SerializationError(InvalidRecordError):
    """A key or a value that cannot be turned into bytes."""

    advice = ""


class BytesSerializer:
    """Takes what is bytes already: bytes, bytearray or memoryview."""

    def serialize(self, topic: str, data: Any) -> bytes | None:
        return _as_bytes(data, "What BytesSerializer was given", "")


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


def _hint(role: str, data: object) -> str:
    """Which serializer would do."""
    fitting = next(text for kind, text in _FITTING if isinstance(data, kind))
    return f": encode it, or give the producer {role}_serializer={fitting}"


def serialize_with(serializer: SerializerLike | None, role: str) -> Serialize:
    """One function for all kinds of serializers; `role` is "key" or "value"."""
    if serializer is None:
        return lambda topic, data: _as_bytes(data, f"The {role}", _hint(role, data))
    if isinstance(serializer, Serializer):
        serialize: Serialize = serializer.serialize
    elif callable(serializer):
        function = serializer

        def serialize(topic: str, data: Any) -> bytes | None:
            return function(data)

    else:
        raise TypeError(
            f"The {role} serializer {serializer!r} must be a function, or have a method "
            "serialize(topic, data)."
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
        return _as_bytes(serialized, f"The {role} that the serializer made", "")

    return checked


def checked_headers(headers: HeadersLike | None) -> tuple[Header, ...]:
    """The headers of a record as it holds them."""
    if not headers:
        return ()
    is_several = isinstance(headers, Iterable) and not isinstance(headers, str | bytes)
    if not is_several:
        raise SerializationError(f"Headers cannot be {headers!r}: {_HEADERS}.")
    checked: list[Header] = []
    for header in headers.items() if isinstance(headers, Mapping) else headers:
        is_pair = isinstance(header, tuple | list) and len(header) == 2
        if not is_pair or not isinstance(header[0], str):
            raise SerializationError(f"A header cannot be {header!r}: {_HEADERS}.")
        checked.append((header[0], _header_value(*header)))
    return tuple(checked)


def _header_value(name: str, value: object) -> bytes | None:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise SerializationError(f"The header {name!r} cannot be UTF-8: {error}.") from None
    try:
        return _as_bytes(value, "", "")
    except SerializationError:
        raise SerializationError(
            f"The header {name!r} is of type {type(value).__name__}: its value must be bytes, text "
            "or None."
        ) from None


def _as_bytes(data: Any, subject: str, hint: str) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise SerializationError(
        f"{subject} is of type {type(data).__name__}, and not bytes or None{hint}."
    )
