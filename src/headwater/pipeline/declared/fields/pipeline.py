"""The fields of the file itself, of a watermark, and of a step."""

from __future__ import annotations

from typing import Final

from headwater.pipeline.declared.fields.kinds import (
    ARGUMENTS,
    COLUMN,
    COLUMNS,
    DURATION,
    FUNCTION,
    LONG_TEXT,
    NAMES,
    PATH,
    SECTION,
    SETTINGS,
    SQL,
    TEXT,
)
from headwater.pipeline.declared.fields.table import Field, FieldTable

PIPELINE_FIELDS: Final = FieldTable(
    "The file",
    "What stands at the top level of the file.",
    (
        Field(
            "name",
            TEXT,
            "What the pipeline is called: its state directory, its consumer group, and the "
            "name for `status` and `stop`.",
            default="the file's name without its ending",
            example="revenue",
        ),
        Field("description", LONG_TEXT, "What it is for, in a sentence."),
        Field(
            "variables",
            SETTINGS,
            "Variables with their defaults, for `${name}` in any value; `--set name=value` changes "
            "one. One without a default (`name:`) must be given. `${env:NAME}` is the "
            "environment's, and `$${` stands for `${`.",
            example="{topic: orders, within: 15 minutes}",
        ),
        Field(
            "bootstrap_servers",
            TEXT,
            "Any brokers of the cluster; `--bootstrap-server` wins over it.",
            default="`HEADWATER_BOOTSTRAP_SERVER`, or `127.0.0.1:9092`",
            example="broker1:9092,broker2:9092",
        ),
        Field(
            "kafka",
            SETTINGS,
            "Settings of the clients behind all sources and sinks, as in "
            "[client-settings.md](client-settings.md).",
            example="{client.id: revenue}",
        ),
        Field(
            "spark",
            SETTINGS,
            "Spark's configuration; `--conf` wins over it.",
            example="{spark.sql.shuffle.partitions: 8}",
        ),
        Field(
            "state_dir",
            PATH,
            "The directory that holds the pipeline's progress and checkpoints, under its name; "
            "`--state-dir` wins over it. Relative paths, here and elsewhere, start where the "
            "command runs.",
            default="`headwater-pipelines`",
        ),
        Field(
            "checkpoints",
            PATH,
            "Another place for checkpoints: one that every machine of a Spark cluster can use. "
            "With an archive it must be a mounted directory.",
            default="in the state directory",
            example="s3a://bucket/checkpoints/revenue",
        ),
        Field(
            "trigger",
            DURATION,
            "How often a batch is made, for sinks that say nothing else.",
            default="10 seconds for tables; otherwise as soon as the batch before is done",
            example="30 seconds",
        ),
        Field("sources", SECTION, "What is read, by name. Names are tables in SQL."),
        Field("steps", SECTION, "What is done, by name and in this order. A string is SQL."),
        Field("sinks", SECTION, "Where results go, by name.", required=True),
    ),
)

WATERMARK_FIELDS: Final = FieldTable(
    "A watermark",
    "Says when a time is over: an event that comes later than `delay` after newer ones may be "
    "left out.",
    (
        Field("column", COLUMN, "The column with the event's time.", required=True, example="at"),
        Field("delay", DURATION, "How late an event may be.", required=True, example="10 minutes"),
    ),
)

STEP_FIELDS: Final = FieldTable(
    "A step",
    "Exactly one of `sql`, `python` and `deduplicate` says what is done. A step that is a string "
    "is SQL.",
    (
        Field(
            "sql",
            SQL,
            "A query over the names before it. `window(at, '5 minutes')`, with a third argument "
            "for sliding windows, and `session_window(at, '5 minutes')` make windows.",
            example="SELECT * FROM orders WHERE amount > 0",
        ),
        Field(
            "python",
            FUNCTION,
            "A function that takes the frames of `inputs` in their order and returns one. Its "
            "module is looked for beside the pipeline's file and where Python looks.",
            example="cleaning:without_tests",
        ),
        Field(
            "deduplicate",
            COLUMNS,
            "Of rows that agree in these columns, only the first is kept. With a watermark, rows "
            "further apart than its delay may both be kept, and the state is bounded.",
            example="[order_id]",
        ),
        Field(
            "inputs",
            NAMES,
            "The names before it that a function takes.",
            default="the step or source before it",
            example="[orders, customers]",
            only_with=("python",),
        ),
        Field(
            "from",
            TEXT,
            "What is deduplicated.",
            default="the step or source before it",
            only_with=("deduplicate",),
        ),
        Field(
            "arguments",
            ARGUMENTS,
            "Further arguments of the function, by name.",
            example="{rate: 0.5}",
            only_with=("python",),
        ),
        Field("watermark", SECTION, "A watermark on what the step gives."),
    ),
    one_of=("sql", "python", "deduplicate"),
)
