"""Topics as frames: the connector's rows, decoded, with what is bad told apart from the rest.

    raw rows -> parsed (once a record) -> row and problem -> good rows | bad records

The optimizer would parse a record once for the filter and again for the columns; the parsed struct
therefore comes out of a generator (`explode` of one element), which it does not look through.
"""

from __future__ import annotations

from typing import cast

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from headwater.base.checks import check
from headwater.base.errors import InvalidConfigError
from headwater.pipeline.compiled.coding.avro_coding import decoded_avro
from headwater.pipeline.compiled.coding.avro_types import spark_schema
from headwater.pipeline.compiled.coding.text_decoding import (
    csv_result,
    decoded_csv,
    decoded_json,
    json_result,
)
from headwater.pipeline.compiled.connector_options import COLUMNS, read_options
from headwater.pipeline.compiled.row_counts import READ, REJECTED, SOURCE_METRICS
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill
from headwater.pipeline.declared.specs.source import SourceSpec

_PARSED, _ROW, _PROBLEM = "_headwater_parsed", "_headwater_row", "_headwater_problem"
_PLACE = ("topic", "partition", "offset")
FORMAT = "headwater"


class TopicSource:
    """The topics of one source, read as a stream, or as a batch of all or of a range of time."""

    def __init__(
        self,
        spec: PipelineSpec,
        source: SourceSpec,
        spark: SparkSession,
        *,
        streaming: bool,
        backfill: Backfill | None = None,
    ) -> None:
        self._spec = spec
        self.source = source
        self._spark = spark
        self.streaming = streaming
        # A source that is not streamed is a table of all there is, whatever range is asked for.
        self._backfill = backfill if source.streaming else None
        # What the first batch that reads it will have counted; of a stream Spark reports it.
        self._observation = None if streaming else Observation()

    @property
    def row_schema(self) -> StructType:
        """The columns that are in the values; of a source that is not raw."""
        if self.source.format == "avro":
            return spark_schema(self.source.avro_schema)
        parsed = StructType.fromDDL(self.source.schema)
        check(isinstance(parsed, StructType), "a list of columns is a struct")
        return cast(StructType, parsed)

    def records(self, columns: tuple[str, ...], group: str = "") -> DataFrame:
        """The connector's rows, with these of its columns."""
        wanted = set(columns) | ({"timestamp"} if self._backfill else set())
        options = read_options(
            self._spec,
            self.source,
            wanted,
            streaming=self.streaming,
            backfill=self._backfill,
            group=group,
        )
        reader = self._spark.readStream if self.streaming else self._spark.read
        frame = reader.format(FORMAT).options(**options).load()
        if self._backfill is not None:
            at_ms = f.unix_millis("timestamp")
            frame = frame.where(
                (at_ms >= self._backfill.from_ms) & (at_ms < self._backfill.until_ms)
            )
        return frame.select(*columns)

    def rows(self) -> DataFrame:
        """The good rows, with the columns that the source declares."""
        frame = self._raw_rows() if self.source.format == "raw" else self._decoded_rows()
        if self.source.watermark is not None:
            frame = frame.withWatermark(self.source.watermark.column, self.source.watermark.delay)
        return frame

    def _raw_rows(self) -> DataFrame:
        # An archive keeps records whole.
        archived = any(sink.archive and sink.input == self.source.name for sink in self._spec.sinks)
        headers = archived or "headers" in self.source.metadata
        records = self.records(tuple(each for each in COLUMNS if each != "headers" or headers))
        return self._counted(records, f.lit(False))

    def _decoded_rows(self) -> DataFrame:
        columns = {"value", *self.source.metadata}
        fails = not self.source.has_dead_letters and self.source.bad_records == "fail"
        if fails:
            columns.update(_PLACE)
        frame = self._judged(self.records(tuple(each for each in COLUMNS if each in columns)))
        if fails:
            frame = frame.where(f.when(f.col(_PROBLEM).isNull(), True).otherwise(self._complaint()))
        else:
            frame = frame.where(f.col(_PROBLEM).isNull())
        values = [f.col(_ROW).getField(name).alias(name) for name in self.row_schema.fieldNames()]
        return frame.select(*values, *map(_metadata_column, self.source.metadata))

    def bad_records(self) -> DataFrame:
        """The whole records that cannot be decoded, with the column `problem`."""
        # In a group of its own: it need not be as far as the queries of the sinks.
        group = f"{self._spec.group(self.source)}-dead-letters"
        frame = self._judged(self.records(COLUMNS, group)).where(f.col(_PROBLEM).isNotNull())
        return frame.select(*COLUMNS, f.col(_PROBLEM).alias("problem"))

    def _judged(self, records: DataFrame) -> DataFrame:
        """Records with their row and what is wrong with them."""
        value, schema = f.col("value"), self.row_schema
        parsed = records.select(
            *records.columns, f.explode(f.array(self._parsed(value, schema))).alias(_PARSED)
        )
        row, problem = self._result(value, f.col(_PARSED), schema)
        judged = parsed.select(*records.columns, row.alias(_ROW), problem.alias(_PROBLEM))
        return self._counted(judged, f.col(_PROBLEM).isNotNull())

    def _counted(self, frame: DataFrame, is_rejected: Column) -> DataFrame:
        """The same frame, whose rows are counted as they pass."""
        counts = f.count(f.lit(1)).alias(READ), f.count_if(is_rejected).alias(REJECTED)
        name = f"{SOURCE_METRICS}{self.source.name}"
        return frame.observe(self._observation or name, *counts)

    @property
    def observations(self) -> dict[str, Observation]:
        """What counts its rows by its name, if it is no stream."""
        return {} if self._observation is None else {self.source.name: self._observation}

    def _parsed(self, value: Column, schema: StructType) -> Column:
        options = self.source.format_options
        match self.source.format:
            case "json":
                return decoded_json(value, schema, options)
            case "csv":
                return decoded_csv(value, schema, options)
            case "avro":
                return decoded_avro(
                    value, self.source.avro_schema, confluent_header=self.source.confluent_header
                )
        raise InvalidConfigError(f"The format {self.source.format!r} has nothing to decode.")

    def _result(self, value: Column, parsed: Column, schema: StructType) -> tuple[Column, Column]:
        match self.source.format:
            case "json":
                return json_result(value, parsed, schema)
            case "csv":
                return csv_result(value, parsed, schema)
        return parsed.getField("row"), parsed.getField("problem")

    def _complaint(self) -> Column:
        """An expression that fails the query, with the sentence that names the record."""
        return f.raise_error(
            f.format_string(
                f"Source '{self.source.name}': bad record in topic %s, partition %d, offset %d: "
                "%s. Give the source a dead_letter topic to set such records aside.",
                *map(f.col, _PLACE),
                f.col(_PROBLEM),
            )
        ).cast("boolean")


def _metadata_column(name: str) -> Column:
    column = f.col(name)
    return (column.cast("string") if name == "key" else column).alias(f"_{name}")
