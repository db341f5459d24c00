"""The dead letters of a source: records that cannot be decoded, whole, with the reason.

One query for each source that sets them aside, beside those of the sinks and with its own
checkpoint; so a bad record is written once however many sinks there are: at least once across
crashes, or exactly once if a sink of the pipeline asks for that. Key, value and headers stay as
they were; behind those of the record come the headers of every dead letter, and some of pipelines.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

from headwater.pipeline.compiled.coding.arrow_function import arrow_function
from headwater.pipeline.compiled.coding.text_decoding import NOT_JSON
from headwater.pipeline.compiled.sinks.source_letters import source_letter_headers
from headwater.pipeline.compiled.topic_source import TopicSource
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.source import SourceSpec

_SPARK_HEADERS: Final = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))
_ARROW_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def query_name(source: SourceSpec) -> str:
    """What the query of a source's dead letters, and its checkpoint, are called."""
    return f"{source.name}-dead-letters"


def dead_letters(pipeline: PipelineSpec, source: TopicSource) -> DataFrame:
    """Rows for the dead letter topic: key, value and headers."""
    name, group = pipeline.name, pipeline.group(source.source)
    source_name = source.source.name
    schema_json = source.row_schema.json() if source.source.format == "json" else ""

    def headers(rows: pa.Array) -> pa.Array:
        found = [
            source_letter_headers(row, name, source_name, group, schema_json)
            for row in rows.to_pylist()
        ]
        return pa.array(found, _ARROW_HEADERS)

    told = f.struct(
        "headers",
        "problem",
        "topic",
        "partition",
        "offset",
        f.unix_millis("timestamp").alias("timestamp_ms"),
        # That of the batch: one that comes again after a crash writes the same letters.
        f.unix_millis(f.current_timestamp()).alias("failed_ms"),
        # Looked at again only where there is more to tell than Spark did.
        f.when(f.col("problem") == NOT_JSON, f.col("value")).alias("misfit"),
    )
    made = arrow_function(headers, _SPARK_HEADERS)(told)
    return source.bad_records().select("key", "value", made.alias("headers"))
