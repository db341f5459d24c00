import json

import pytest

from headwater.base.errors import ErrorCode
from headwater.client.producer.intake.serializers import (
    BytesSerializer,
    IntegerSerializer,
    JsonSerializer,
    SerializationError,
    SerializerLike,
    StringSerializer,
    serialize_with,
)


@pytest.mark.parametrize(
    ("serializer", "data", "expected"),
    [
        (None, b"bytes", b"bytes"),
        (None, bytearray(b"array"), b"array"),
        (None, memoryview(b"view"), b"view"),
        (BytesSerializer(), b"bytes", b"bytes"),
        (StringSerializer(), "grün", "grün".encode()),
        (StringSerializer("latin-1"), "grün", "grün".encode("latin-1")),
        (JsonSerializer(), {"a": [1, "ü"]}, '{"a":[1,"ü"]}'.encode()),
        (IntegerSerializer(), -2, b"\xff\xff\xff\xfe"),
        (IntegerSerializer(8), 258, b"\0\0\0\0\0\0\x01\x02"),
        (str.encode, "function", b"function"),
        (lambda data: json.dumps(data).encode(), [1], b"[1]"),
    ],
)
def test_serializers(serializer: SerializerLike | None, data: object, expected: bytes) -> None:
    assert serialize_with(serializer, "value")("topic", data) == expected


@pytest.mark.parametrize("serializer", [None, StringSerializer(), JsonSerializer(), str.encode])
def test_none_stays_none(serializer: SerializerLike | None) -> None:
    assert serialize_with(serializer, "value")("topic", None) is None


def test_the_topic_is_told() -> None:
    class Tagged:
        def serialize(self, topic: str, data: str) -> bytes:
            return f"{topic}:{data}".encode()

    assert serialize_with(Tagged(), "key")("orders", "x") == b"orders:x"


def test_text_without_a_serializer_is_refused_with_a_hint() -> None:
    with pytest.raises(
        SerializationError, match=r"The value is of type str.*value_serializer=StringSerializer\(\)"
    ):
        serialize_with(None, "value")("topic", "text")


def test_a_failing_serializer_is_told() -> None:
    with pytest.raises(SerializationError, match=r"A key for topic 'orders'.*serialized") as raised:
        serialize_with(IntegerSerializer(), "key")("orders", 1 << 40)
    assert raised.value.code is ErrorCode.INVALID_RECORD
    assert raised.value.__cause__ is not None


def test_a_serializer_that_makes_no_bytes_is_told() -> None:
    with pytest.raises(
        SerializationError, match=r"that the serializer made is of type str, and not bytes"
    ):
        serialize_with(str, "value")("topic", 5)  # type: ignore[arg-type]


def test_what_is_no_serializer_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a function"):
        serialize_with(5, "value")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1, 2, 4 or 8"):
        IntegerSerializer(3)
