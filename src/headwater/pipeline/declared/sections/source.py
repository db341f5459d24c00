"""A source of the file, from its section to its `SourceSpec`."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Final

from headwater.base.errors import InvalidTopicError
from headwater.base.ids import validate_topic_name
from headwater.client.failures.letter_topics import letter_topic
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS
from headwater.pipeline.declared.fields.durations import DurationError, parse_moment_ms
from headwater.pipeline.declared.fields.option_names import check_options
from headwater.pipeline.declared.fields.pipeline import WATERMARK_FIELDS
from headwater.pipeline.declared.fields.source import SOURCE_FIELDS
from headwater.pipeline.declared.problems import Problems, suggestion
from headwater.pipeline.declared.sections.ddl_schema import Column
from headwater.pipeline.declared.sections.declared_schema import read_schema
from headwater.pipeline.declared.sections.reader import Section, read_section
from headwater.pipeline.declared.specs.source import METADATA, SourceFormat, SourceSpec, Watermark
from headwater.pipeline.declared.yaml_document import Entry, MapValue, TextValue, Value, plain_value

#: The columns of raw records, which are those of Spark's Kafka connector.
RAW_COLUMNS: Final = (
    Column("key", "BINARY"),
    Column("value", "BINARY"),
    Column("topic", "STRING"),
    Column("partition", "INT"),
    Column("offset", "BIGINT"),
    Column("timestamp", "TIMESTAMP"),
    Column("timestampType", "INT"),
)
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "")
#: The decoder sets these itself, to find bad records.
_OWN_FORMAT_OPTIONS: Final = ("mode", "columnnameofcorruptrecord")
#: Options of the connector that the file has fields for.
_OWN_OPTIONS: Final = {
    "subscribe": "topics",
    "subscribepattern": "pattern",
    "assign": "topics",
    "kafka.bootstrap.servers": "bootstrap_servers",
    "headwater.group": "group",
    "headwater.columns": "metadata",
    "includeheaders": "metadata",
    "startingoffsets": "starting_offsets",
    "startingtimestamp": "starting_offsets",
    "maxoffsetspertrigger": "max_records_per_batch",
}
_WORDS: Final = ("earliest", "latest", "group")
_OFFSET: Final = re.compile(r"-1|-2|\d{1,18}", re.ASCII)


def read_source(
    entry: Entry, pipeline: str, directory: Path, problems: Problems
) -> SourceSpec | None:
    """The source; None if something about it is wrong, which has been said then."""
    count = len(problems)
    owner = f"source {entry.key!r}"
    section = read_section(owner, entry.value, entry.place, SOURCE_FIELDS, problems)
    if section is None:
        return None
    has_schema = section.given("schema") or section.given("schema_file")
    format: SourceFormat = section.get("format") or ("json" if has_schema else "raw")
    schema = read_schema(owner, section, format, directory, problems)
    is_lake = section.given("lake")
    if section.get("format", "raw") != "raw" and not has_schema:
        problems.add(
            section.place_of("format"), f"{owner} has format {format!r}, which needs a 'schema'."
        )
    columns = schema.columns if schema is not None else None
    if format == "raw" and not is_lake:
        columns = RAW_COLUMNS
    metadata = _metadata(owner, section, format, problems)
    _check_options(owner, section, format, problems)
    _check_dead_letters(owner, section, pipeline, problems)
    watermark = read_watermark(owner, section, problems)
    if watermark is not None and columns is not None:
        known = (*columns, *(Column(f"_{name}", _metadata_type(name)) for name in metadata))
        _check_watermark_column(owner, watermark, known, section, problems)
    offsets, timestamp_ms = _starting(section, problems)
    if is_lake and section.get("streaming"):
        problems.add(
            section.place_of("streaming"), f"{owner} is a lake table, which cannot be streamed."
        )
    if len(problems) > count or schema is None:
        return None
    return SourceSpec(
        name=entry.key,
        topics=section.get("topic") or section.get("topics") or (),
        pattern=section.get("pattern", ""),
        lake=section.get("lake", ""),
        streaming=section.get("streaming", not is_lake),
        format=format,
        schema=schema.ddl,
        avro_schema=schema.avro,
        confluent_header=section.get("confluent_header", False),
        format_options=section.get("format_options", {}),
        metadata=metadata,
        watermark=watermark,
        dead_letter=section.get("dead_letter", ""),
        bad_records=section.get("bad_records", "fail"),
        starting_offsets=offsets,
        starting_timestamp_ms=timestamp_ms,
        max_records_per_batch=section.get("max_records_per_batch"),
        group=section.get("group", ""),
        options=section.get("options", {}),
        line=entry.place.line,
    )


def read_watermark(owner: str, section: Section, problems: Problems) -> Watermark | None:
    """The watermark of a source or step, if it has one."""
    value: Value | None = section.get("watermark")
    if value is None:
        return None
    name = f"the watermark of {owner}"
    fields = read_section(name, value, section.key_place("watermark"), WATERMARK_FIELDS, problems)
    if fields is None or not {"column", "delay"} <= fields.values.keys():
        return None
    return Watermark(fields.get("column"), fields.get("delay"))


def _metadata(owner: str, section: Section, format: str, problems: Problems) -> tuple[str, ...]:
    names: tuple[str, ...] = section.get("metadata", ())
    known = ("headers",) if format == "raw" else METADATA
    for name in names:
        if name not in known:
            advice = suggestion(name, known)
            problems.add(
                section.place_of("metadata"),
                f"'metadata' of {owner} cannot have {name!r}{advice}",
            )
    return names


def _metadata_type(name: str) -> str:
    return "TIMESTAMP" if name == "timestamp" else "STRING"


def _check_options(owner: str, section: Section, format: str, problems: Problems) -> None:
    if format == "raw" and not section.given("lake"):
        for name in ("dead_letter", "bad_records", "format_options"):
            if section.given(name):
                problems.add(
                    section.key_place(name),
                    f"{owner} has format 'raw', where nothing is decoded: {name!r} has no use.",
                )
    if section.given("confluent_header") and format != "avro":
        problems.add(
            section.key_place("confluent_header"), f"{owner} is not Avro: it has no such header."
        )
    for name in section.get("format_options", {}):
        if name.lower() in _OWN_FORMAT_OPTIONS:
            problems.add(
                section.place_of("format_options"),
                f"'format_options' of {owner} cannot have {name!r}: bad records are handled by "
                "'dead_letter' and 'bad_records'.",
            )
    check_options(owner, section, SOURCE_OPTIONS, _OWN_OPTIONS, problems)


def _check_dead_letters(owner: str, section: Section, pipeline: str, problems: Problems) -> None:
    """Bad records go to one place, and not back to where they came from."""
    policy = section.get("bad_records", "dead_letter")
    if section.given("dead_letter") and policy != "dead_letter":
        problems.add(
            section.key_place("bad_records"),
            f"{owner} cannot have both 'dead_letter' and 'bad_records: {policy}'.",
        )
    topic, named_by = section.get("dead_letter"), "dead_letter"
    if not section.given("dead_letter") and section.get("bad_records") == "dead_letter":
        named_by = "group" if section.given("group") else "bad_records"
        topic = letter_topic(section.get("group") or pipeline)
        try:
            validate_topic_name(topic)
        except InvalidTopicError:
            problems.add(
                section.place_of(named_by),
                f"{owner} has bad records that no topic can be named for: {topic!r}, after the "
                "group, is not a name for one; give it a 'dead_letter'.",
            )
    if topic is not None and _reads(section, topic):
        problems.add(
            section.place_of(named_by),
            f"{owner} reads the topic {topic!r} itself: its dead letters would come back to it.",
        )


def _reads(section: Section, topic: str) -> bool:
    if topic in (section.get("topic") or section.get("topics") or ()):
        return True
    try:
        return bool(re.fullmatch(section.get("pattern") or "(?!)", topic))
    except re.error:
        return False


def _check_watermark_column(
    owner: str,
    watermark: Watermark,
    columns: tuple[Column, ...],
    section: Section,
    problems: Problems,
) -> None:
    entry = section.entries["watermark"].value
    field = entry.get("column") if isinstance(entry, MapValue) else None
    place = field.value.place if field is not None else section.place_of("watermark")
    by_name = {column.name.lower(): column for column in columns}
    column = by_name.get(watermark.column.strip("`").lower())
    if column is None:
        if "." in watermark.column:
            return
        advice = suggestion(watermark.column, [known.name for known in columns])
        problems.add(place, f"{owner} has no column {watermark.column!r}{advice}")
    elif column.type not in _TIMES:
        problems.add(
            place, f"column {column.name!r} is {column.type}, but a watermark needs a TIMESTAMP."
        )


def _starting(section: Section, problems: Problems) -> tuple[str, int | None]:
    """The offsets as the connector takes them, and the time to start from if it is one."""
    value: Value | None = section.get("starting_offsets")
    if isinstance(value, MapValue):
        return _offsets_by_partition(plain_value(value), value, problems), None
    if not isinstance(value, TextValue):
        if value is not None:
            problems.add(value.place, "'starting_offsets' must be a string or a mapping.")
        return "earliest", None
    text = value.text.strip()
    if text.lower() in _WORDS:
        return text.lower(), None
    if text.startswith("{"):
        try:
            return _offsets_by_partition(json.loads(text), value, problems), None
        except (ValueError, RecursionError):
            problems.add(value.place, "'starting_offsets' is not JSON.")
            return "earliest", None
    try:
        return "earliest", parse_moment_ms(text, time.time_ns() // 1_000_000)
    except DurationError:
        problems.add(
            value.place,
            f"'starting_offsets' cannot be {text!r}: 'earliest', 'latest', 'group', a time, or "
            "offsets by topic and partition.",
        )
        return "earliest", None


def _offsets_by_partition(found: Any, value: Value, problems: Problems) -> str:
    """`{topic: {partition: offset}}` as JSON."""
    offsets: dict[str, dict[str, int]] = {}
    for topic, partitions in found.items() if isinstance(found, dict) else ():
        if not isinstance(partitions, dict):
            break
        for partition, offset in partitions.items():
            if not str(partition).isdecimal() or not _OFFSET.fullmatch(str(offset)):
                break
            offsets.setdefault(str(topic), {})[str(partition)] = int(str(offset))
        else:
            continue
        break
    else:
        if offsets:
            return json.dumps(offsets)
    problems.add(
        value.place, "'starting_offsets' must be offsets by topic and partition: {orders: {0: 23}}."
    )
    return "earliest"
