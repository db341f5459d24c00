"""The fields of a sink."""

from __future__ import annotations

from typing import Final

from headwater.pipeline.declared.fields.kinds import (
    COLUMN,
    COLUMNS,
    COUNT,
    DURATION,
    FLAG,
    LAKE,
    PATH,
    SCHEMA,
    SETTINGS,
    TEXT,
    TOPIC,
    choice,
)
from headwater.pipeline.declared.fields.source import FORMATS
from headwater.pipeline.declared.fields.table import Field, FieldTable

_TABLES: Final = ("lake", "delta", "iceberg")
_TOPIC_SINKS: Final = ("topic", "topic_column")

SINK_FIELDS: Final = FieldTable(
    "A sink",
    "Exactly one of `topic`, `topic_column`, `lake`, `archive`, `screen`, `delta` and `iceberg` "
    "says where rows go.",
    (
        Field("from", TEXT, "The step or source whose rows go here.", default="the last step"),
        Field("topic", TOPIC, "A topic.", example="revenue"),
        Field("topic_column", COLUMN, "The column that names the topic of each row."),
        Field(
            "lake",
            LAKE,
            "The directory of a lake table; the first write makes it.",
            example="./lake/revenue",
        ),
        Field(
            "archive",
            LAKE,
            "The directory of an archive of topics: a lake table by topic and date that keeps the "
            "offsets, for `headwater lake verify`. It takes a source with format `raw`.",
            example="./lake/archive",
        ),
        Field("screen", FLAG, "Show the rows of each batch.", example="true"),
        Field("delta", PATH, "The path of a Delta table, where Delta exists for this Spark."),
        Field("iceberg", TEXT, "An Iceberg table, where Iceberg exists for this Spark."),
        Field(
            "mode",
            choice("append", "update", "complete"),
            "Which rows of an aggregation are written: final ones, changed ones, or all each time.",
            default="`append`, or `update` with `upsert`",
        ),
        Field(
            "trigger",
            DURATION,
            "How often a batch is made; `0 seconds` for as soon as the one before is done.",
            default="the file's",
            example="1 minute",
        ),
        Field("key", COLUMN, "The column that becomes the key.", only_with=_TOPIC_SINKS),
        Field(
            "value",
            COLUMN,
            "The column that is the value.",
            default="all columns, encoded by `format`; with `raw` the column `value`",
            only_with=_TOPIC_SINKS,
        ),
        Field(
            "format",
            choice(*FORMATS),
            "How columns become the value. `raw` takes the columns `value`, and `key`, `headers`, "
            "`topic`, `partition` and `timestamp` if they are there.",
            default="`json`",
            only_with=_TOPIC_SINKS,
        ),
        Field(
            "schema",
            SCHEMA,
            "For `avro` the schema to write.",
            default="the one that follows from the columns",
            only_with=_TOPIC_SINKS,
        ),
        Field("schema_file", PATH, "A file that holds it.", only_with=_TOPIC_SINKS),
        Field(
            "headers",
            SETTINGS,
            "Headers of the records: the column for each name.",
            example="{trace: trace_id}",
            only_with=_TOPIC_SINKS,
        ),
        Field(
            "exactly_once",
            FLAG,
            "Write each row once for readers with `isolation.level=read_committed`, over any "
            "crash; otherwise at least once.",
            default="`false`",
            only_with=_TOPIC_SINKS,
        ),
        Field(
            "upsert",
            COLUMNS,
            "The key: a row replaces the one with the same values in these columns.",
            example="[window_start, category]",
            only_with=_TABLES,
        ),
        Field(
            "latest_by",
            COLUMN,
            "With `upsert`: of several rows of one key in a batch, the one with the greatest "
            "value here is kept.",
            only_with=("upsert",),
        ),
        Field(
            "partition_by",
            COLUMNS,
            "The columns whose values make the directories of the table.",
            example="[day]",
            only_with=_TABLES,
        ),
        Field(
            "rows",
            COUNT,
            "How many rows of a batch are shown.",
            default="20",
            only_with=("screen",),
        ),
        Field(
            "options",
            SETTINGS,
            "Further options of the sink: of the connector for topics, of the writer otherwise.",
        ),
    ),
    one_of=("topic", "topic_column", "lake", "archive", "screen", "delta", "iceberg"),
)
