"""Avro's types as Spark's, and Spark's as Avro's, decided without Spark's engine.

A record becomes a struct, a union with null a value that may be null, logical types what they stand
for. A union of several other types has no one column type, and is refused with its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pyspark.sql import types as t

from headwater.base.errors import InvalidConfigError

AvroType: TypeAlias = Any  # JSON: a name, a list of alternatives, or an object.


class AvroTypeError(InvalidConfigError):
    """An Avro schema, or a column, that has no counterpart on the other side."""


_PLAIN: Final[Mapping[str, t.DataType]] = {
    "boolean": t.BooleanType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "bytes": t.BinaryType(),
    "string": t.StringType(),
    "fixed": t.BinaryType(),
    "enum": t.StringType(),
}
_LOGICAL: Final[Mapping[tuple[str, str], t.DataType]] = {
    ("int", "date"): t.DateType(),
    ("long", "timestamp-millis"): t.TimestampType(),
    ("long", "timestamp-micros"): t.TimestampType(),
    ("long", "local-timestamp-millis"): t.TimestampNTZType(),
    ("long", "local-timestamp-micros"): t.TimestampNTZType(),
    ("string", "uuid"): t.StringType(),
}
_FROM_SPARK: Final[Mapping[type[t.DataType], AvroType]] = {
    t.BooleanType: "boolean",
    t.ByteType: "int",
    t.ShortType: "int",
    t.IntegerType: "int",
    t.LongType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.BinaryType: "bytes",
    t.StringType: "string",
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    t.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}


def spark_schema(avro_schema: str) -> t.StructType:
    """The columns of records that have this Avro schema, which must be a record's."""
    try:
        parsed = json.loads(avro_schema)
    except ValueError as error:
        raise AvroTypeError(f"The Avro schema is not JSON: {error}.") from None
    kind, nullable = _Reading().of(parsed, "the schema")
    if not isinstance(kind, t.StructType) or nullable:
        raise AvroTypeError("The Avro schema must be that of a record.")
    return kind


class _Reading:
    """One pass over a schema, which remembers the types that have names."""

    def __init__(self) -> None:
        self._named: dict[str, t.DataType] = {}
        self._open: set[str] = set()

    def of(self, schema: AvroType, place: str) -> tuple[t.DataType, bool]:
        """Spark's type, and whether a value may be null."""
        if isinstance(schema, list):
            others = [each for each in schema if each != "null"]
            if len(others) != 1:
                raise AvroTypeError(
                    f"In the Avro schema {place} is a union of several types, which is no one type "
                    "of a column; only a union of one type with null is."
                )
            kind, nullable = self.of(others[0], place)
            return kind, nullable or len(others) < len(schema)
        if isinstance(schema, str):
            return self._by_name(schema, place), False
        if not isinstance(schema, dict) or "type" not in schema:
            raise AvroTypeError(f"In the Avro schema {place} has no type.")
        return self._complex(schema, place)

    def _by_name(self, name: str, place: str) -> t.DataType:
        if name in self._open:
            raise AvroTypeError(
                f"In the Avro schema {place} holds itself ({name}), which no column can."
            )
        found = _PLAIN.get(name) or self._named.get(name) or self._named.get(name.split(".")[-1])
        if found is None:
            raise AvroTypeError(f"In the Avro schema {place} has the unknown type {name!r}.")
        return found

    def _complex(self, schema: dict[str, AvroType], place: str) -> tuple[t.DataType, bool]:
        kind = schema["type"]
        if isinstance(kind, (list, dict)):
            return self.of(kind, place)
        if kind == "array":
            element, nullable = self.of(schema.get("items"), f"an element of {place}")
            return t.ArrayType(element, nullable), False
        if kind == "map":
            value, nullable = self.of(schema.get("values"), f"a value of {place}")
            return t.MapType(t.StringType(), value, nullable), False
        if kind in ("record", "error"):
            return self._record(schema, place), False
        found = self._logical(kind, schema) or self._by_name(kind, place)
        if "name" in schema:
            self._named[schema["name"]] = found
        return found, False

    def _record(self, schema: dict[str, AvroType], place: str) -> t.StructType:
        name = schema.get("name", place)
        self._open.add(name)
        fields = []
        for field in schema.get("fields", []):
            kind, nullable = self.of(field.get("type"), f"the field {field.get('name')!r}")
            fields.append(t.StructField(field["name"], kind, nullable))
        self._open.discard(name)
        self._named[name] = found = t.StructType(fields)
        return found

    def _logical(self, kind: str, schema: dict[str, AvroType]) -> t.DataType | None:
        logical = schema.get("logicalType")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return t.DecimalType(schema["precision"], schema.get("scale", 0))
        return _LOGICAL.get((kind, logical)) if logical else None


def avro_schema(schema: t.StructType, name: str) -> str:
    """The Avro schema of rows with these columns, as JSON text."""
    numbers = iter(range(1_000_000))

    def record(struct: t.StructType, record_name: str) -> AvroType:
        fields = [
            {"name": each.name, "type": optional(kind_of(each.dataType, each.name), each.nullable)}
            for each in struct.fields
        ]
        return {"type": "record", "name": record_name, "fields": fields}

    def optional(kind: AvroType, nullable: bool) -> AvroType:
        return ["null", kind] if nullable else kind

    def kind_of(kind: t.DataType, place: str) -> AvroType:
        if isinstance(kind, t.StructType):
            return record(kind, f"{name}_{next(numbers)}")
        if isinstance(kind, t.ArrayType):
            items = optional(kind_of(kind.elementType, place), kind.containsNull)
            return {"type": "array", "items": items}
        if isinstance(kind, t.MapType) and isinstance(kind.keyType, t.StringType):
            values = optional(kind_of(kind.valueType, place), kind.valueContainsNull)
            return {"type": "map", "values": values}
        if isinstance(kind, t.DecimalType):
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": kind.precision,
                "scale": kind.scale,
            }
        found = _FROM_SPARK.get(type(kind))
        if found is None:
            raise AvroTypeError(
                f"The column {place!r} has the type {kind.simpleString()}, which Avro does not "
                "have; cast it to another."
            )
        return found

    return json.dumps(record(schema, _avro_name(name)))


def _avro_name(name: str) -> str:
    """A name as Avro allows it: letters, digits and underscores, no digit first."""
    allowed: Callable[[str], bool] = lambda letter: letter.isascii() and letter.isalnum()  # noqa: E731
    plain = "".join(letter if allowed(letter) else "_" for letter in name) or "row"
    return f"_{plain}" if plain[0].isdigit() else plain
