"""The two that are compared: ours and Spark's own, in one session on one broker.

They take the same options, so a measurement is one function of a `Side`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION_COUNT = 4
#: Tasks that run at the same time.
MASTER = "local[2]"


class Side(NamedTuple):
    #: As in `format(...)`.
    format_name: str
    is_ours: bool

    def options(self, bootstrap: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": bootstrap}

    def rows_of(
        self, spark: SparkSession, bootstrap: str, topic: str, *, only_values: bool = False
    ) -> DataFrame:
        """All of a topic. Spark tells its own connector which columns are read, but not ours."""
        reader = spark.read.format(self.format_name).options(
            **self.options(bootstrap), subscribe=topic, startingOffsets="earliest"
        )
        if only_values and self.is_ours:
            reader = reader.schema("value BINARY")
        frame = reader.load()
        return frame.select("value") if only_values else frame


HEADWATER = Side("headwater", is_ours=True)
OFFICIAL = Side("kafka", is_ours=False)
SIDES = (HEADWATER, OFFICIAL)
