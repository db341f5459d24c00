"""A sink of the file, from its section to its `SinkSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.pipeline.declared.fields.option_names import check_options
from headwater.pipeline.declared.fields.sink import SINK_FIELDS
from headwater.pipeline.declared.problems import Problems, suggestion
from headwater.pipeline.declared.sections.declared_schema import read_schema
from headwater.pipeline.declared.sections.reader import Section, read_section
from headwater.pipeline.declared.specs.sink import SinkSpec
from headwater.pipeline.declared.specs.source import SourceSpec
from headwater.pipeline.declared.yaml_document import Entry
from headwater.pipeline.sink.sink_options import SINK_OPTIONS

TABLE_TRIGGER_MS: Final = 10_000
#: Options of the connector that the file has fields for, or that are its own affair.
_OWN_OPTIONS: Final = {
    "topic": "topic",
    "kafka.bootstrap.servers": "bootstrap_servers",
    "headwater.exactlyonce": "exactly_once",
    "headwater.writeid": "exactly_once",
    "checkpointlocation": "checkpoints",
    "queryname": "name",
    "includeheaders": "headers",
}


def read_sink(
    entry: Entry,
    names: Mapping[str, SourceSpec | None],
    last: str | None,
    trigger_ms: int | None,
    directory: Path,
    problems: Problems,
) -> SinkSpec | None:
    """The sink; None if something about it is wrong, which has been said then.

    `names` are all sources and steps, with the sources' specs; `last` is what a sink without
    `from` takes, and `trigger_ms` the file's.
    """
    count = len(problems)
    owner = f"sink {entry.key!r}"
    section = read_section(owner, entry.value, entry.place, SINK_FIELDS, problems)
    if section is None:
        return None
    name = _input(owner, section, names, last, problems)
    format = section.get("format", "json")
    schema = read_schema(owner, section, format, directory, problems)
    is_table = any(section.given(field) for field in ("lake", "archive", "delta", "iceberg"))
    _check(owner, section, format, names.get(name), problems)
    if len(problems) > count or schema is None:
        return None
    default_trigger_ms = TABLE_TRIGGER_MS if is_table else 0
    if trigger_ms is not None:
        default_trigger_ms = trigger_ms
    return SinkSpec(
        name=entry.key,
        input=name,
        topic=section.get("topic", ""),
        topic_column=section.get("topic_column", ""),
        lake=section.get("lake", ""),
        archive=section.get("archive", ""),
        screen=section.get("screen", False),
        delta=section.get("delta", ""),
        iceberg=section.get("iceberg", ""),
        key=section.get("key", ""),
        value=section.get("value", ""),
        format=format,
        avro_schema=schema.avro,
        headers=section.get("headers", {}),
        exactly_once=section.get("exactly_once", False),
        mode=section.get("mode", "update" if section.given("upsert") else "append"),
        upsert=section.get("upsert", ()),
        latest_by=section.get("latest_by", ""),
        partition_by=section.get("partition_by", ()),
        rows=section.get("rows", 20),
        trigger_ms=section.get("trigger", default_trigger_ms),
        options=section.get("options", {}),
        line=entry.place.line,
    )


def _input(
    owner: str,
    section: Section,
    names: Mapping[str, SourceSpec | None],
    last: str | None,
    problems: Problems,
) -> str:
    """The name whose rows are written, as it was defined."""
    if not section.given("from"):
        if last is None and names:
            problems.add(
                section.place, f"{owner} needs 'from': without steps there are several sources."
            )
        return last or ""
    given: str = section.get("from", "")
    by_lower = {name.lower(): name for name in names}
    if given and given.lower() not in by_lower:
        advice = suggestion(given, names)
        problems.add(
            section.place_of("from"),
            f"{owner} takes {given!r}, which is not a source or step{advice}",
        )
    return by_lower.get(given.lower(), given)


def _check(
    owner: str, section: Section, format: str, source: SourceSpec | None, problems: Problems
) -> None:
    """What fields of a sink say about each other."""
    place = section.key_place
    if section.given("topic") or section.given("topic_column"):
        check_options(owner, section, SINK_OPTIONS, _OWN_OPTIONS, problems)
    if section.given("screen") and section.get("screen") is False:
        problems.add(section.place_of("screen"), f"'screen' of {owner} must be true.")
    if section.given("upsert") and section.get("mode") in ("append", "complete"):
        problems.add(
            place("mode"), f"{owner} has 'upsert', for which the mode can only be 'update'."
        )
    if any(map(section.given, ("schema", "schema_file"))) and format != "avro":
        problems.add(
            place("schema" if section.given("schema") else "schema_file"),
            f"{owner} has format {format!r}; a schema is for 'avro'.",
        )
    if section.given("archive"):
        if source is None or source.format != "raw" or source.is_lake:
            problems.add(
                place("archive"), f"{owner} is an archive, so it takes a source with format 'raw'."
            )
        if section.get("mode", "append") != "append":
            problems.add(place("mode"), f"{owner} is an archive, whose mode can only be 'append'.")
