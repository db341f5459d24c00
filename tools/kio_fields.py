"""One field of one of kio's dataclasses, as the wire and Headwater see it.

kio is friendlier with values than Headwater wants to be: durations and times are objects, error
codes an enumeration, and null stands for a zero id. Here they become the numbers that are on the
wire, and times get a name that says that they are in milliseconds.
"""

import dataclasses
import datetime
import types
import typing
import uuid
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

# What kio calls the kinds of an int, as the kinds that are on the wire.
_INTEGER_KINDS: Final = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
_IMPLICIT_DEFAULTS: Final[dict[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": uuid.UUID(int=0),
}


class SchemaConflictError(Exception):
    """The versions of a message cannot be described as one class."""


class Versions(NamedTuple):
    """A run of versions, both ends included."""

    first: int
    last: int


class EmptyList:
    """The default of an array: a new list for each message."""


class NewStruct:
    """The default of a struct: a new one for each message."""


class FieldSchema(NamedTuple):
    """One field of the union; `kind` is a Kafka type, or the name of a nested class."""

    name: str
    kind: str
    is_struct: bool
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    tagged: Versions | None
    default: object


def field_in_version(version: int, field: "dataclasses.Field[Any]") -> FieldSchema:
    """One field as it is in one version."""
    inner, is_nullable = _without_none(field.type)
    is_array = typing.get_origin(inner) is tuple
    if is_array:
        inner = typing.get_args(inner)[0]
        inner, _ = _without_none(inner)
    is_struct = dataclasses.is_dataclass(inner)
    kio_kind = str(field.metadata.get("kafka_type", ""))
    kind = str(inner.__name__) if is_struct else _INTEGER_KINDS.get(kio_kind, kio_kind)
    if kio_kind in ("uuid", "datetime_i64"):
        # Null is kio's way to spell a zero id and a time of -1; the wire has no null for them.
        is_nullable = is_array and is_nullable
    this_version = Versions(version, version)
    is_time = kio_kind in ("timedelta_i32", "timedelta_i64", "datetime_i64")
    tag = field.metadata.get("tag")
    return FieldSchema(
        name=field.name + "_ms" if is_time else field.name,
        kind=kind,
        is_struct=is_struct,
        is_array=is_array,
        versions=this_version,
        nullable=this_version if is_nullable else None,
        tag=tag,
        tagged=None if tag is None else this_version,
        default=_default(field, kind, kio_kind, is_struct, is_array),
    )


def _default(
    field: "dataclasses.Field[Any]", kind: str, kio_kind: str, is_struct: bool, is_array: bool
) -> object:
    value = field.default
    if value is None and kio_kind == "uuid" and not is_array:
        value = uuid.UUID(int=0)
    elif value is None and kio_kind == "datetime_i64":
        value = -1
    if value is None:
        return None
    if is_array:
        if value not in ((), dataclasses.MISSING):
            raise SchemaConflictError(f"{field.name} has the default {value!r}.")
        return EmptyList
    if is_struct:
        if value is not dataclasses.MISSING and value != type(value)():
            raise SchemaConflictError(f"{field.name} has the default {value!r}.")
        return NewStruct
    if value is dataclasses.MISSING:
        return _IMPLICIT_DEFAULTS[kind]
    if isinstance(value, ErrorCode):
        return int(value.value)
    if isinstance(value, datetime.timedelta):
        return round(value / datetime.timedelta(milliseconds=1))
    if not isinstance(value, (bool, int, float, str, bytes, uuid.UUID)):
        raise SchemaConflictError(f"{field.name} has the default {value!r}.")
    return value


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        inner = [part for part in typing.get_args(annotation) if part is not types.NoneType]
        if len(inner) != 1:
            raise SchemaConflictError(f"The type {annotation} is a union of several.")
        return inner[0], True
    return annotation, False
