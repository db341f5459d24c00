"""The directories of a partitioned table, as Hive and Spark name them: `topic=orders/date=...`.

The values of partition columns stand in the directory's name (escaped as Spark does it) and in the
manifest (as they are), not in the Parquet files. Null and empty text are both Hive's default
partition, and null when they are read, as in Spark.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from headwater.pipeline.lake.errors import LakeSchemaError
from headwater.pipeline.lake.table.schema_json import type_name

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = frozenset("\"#%'*/:=?\\\x7f{[]^" + "".join(map(chr, range(1, 32))))


def check_partition_column(name: str, kind: pa.DataType) -> None:
    """Raise unless values of this type can be directory names."""
    types = pa.types
    fits = types.is_string(kind) or types.is_integer(kind) or types.is_date32(kind)
    if not fits and not types.is_boolean(kind):
        raise LakeSchemaError(
            f"A table can be partitioned by text, whole numbers, dates and booleans, and "
            f"{name!r} is {type_name(kind)}."
        )


def partition_directory(names: Sequence[str], values: Sequence[str | None]) -> str:
    """The directory below `data` for these values."""
    pairs = zip(names, values, strict=True)
    return "/".join(
        f"{_escape(name)}={DEFAULT_PARTITION if value is None else _escape(value)}"
        for name, value in pairs
    )


def value_to_text(value: object) -> str | None:
    """A partition value as manifests and directories have it."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def value_from_text(text: str | None, kind: pa.DataType) -> Any:
    """The inverse of `value_to_text`."""
    if text is None or pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_date32(kind):
        return datetime.date.fromisoformat(text)
    return int(text)


def _escape(text: str) -> str:
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in text)
