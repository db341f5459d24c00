"""A real Spark writes and reads lake tables: archived topics, and results merged by key."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Producer
from headwater.pipeline.lake.batch_write import write_batch
from headwater.pipeline.lake.checkpoint import checkpoint_writer
from headwater.pipeline.lake.errors import LakeError
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.verify.verify import verify
from headwater.pipeline.lake.writing.archive import archive_batch
from headwater.testing.running_broker import RunningBroker
from tests.support.spark.lakes import sorted_rows

#: Not to be taken for a number by whoever reads directory names.
TOPIC = "007"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        yield running


def produce(broker: RunningBroker, first: int, last: int) -> None:
    """Over two days, so that there is more than one date."""
    start_ms = int(time.time() * 1000) - 48 * HOUR_MS
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(first, last):
            producer.send(
                TOPIC,
                str(number).encode(),
                str(number % 5).encode(),
                headers=[("n", b"\x00\xff")] if number % 2 else [],
                timestamp_ms=start_ms + number % 40 * HOUR_MS,
            )


def test_an_archive_survives_a_failure_and_reads_the_same_everywhere(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    broker.create_topic(TOPIC, partitions=2)
    table, checkpoint = LakeTable(tmp_path / "lake"), tmp_path / "checkpoint"
    committed: list[bool] = []

    def run(*, fails: bool) -> None:
        def write(frame: DataFrame, batch_id: int) -> None:
            committed.append(archive_batch(table, frame, batch_id, checkpoint=checkpoint))
            if fails:
                raise RuntimeError("after the commit, before Spark knows of it")

        source = spark.readStream.format("headwater").options(
            **{
                "kafka.bootstrap.servers": broker.bootstrap,
                "subscribe": TOPIC,
                "startingOffsets": "earliest",
                "includeHeaders": "true",
            }
        )
        stream = source.load().writeStream.foreachBatch(write)
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        started = query.start()
        if fails:
            with pytest.raises(Exception, match="after the commit"):
                started.awaitTermination()
        else:
            started.awaitTermination()

    produce(broker, 0, 500)
    run(fails=True)
    run(fails=False)
    produce(broker, 500, 800)
    run(fails=False)
    assert committed == [True, False, True]
    [zero, one] = table.snapshot().coverage.values()
    assert [each.start for each in (*zero, *one)] == [0, 0]
    assert sum(each.end for each in (*zero, *one)) == 800
    assert verify(table, bootstrap_servers=broker.bootstrap, deep=True) == []

    by_arrow = table.read_arrow()
    by_spark = table.read(spark)
    assert sorted_rows(by_spark.toArrow()) == sorted_rows(by_arrow)
    assert by_spark.columns == by_arrow.column_names
    assert set(by_arrow["topic"].to_pylist()) == {TOPIC}
    assert len(set(by_arrow["date"].to_pylist())) > 1
    older = table.read(spark, version=1)
    assert older.count() == 500


def test_results_are_merged_by_key(spark: SparkSession, tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "totals")
    rows = spark.range(60).select(
        F.window(F.timestamp_seconds(F.col("id") * 600), "1 hour").alias("window"),
        F.col("id").alias("amount"),
        F.lit("a=b/c").alias("place"),
        F.array(F.lit("x")).alias("tags"),
        F.create_map(F.lit("k"), F.col("id")).alias("map"),
        F.lit(1.25).cast("decimal(10,2)").alias("price"),
        F.lit(None).cast("timestamp_ntz").alias("local"),
    )
    options = {
        "writer": "totals",
        "mode": "update",
        "keys": ["window", "place"],
        "latest_by": "amount",
        "partition_by": ["place"],
    }
    assert write_batch(table, rows, batch_id=0, **options)  # type: ignore[arg-type]
    later = rows.where("amount < 12").withColumn("amount", F.col("amount") + 100)
    assert write_batch(table, later, batch_id=1, **options)  # type: ignore[arg-type]
    assert not write_batch(table, later, batch_id=1, **options)  # type: ignore[arg-type]
    amounts = sorted(table.read_arrow()["amount"].to_pylist())
    assert amounts == [17, 23, 29, 35, 41, 47, 53, 59, 105, 111]
    assert sorted_rows(table.read(spark).toArrow()) == sorted_rows(table.read_arrow())
    with pytest.raises(LakeError, match="two rows with the key"):
        write_batch(
            table,
            rows,
            writer="totals",
            batch_id=2,
            mode="upsert",
            keys=["place"],
            partition_by=["place"],
        )
    assert write_batch(table, rows.limit(0), writer="all", batch_id=0, mode="complete")
    assert table.read(spark).count() == 0
    with pytest.raises(LakeError, match="does not hold the id"):
        checkpoint_writer(tmp_path, "totals")
