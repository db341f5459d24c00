"""Which values a decoded row lacks: the parts of a schema that say NOT NULL, held against a row.

Spark reads JSON and CSV as if every column could be null, whatever the schema says. Here the schema
is taken at its word: a column, a field of a struct or an element of an array that may not be null
makes a record without it a bad one, and the first that is missing is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def shape_problem(row: Column, schema: StructType) -> Column:
    """A sentence about the first value that is missing from a row, or null."""
    found = [
        f.when(missing, f.lit(f"the field '{path}' is missing or null"))
        for path, missing in _missing(row, schema, "")
    ]
    return f.coalesce(*found) if found else f.lit(None).cast("string")


def _missing(row: Column, schema: StructType, prefix: str) -> Iterator[tuple[str, Column]]:
    for field in schema.fields:
        path, value = f"{prefix}{field.name}", row.getField(field.name)
        if not field.nullable:
            yield path, value.isNull()
        yield from _missing_inside(value, field.dataType, path)


def _missing_inside(value: Column, kind: DataType, path: str) -> Iterator[tuple[str, Column]]:
    """What a value lacks in it; without the value nothing is missing inside."""
    if isinstance(kind, StructType):
        for name, missing in _missing(value, kind, f"{path}."):
            yield name, value.isNotNull() & missing
    elif isinstance(kind, ArrayType):
        yield from _missing_elements(value, kind.elementType, kind.containsNull, f"{path}[]")
    elif isinstance(kind, MapType):
        values = f.map_values(value)
        yield from _missing_elements(values, kind.valueType, kind.valueContainsNull, f"{path}{{}}")


def _missing_elements(
    values: Column, kind: DataType, nullable: bool, path: str
) -> Iterator[tuple[str, Column]]:
    def some(lacks: Callable[[Column], Column]) -> Column:
        return f.coalesce(f.exists(values, lacks), f.lit(False))

    if not nullable:
        yield path, some(lambda element: element.isNull())
    # The names of what may be missing inside come from one look at a stand-in for the element.
    inside = [name for name, _ in _missing_inside(f.lit(None), kind, path)]
    for number, name in enumerate(inside):
        yield name, some(_lacks(kind, path, number))


def _lacks(kind: DataType, path: str, number: int) -> Callable[[Column], Column]:
    """Whether an element lacks what comes as that number of all that it could lack."""

    def lacks(element: Column) -> Column:
        return list(_missing_inside(element, kind, path))[number][1]

    return lacks
