"""Deserializers: from the bytes that a record holds to what a program wants.

A deserializer is an object with `deserialize(topic, data)`, or any function of one argument such as
`bytes.decode` or `json.loads`. None never comes to it: a record without a key or a value stays so.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from headwater.client.consumer.errors import RecordDeserializationError
from headwater.client.consumer.record import ConsumerRecord


@runtime_checkable
class Deserializer(Protocol):
    def deserialize(self, topic: str, data: bytes) -> Any: ...


#: What `key_deserializer` and `value_deserializer` may be.
DeserializerLike: TypeAlias = Deserializer | Callable[[bytes], Any]
_Deserialize: TypeAlias = Callable[[bytes], Any]


class StringDeserializer:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def deserialize(self, topic: str, data: bytes) -> str:
        return data.decode(self._encoding)


class JsonDeserializer:
    def deserialize(self, topic: str, data: bytes) -> Any:
        return json.loads(data)


class IntegerDeserializer:
    """Big-endian, of 1, 2, 4 or 8 bytes, as Java's serializers of integers write them."""

    def deserialize(self, topic: str, data: bytes) -> int:
        formats = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
        if len(data) not in formats:
            raise ValueError(f"An integer has 1, 2, 4 or 8 bytes, not {len(data)}.")
        number: int = struct.unpack(formats[len(data)], data)[0]
        return number


class Deserializers:
    """Those of a consumer, for keys and values; None leaves bytes as they are."""

    def __init__(
        self, key: DeserializerLike | None = None, value: DeserializerLike | None = None
    ) -> None:
        self._key = _checked(key, "key")
        self._value = _checked(value, "value")
        self.are_none = key is None and value is None

    def key_of(self, topic: str) -> _Deserialize | None:
        return _of_topic(self._key, topic)

    def value_of(self, topic: str) -> _Deserialize | None:
        return _of_topic(self._value, topic)

    def apply(
        self, topic: str, records: list[ConsumerRecord]
    ) -> tuple[list[ConsumerRecord], RecordDeserializationError | None]:
        """The records of one topic up to the first that fails, and the error of that one."""
        key, value = self.key_of(topic), self.value_of(topic)
        done: list[ConsumerRecord] = []
        add, make = done.append, ConsumerRecord._make
        try:
            for record in records:
                topic, number, offset, timestamp, kind, raw_key, raw_value, headers, epoch = record
                if raw_key is not None and key is not None:
                    raw_key = key(raw_key)
                if raw_value is not None and value is not None:
                    raw_value = value(raw_value)
                add(
                    make(
                        (topic, number, offset, timestamp, kind, raw_key, raw_value, headers, epoch)
                    )
                )
        except Exception as error:
            failed = records[len(done)]
            failure = RecordDeserializationError(
                failed.topic_partition,
                failed.offset,
                f"The record at offset {failed.offset} of {failed.topic_partition} cannot be "
                f"deserialized: {error!r}. Seek to offset {failed.offset + 1} to leave it out.",
            )
            failure.__cause__ = error
            return done, failure
        return done, None


def _checked(deserializer: DeserializerLike | None, role: str) -> DeserializerLike | None:
    is_one = isinstance(deserializer, Deserializer) or callable(deserializer)
    if deserializer is None or is_one:
        return deserializer
    raise TypeError(
        f"The {role} deserializer {deserializer!r} must be a function, or have a method "
        "deserialize(topic, data)."
    )


def _of_topic(deserializer: DeserializerLike | None, topic: str) -> _Deserialize | None:
    if isinstance(deserializer, Deserializer):
        deserialize = deserializer.deserialize
        return lambda data: deserialize(topic, data)
    return deserializer
