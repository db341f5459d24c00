"""A step of the file, from its section to its `StepSpec`; names are checked for the whole file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from headwater.pipeline.declared.fields.pipeline import STEP_FIELDS
from headwater.pipeline.declared.problems import Place, Problems
from headwater.pipeline.declared.sections.python_function import FunctionError, check_function
from headwater.pipeline.declared.sections.reader import Section, read_section
from headwater.pipeline.declared.sections.source import read_watermark
from headwater.pipeline.declared.sections.sql_names import SqlError, table_names
from headwater.pipeline.declared.specs.step import StepSpec
from headwater.pipeline.declared.yaml_document import (
    Entry,
    MapValue,
    NoValue,
    TextValue,
    Value,
)


class Use(NamedTuple):
    """A name that a step reads, where it says so, and whether the query may define it itself."""

    name: str
    place: Place
    may_be_own: bool = False


class DraftStep(NamedTuple):
    """A step whose names are not resolved yet; `spec` is None where something is wrong."""

    name: str
    place: Place
    uses: tuple[Use, ...]
    spec: StepSpec | None
    #: Words of its query, in lower case: a name among them may be read as well.
    words: frozenset[str] = frozenset()
    #: Its query as it stands in the file, unless something is wrong with that already.
    query: TextValue | None = None


def read_step(entry: Entry, before: str | None, directory: Path, problems: Problems) -> DraftStep:
    """The step. `before` is the name of the step or source that comes before it."""
    count = len(problems)
    owner = f"step {entry.key!r}"
    value: Value = entry.value
    if isinstance(value, TextValue):
        value = MapValue(value.place, (Entry("sql", entry.place, value),))
    section = read_section(owner, value, entry.place, STEP_FIELDS, problems)
    if section is None:
        return DraftStep(entry.key, entry.place, (), None)
    watermark = read_watermark(owner, section, problems)
    sql, sql_line, uses, words = _sql(owner, section, problems)
    python = _text_of(section, "python", problems)
    deduplicate = section.get("deduplicate", ())
    if python:
        uses = _inputs(section, "inputs", before)
        _check_python(python, section, uses, directory, problems)
    elif deduplicate:
        uses = _inputs(section, "from", before)
        if not uses:
            problems.add(entry.place, f"{owner} has nothing before it to deduplicate.")
    query = section.get("sql") if sql else None
    if len(problems) > count:
        return DraftStep(entry.key, entry.place, tuple(uses), None, query=query)
    spec = StepSpec(
        name=entry.key,
        sql=sql,
        python=python,
        deduplicate=deduplicate,
        arguments=section.get("arguments", {}),
        watermark=watermark,
        line=entry.place.line,
        sql_line=sql_line,
    )
    return DraftStep(entry.key, entry.place, tuple(uses), spec, words, query)


def query_text(value: TextValue) -> str:
    """The query as Spark gets it."""
    return value.text.rstrip().removesuffix(";")


def _sql(
    owner: str, section: Section, problems: Problems
) -> tuple[str, int, list[Use], frozenset[str]]:
    """The query, its first line in the file, what it reads, and its words."""
    nothing: tuple[str, int, list[Use], frozenset[str]] = "", 0, [], frozenset()
    value = section.get("sql")
    if value is None:
        return nothing
    if not isinstance(value, TextValue):
        problems.add(value.place, f"'sql' of {owner} must be a string.")
        return nothing
    text = query_text(value)
    try:
        tables = table_names(text)
    except SqlError as error:
        problems.add(value.place_at(error.offset), f"the query is wrong: {error.sentence}")
        return nothing
    uses = [
        Use(table.name, value.place_at(table.offset), table.name.lower() in tables.defined)
        for table in tables.read
    ]
    return text, value.place_at(0).line, uses, tables.words


def _text_of(section: Section, name: str, problems: Problems) -> str:
    value = section.get(name)
    if value is None:
        return ""
    if not isinstance(value, TextValue) or not value.text.strip():
        problems.add(section.place_of(name), f"{name!r} must be a string.")
        return ""
    return value.text.strip()


def _inputs(section: Section, field: str, before: str | None) -> list[Use]:
    given = section.get(field)
    if given is None:
        given = () if before is None or section.given(field) else (before,)
    names = (given,) if isinstance(given, str) else given
    value = section.entries[field].value if section.given(field) else NoValue(section.place)
    places = [item.place for item in getattr(value, "items", ())]
    return [
        Use(name, places[position] if position < len(places) else value.place)
        for position, name in enumerate(names)
    ]


def _check_python(
    python: str, section: Section, uses: list[Use], directory: Path, problems: Problems
) -> None:
    try:
        check_function(python, directory, [use.name for use in uses], section.get("arguments", {}))
    except FunctionError as error:
        problems.add(section.place_of("python"), str(error))
