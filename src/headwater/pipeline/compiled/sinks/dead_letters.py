"""The dead letters of a source: records that cannot be decoded, whole, with the reason.

One query for each source that names a topic for them, beside those of the sinks and with its own
checkpoint; so a bad record is written once however many sinks there are: at least once across
crashes, or exactly once if a sink of the pipeline asks for that. Key, value and headers stay as
they were; headers of our own, after those of the record, say why it is there and where it was.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from headwater.pipeline.compiled.coding.arrow_function import arrow_function
from headwater.pipeline.compiled.coding.bad_json import json_problem
from headwater.pipeline.compiled.coding.text_decoding import NOT_JSON
from headwater.pipeline.compiled.topic_source import TopicSource
from headwater.pipeline.declared.specs.source import SourceSpec

PREFIX: Final = "headwater.dead-letter."
_HEADERS: Final = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


def query_name(source: SourceSpec) -> str:
    """What the query of a source's dead letters, and its checkpoint, are called."""
    return f"{source.name}-dead-letters"


def dead_letters(pipeline: str, source: TopicSource) -> DataFrame:
    """Rows for the dead letter topic: key, value and headers."""
    frame = source.bad_records()
    reason = f.col("problem")
    if source.source.format == "json":
        schema_json = source.row_schema.json()

        def explain(values: pa.Array) -> pa.Array:
            bad = values.to_pylist()
            found = [json_problem(each, schema_json) if each else None for each in bad]
            return pa.array(found, pa.string())

        misfit = f.when(reason == NOT_JSON, f.col("value"))
        reason = f.coalesce(arrow_function(explain, StringType())(misfit), reason)
    told: dict[str, Column] = {
        "reason": reason,
        "pipeline": f.lit(pipeline),
        "source": f.lit(source.source.name),
        "topic": f.col("topic"),
        "partition": f.col("partition").cast("string"),
        "offset": f.col("offset").cast("string"),
        "timestamp": f.unix_millis("timestamp").cast("string"),
    }
    ours = f.array(
        *(
            f.struct(f.lit(PREFIX + name).alias("key"), text.cast("binary").alias("value"))
            for name, text in told.items()
        )
    )
    before = f.coalesce(f.col("headers"), f.array().cast(_HEADERS))
    return frame.select("key", "value", f.concat(before, ours.cast(_HEADERS)).alias("headers"))
