"""A table's columns as JSON that people can read, and back to Arrow's schema.

    [{"name": "offset", "type": "long"},
     {"name": "headers", "type": {"list": {"struct": [{"name": "key", "type": "string"}, ...]}}}]

The types are those that Spark and Arrow have in common, under Spark's names. Kinds that differ only
in how they lie in memory (large strings, dictionaries, other units of time) are made one, so that
it does not matter who wrote a batch. Every column may be null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeDamagedError, LakeSchemaError

_SIMPLE: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES: Final = {kind: name for name, kind in _SIMPLE.items()}


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in the types that tables have."""
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise LakeSchemaError(f"There are two columns {name!r}; a table needs one of a name.")
    return pa.schema([pa.field(field.name, _normal(field.type, field.name)) for field in schema])


def schema_to_json(schema: pa.Schema) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": _type_to_json(field.type)} for field in schema]


def schema_from_json(value: Sequence[Mapping[str, Any]]) -> pa.Schema:
    return pa.schema([pa.field(each["name"], _type_from_json(each["type"])) for each in value])


def merged_schema(table: pa.Schema, batch: pa.Schema) -> pa.Schema:
    """The table's columns, and those that the batch adds behind them.

    Older rows have null there. A batch that lacks a column, or has another type for one, is
    refused, because that is mostly a mistake.
    """
    for field in table:
        if field.name not in batch.names:
            raise LakeSchemaError(
                f"The batch lacks the table's column {field.name!r}; it has "
                f"{', '.join(map(repr, batch.names))}."
            )
        kind = batch.field(field.name).type
        if kind != field.type:
            raise LakeSchemaError(
                f"The column {field.name!r} is {type_name(field.type)} in the table and "
                f"{type_name(kind)} in the batch."
            )
    known = set(table.names)
    return pa.schema([*table, *(field for field in batch if field.name not in known)])


def type_name(kind: pa.DataType) -> str:
    """A type for people, in Spark's words."""
    name = _type_to_json(kind)
    return name if isinstance(name, str) else str(kind)


def _normal(kind: pa.DataType, column: str) -> pa.DataType:
    types = pa.types
    if kind in _NAMES or types.is_decimal128(kind):
        return kind
    if types.is_dictionary(kind):
        return _normal(kind.value_type, column)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us") if kind.tz is None else pa.timestamp("us", "UTC")
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(pa.field("element", _normal(kind.value_type, column)))
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _normal(each.type, column)) for each in kind])
    if types.is_map(kind):
        return pa.map_(_normal(kind.key_type, column), _normal(kind.item_type, column))
    raise LakeSchemaError(
        f"The column {column!r} is of type {kind}, which a lake table cannot hold; cast it first."
    )


def _type_to_json(kind: pa.DataType) -> Any:
    types = pa.types
    if kind in _NAMES:
        return _NAMES[kind]
    if types.is_decimal128(kind):
        return {"decimal": [kind.precision, kind.scale]}
    if types.is_list(kind):
        return {"list": _type_to_json(kind.value_type)}
    if types.is_struct(kind):
        return {"struct": [{"name": each.name, "type": _type_to_json(each.type)} for each in kind]}
    if types.is_map(kind):
        return {"map": [_type_to_json(kind.key_type), _type_to_json(kind.item_type)]}
    raise LakeSchemaError(f"A lake table cannot hold the type {kind}.")


def _type_from_json(value: Any) -> pa.DataType:
    if isinstance(value, str) and value in _SIMPLE:
        return _SIMPLE[value]
    if isinstance(value, Mapping) and len(value) == 1:
        [(kind, inner)] = value.items()
        if kind == "decimal":
            return pa.decimal128(*inner)
        if kind == "list":
            return pa.list_(pa.field("element", _type_from_json(inner)))
        if kind == "struct":
            return pa.struct(schema_from_json(inner))
        if kind == "map":
            return pa.map_(*map(_type_from_json, inner))
    raise LakeDamagedError(f"{value!r} is not a type that a manifest can name.")
