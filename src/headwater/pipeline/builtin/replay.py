"""The step of the pipeline `replay`: records of a lake table back into a topic.

It writes with the client, not with Spark, because a replay keeps the order of records, and Spark's
tasks know none among them. What comes out is one row that tells what was done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.base.errors import InvalidConfigError
from headwater.pipeline.declared.fields.durations import DurationError, parse_moment_ms
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.replay.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replay_to_topic(
    *,
    spark: SparkSession,
    bootstrap_servers: str,
    lake: str,
    topic: str,
    target: str,
    from_time: str | None = None,
    until_time: str | None = None,
    records_per_second: float | None = None,
    run: str = "replay",
) -> DataFrame:
    """Replay, and return a row that tells of it."""
    start = time.monotonic()
    now_ms = int(time.time() * 1000)
    report = replay(
        LakeTable(lake),
        bootstrap_servers=bootstrap_servers,
        topic=topic,
        target=target,
        name=run,
        from_ms=_moment_ms("from", from_time, now_ms),
        until_ms=_moment_ms("until", until_time, now_ms),
        rows_per_s=_rate(records_per_second),
    )
    row = (topic, target, report.row_count, round(time.monotonic() - start, 1))
    return spark.createDataFrame(
        [row], "topic STRING, target STRING, records BIGINT, seconds DOUBLE"
    )


def _moment_ms(name: str, text: str | None, now_ms: int) -> int | None:
    """A time as the file or the command line gives it; YAML has read some forms already."""
    if not text:
        return None
    try:
        return parse_moment_ms(str(text), now_ms)
    except DurationError as error:
        raise InvalidConfigError(f"The variable {name!r} of the replay: {error}") from None


def _rate(rate: object) -> float | None:
    if rate is None or rate == "":
        return None
    if not isinstance(rate, int | float) or rate <= 0:
        raise InvalidConfigError(
            f"The variable 'records_per_second' must be a number above 0, not {rate!r}."
        )
    return float(rate)
