"""`format("headwater")`: what Spark is given, which leads to the readers and the writers.

Its methods run in short-lived processes on the driver. Whatever is wrong with options is found as
early as Spark lets us: names when a frame is made, and all else when it is planned.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from headwater.pipeline.connector.option_table import OptionError
from headwater.pipeline.connector.record_schema import source_schema
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS


class HeadwaterDataSource(DataSource):
    """Found by Spark through the package `pyspark_headwater`."""

    @classmethod
    def name(cls) -> str:
        return "headwater"

    def schema(self) -> StructType:
        SOURCE_OPTIONS.check(self.options)
        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from headwater.pipeline.connector.batch_reader import HeadwaterBatchReader

        return HeadwaterBatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from headwater.pipeline.connector.stream_reader import HeadwaterStreamReader

        return HeadwaterStreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from headwater.pipeline.sink.batch_writer import HeadwaterBatchWriter

        if overwrite:
            raise OptionError(
                "A topic cannot be overwritten, records are only added to it: use mode('append')."
            )
        return HeadwaterBatchWriter(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from headwater.pipeline.sink.stream_writer import HeadwaterStreamWriter

        return HeadwaterStreamWriter(self.options, schema)
