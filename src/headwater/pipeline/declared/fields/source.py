"""The fields of a source."""

from __future__ import annotations

from typing import Final

from headwater.pipeline.declared.fields.kinds import (
    COUNT,
    FLAG,
    LAKE,
    NAMES,
    OFFSETS,
    PATH,
    SCHEMA,
    SECTION,
    SETTINGS,
    TEXT,
    TOPIC,
    TOPICS,
    choice,
)
from headwater.pipeline.declared.fields.table import Field, FieldTable

FORMATS: Final = ("json", "csv", "avro", "raw")
_TOPIC_SOURCES: Final = ("topic", "topics", "pattern")

SOURCE_FIELDS: Final = FieldTable(
    "A source",
    "Exactly one of `topic`, `topics`, `pattern` and `lake` says what is read.",
    (
        Field("topic", TOPICS, "The topic, or several with commas.", example="orders"),
        Field(
            "topics", TOPICS, "The topics, as a list or with commas.", example="[orders, returns]"
        ),
        Field(
            "pattern",
            TEXT,
            "A regular expression that the whole name of a topic matches.",
            example="orders-.*",
        ),
        Field(
            "lake",
            LAKE,
            "The directory of a lake table, not on an object store.",
            example="./lake/customers",
        ),
        Field(
            "streaming",
            FLAG,
            "Whether new rows are waited for. What is not streamed is read whole, and may be "
            "joined to a stream.",
            default="`true` for topics; lake tables are always static",
        ),
        Field(
            "format",
            choice(*FORMATS),
            "How a record's value becomes columns. `raw` leaves `key` and `value` as they are, "
            "beside `topic`, `partition`, `offset`, `timestamp` and `timestampType`.",
            default="`json` with a schema, `raw` without",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "schema",
            SCHEMA,
            "The columns, in Spark's DDL; a record without a `NOT NULL` one is a bad record. For "
            "`avro` an Avro schema, as JSON or as YAML.",
            example="order_id STRING NOT NULL, amount DOUBLE, at TIMESTAMP",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "schema_file",
            PATH,
            "A file that holds the schema; its path starts at the pipeline's file.",
            example="order.avsc",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "confluent_header",
            FLAG,
            "Avro records begin with the five bytes of Confluent's schema registry, which are "
            "left out.",
            default="`false`",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "format_options",
            SETTINGS,
            "Options of Spark's JSON and CSV readers.",
            example="{sep: ;, timestampFormat: dd.MM.yyyy HH:mm}",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "metadata",
            NAMES,
            "Of decoded records, what else becomes columns: `key`, `topic`, `partition`, `offset`, "
            "`timestamp`, `headers`, with a `_` before the name. Of raw ones, `headers`.",
            example="[key, timestamp]",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "watermark",
            SECTION,
            "How late events may be; windows, deduplication and joins of streams need it.",
            example="{column: at, delay: 10 minutes}",
        ),
        Field(
            "dead_letter",
            TOPIC,
            "The topic that gets the records that cannot be decoded as dead letters: unchanged, "
            "with the reason and where they came from in headers.",
            default="with `bad_records: dead_letter`, `dlq.` and the `group`",
            example="orders-rejected",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "bad_records",
            choice("fail", "skip", "dead_letter"),
            "A record that cannot be decoded fails the run, is left out, or becomes a dead letter.",
            default="`dead_letter` with such a topic, `fail` without",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "starting_offsets",
            OFFSETS,
            "Where the first run starts: `earliest`, `latest`, `group` (what the consumer group "
            "has committed), a time, or offsets by topic and partition. Later runs go on from "
            "their checkpoint.",
            default="`earliest`",
            example="2026-01-31T00:00:00Z",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "max_records_per_batch",
            COUNT,
            "At most this many records in one batch.",
            default="no limit",
            example="500_000",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "group",
            TEXT,
            "The consumer group that shows the progress in `headwater groups`.",
            default="the pipeline's name",
            only_with=_TOPIC_SOURCES,
        ),
        Field(
            "options",
            SETTINGS,
            "Further options of the connector, as in [spark.md](spark.md).",
            example="{failOnDataLoss: false}",
            only_with=_TOPIC_SOURCES,
        ),
    ),
    one_of=("topic", "topics", "pattern", "lake"),
)
