"""Random messages, each as kio's object for one version and as the same message of ours.

kio is the model that the codec is compared with. It spells some values differently: durations and
times are objects, error codes are an enumeration, and null stands for a zero id and for a time of
-1 (so kio cannot say any other negative time). It is not of the same release as Kafka's own
definitions, so some messages have a version that kio does not know yet.
"""

import dataclasses
import datetime
import importlib
import io
import random
import types
import typing
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kio.schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from headwater.wire.api_keys import PRIVATE_APIS, ApiKey, request_class, response_class
from headwater.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.schema import Message, Struct, VersionRange

_ERROR_CODES = list(ErrorCode)
_CHARACTERS = "abcdefghij.-_XYZ0189 \x00\x7fäßλ中\U0001f40d"
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_LAST_TIME_MS = 253_402_300_799_000
#: What Kafka has called differently since.
_NEW_NAMES = {"generation_id": "generation_id_or_member_epoch"}


class Pair(NamedTuple):
    """The same message twice."""

    theirs: Any
    ours: Message


class MessageKind(NamedTuple):
    """A message class of ours, and where kio has its classes."""

    message_class: type[Message]
    module_name: str
    part: str

    @property
    def versions(self) -> VersionRange:
        """Those that both have."""
        lowest, highest = self.message_class.VERSIONS
        folder = Path(kio.schema.__path__[0], self.module_name)
        return VersionRange(
            lowest, min(highest, max(int(path.name[1:]) for path in folder.glob("v*")))
        )

    def __str__(self) -> str:
        return self.message_class.__name__


def message_kinds() -> Iterator[MessageKind]:
    """All that are generated."""
    for key in ApiKey:
        if key in PRIVATE_APIS:
            continue
        yield MessageKind(_generated(request_class(key)), key.name.lower(), "request")
        yield MessageKind(_generated(response_class(key)), key.name.lower(), "response")
    yield MessageKind(ConsumerProtocolAssignment, "consumer_protocol_assignment", "data")
    yield MessageKind(ConsumerProtocolSubscription, "consumer_protocol_subscription", "data")


def _generated(message_class: type[Message]) -> type[Message]:
    """The class as Kafka has it, of one to which we have added a tagged field."""
    is_ours = message_class.__module__.startswith("headwater.wire.cluster_messages.")
    return message_class.__mro__[1] if is_ours else message_class


def random_pair(source: random.Random, kind: MessageKind, version: int) -> Pair:
    """A message of that version with random values in all fields that the version has."""
    module = importlib.import_module(f"kio.schema.{kind.module_name}.v{version}.{kind.part}")
    pair = _struct_pair(source, getattr(module, kind.message_class.__name__), kind.message_class)
    assert isinstance(pair.ours, Message)
    return Pair(pair.theirs, pair.ours)


def kio_bytes(theirs: Any) -> bytes:
    """The message as kio writes it."""
    buffer = io.BytesIO()
    entity_writer(type(theirs))(buffer, theirs)
    return buffer.getvalue()


class _StructPair(NamedTuple):
    theirs: Any
    ours: Struct


def _struct_pair(source: random.Random, kio_class: Any, our_class: type[Struct]) -> _StructPair:
    theirs: dict[str, object] = {}
    ours: dict[str, object] = {}
    kinds = {field.name: field.kind for field in our_class.FIELDS}
    for field in dataclasses.fields(kio_class):
        name = field.name if field.name in kinds else _NEW_NAMES.get(field.name, f"{field.name}_ms")
        if "tag" in field.metadata and source.random() < 0.4:
            continue
        kind = kinds[name]
        theirs[field.name], ours[name] = _field_pair(
            source, field, kind if isinstance(kind, type) else None
        )
    return _StructPair(kio_class(**theirs), our_class(**ours))


def _field_pair(
    source: random.Random, field: "dataclasses.Field[Any]", our_class: type[Struct] | None
) -> tuple[object, object]:
    annotation, nullable = _without_none(field.type)
    kafka_type = field.metadata.get("kafka_type")
    if nullable and source.random() < 0.3:
        if typing.get_origin(annotation) is tuple:
            return None, None
        return None, {"uuid": uuid.UUID(int=0), "datetime_i64": -1}.get(kafka_type or "")
    if typing.get_origin(annotation) is tuple:
        inner, _ = _without_none(typing.get_args(annotation)[0])
        length = source.choice((0, 1, 2, 3)) if source.random() < 0.98 else 140
        if our_class is not None:
            length = min(length, 3)
        pairs = [_value_pair(source, kafka_type, inner, our_class) for _ in range(length)]
        return tuple(theirs for theirs, _ in pairs), [ours for _, ours in pairs]
    return _value_pair(source, kafka_type, annotation, our_class)


def _value_pair(
    source: random.Random, kafka_type: str | None, annotation: Any, our_class: type[Struct] | None
) -> tuple[object, object]:
    if our_class is not None:
        return _struct_pair(source, annotation, our_class)
    match kafka_type:
        case "bool":
            value: object = source.random() < 0.5
        case "int8" | "int16" | "int32" | "int64":
            value = _integer(source, _BITS[kafka_type])
        case "uint16":
            value = source.randrange(2**16)
        case "float64":
            value = source.uniform(-1e9, 1e9)
        case "string":
            value = "".join(source.choices(_CHARACTERS, k=_length(source)))
        case "bytes" | "records":
            value = source.randbytes(_length(source))
        case "uuid":
            value = uuid.UUID(int=source.getrandbits(128))
        case "error_code":
            code = source.choice(_ERROR_CODES)
            return code, int(code.value)
        case "timedelta_i32" | "timedelta_i64":
            milliseconds = _integer(source, 32)
            return datetime.timedelta(milliseconds=milliseconds), milliseconds
        case "datetime_i64":
            milliseconds = source.randrange(_LAST_TIME_MS // 1000) * 1000
            return _time(milliseconds), milliseconds
        case _:
            raise AssertionError(f"An unknown type: {kafka_type}")
    return value, value


def _integer(source: random.Random, bits: int) -> int:
    limit = 2 ** (bits - 1)
    return source.choice((0, -1, 1, limit - 1, -limit, source.randrange(-limit, limit)))


def _length(source: random.Random) -> int:
    return source.choice((0, 1, 2, 5, 11)) if source.random() < 0.97 else source.randrange(120, 300)


def _time(milliseconds: int) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(milliseconds=milliseconds)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        (inner,) = (part for part in typing.get_args(annotation) if part is not types.NoneType)
        return inner, True
    return annotation, False
