"""The schema of a source or sink: DDL or Avro, written in the file or in one beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from headwater.pipeline.declared.problems import Place, Problems
from headwater.pipeline.declared.sections.ddl_schema import Column, SchemaError, parse_ddl
from headwater.pipeline.declared.sections.reader import Section
from headwater.pipeline.declared.yaml_document import (
    ListValue,
    MapValue,
    TextValue,
    Value,
    plain_value,
)


class DeclaredSchema(NamedTuple):
    """At most one of the two texts; `columns` are the top-level ones, where they are known."""

    ddl: str = ""
    avro: str = ""
    columns: tuple[Column, ...] | None = None


NO_SCHEMA = DeclaredSchema()


def read_schema(
    owner: str, section: Section, format: str, directory: Path, problems: Problems
) -> DeclaredSchema | None:
    """The schema that a section gives; None if something is wrong with it."""
    if section.given("schema") and section.given("schema_file"):
        problems.add(
            section.key_place("schema_file"),
            f"{owner} cannot have both 'schema' and 'schema_file'.",
        )
        return None
    name = "schema" if section.given("schema") else "schema_file"
    if not section.given(name):
        return NO_SCHEMA
    if name not in section.values:
        return None
    place = section.key_place(name)
    if format == "raw":
        problems.add(place, f"{owner} has format 'raw', which takes no schema.")
        return None
    value = _written(section, directory, problems)
    if value is None:
        return None
    return _avro(value, problems) if format == "avro" else _ddl(owner, value, problems)


def _written(section: Section, directory: Path, problems: Problems) -> Value | None:
    """What `schema` holds, or the file that `schema_file` names."""
    if "schema" in section.values:
        value: Value = section.values["schema"]
        return value
    place = section.place_of("schema_file")
    path = directory / section.values["schema_file"]
    try:
        return TextValue(place, path.read_text(encoding="utf-8"))
    except OSError as error:
        problems.add(place, f"{path}: {(error.strerror or 'it cannot be read').rstrip('.')}.")
    except ValueError:
        problems.add(place, f"{path} is not text in UTF-8.")
    return None


def _ddl(owner: str, value: Value, problems: Problems) -> DeclaredSchema | None:
    if isinstance(value, MapValue):
        return _ddl_of_mapping(value, problems)
    if not isinstance(value, TextValue):
        problems.add(value.place, "'schema' must be a string such as 'id STRING, amount DOUBLE'.")
        return None
    text = value.text.strip()
    if text.startswith(("{", "[")):
        problems.add(value.place, f"{owner} has a schema in JSON, which is for format 'avro' only.")
        return None
    try:
        columns = parse_ddl(value.text)
    except SchemaError as error:
        problems.add(value.place_at(error.offset), f"the schema is wrong: {error.sentence}")
        return None
    return DeclaredSchema(ddl=" ".join(text.split()), columns=columns)


def _ddl_of_mapping(value: MapValue, problems: Problems) -> DeclaredSchema | None:
    """`{id: STRING, amount: DOUBLE}`: each line a column."""
    parts, columns = [], []
    count = len(problems)
    for entry in value.entries:
        place = entry.value.place
        if not isinstance(entry.value, TextValue):
            problems.add(place, f"the type of column {entry.key!r} must be a string.")
            continue
        part = f"`{entry.key.replace('`', '``')}` {entry.value.text.strip()}"
        try:
            [column] = parse_ddl(part)
        except SchemaError as error:
            problems.add(place, f"the schema is wrong: {error.sentence}")
        except ValueError:
            problems.add(place, f"column {entry.key!r} must have one type.")
        else:
            parts.append(part)
            columns.append(column)
    if len(problems) > count:
        return None
    return DeclaredSchema(ddl=", ".join(parts), columns=tuple(columns))


def _avro(value: Value, problems: Problems) -> DeclaredSchema | None:
    if isinstance(value, TextValue):
        text = value.text.strip()
        if not text.startswith(("{", "[", '"')):
            problems.add(value.place, 'an Avro schema is JSON, such as {"type": "record", ...}.')
            return None
        try:
            schema = json.loads(text)
        except (ValueError, RecursionError) as error:
            offset = getattr(error, "pos", 0)
            problems.add(value.place_at(offset), f"the Avro schema is not JSON: {error}.")
            return None
    elif isinstance(value, MapValue | ListValue):
        schema = plain_value(value)
    else:
        return None
    return _parsed_avro(schema, value.place, problems)


def _parsed_avro(schema: Any, place: Place, problems: Problems) -> DeclaredSchema | None:
    import fastavro.schema

    try:
        parsed = fastavro.schema.parse_schema(schema)
        text = json.dumps(schema)
    # Whatever it stumbles over in a schema that is none, the sentence is the same.
    except Exception as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        problems.add(place, f"the Avro schema is wrong: {detail.rstrip('.')}.")
        return None
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        problems.add(place, "the Avro schema must be a record, whose fields become the columns.")
        return None
    columns = tuple(Column(str(field["name"]), "") for field in parsed.get("fields", ()))
    return DeclaredSchema(avro=text, columns=columns)
