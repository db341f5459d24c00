"""The built-in pipeline `audit` on a real Spark: its sums are those of the book.

The small tier runs it once over all rows, the full one twice, so that sums go on.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headwater import Consumer, Producer, TopicPartition
from headwater.audit.topic_book import make_book
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.pipeline.builtin.catalogue import builtin_path
from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.run_mode import Once
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.testing.running_broker import RunningBroker
from tests.support.audit.audit_rows import led_rows
from tests.support.tiers import full_tier

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS


def publish(broker: RunningBroker) -> None:
    publisher = broker._serving().context.audit_publisher

    async def look() -> None:
        publisher.look()

    broker._run(look())
    broker._run(publisher.publish_all())
    assert publisher.failed_rounds == 0


def run_once(spark: SparkSession, broker: RunningBroker, state: Path, lake: Path) -> None:
    spec = load_pipeline(
        builtin_path("audit"),
        {"lake": str(lake)},
        bootstrap_servers=broker.bootstrap,
        state_directory=state,
    )
    for query in compile_pipeline(spec, spark, print).start(Once()):
        query.awaitTermination()
        assert query.exception() is None


def send(broker: RunningBroker, topic: str, hours: list[int]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number, hour in enumerate(hours):
            timestamp_ms = START_MS + hour * HOUR_MS + number * 1_000
            producer.send(topic, b"%d" % number, timestamp_ms=timestamp_ms).result(30)


def test_sums_by_topic_and_hour_are_those_of_the_book(
    spark: SparkSession, headwater_fresh_broker: RunningBroker, tmp_path: Path
) -> None:
    broker, lake = headwater_fresh_broker, tmp_path / "lake"
    for topic in ("orders", "payments"):
        broker.create_topic(topic, configs={"retention.ms": "-1"})
    publish(broker)
    send(broker, "orders", [0, 0, 0, 1, 1, 30])
    send(broker, "payments", [1, 1])
    publish(broker)
    if full_tier():
        run_once(spark, broker, tmp_path / "state", lake)
    # What comes later changes the sums of its hour.
    send(broker, "orders", [1, 0])
    with Consumer(
        bootstrap_servers=broker.bootstrap, group_id="billing", enable_auto_commit=False
    ) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        for offset in (5, 3):
            consumer.commit({partition: OffsetAndMetadata(offset)})
    publish(broker)
    broker._serving().context.partitions.get("payments", 0).gaps_refused += 3
    publish(broker)  # Nothing was stored there, and it is told all the same.
    run_once(spark, broker, tmp_path / "state", lake)

    rows = led_rows(broker._serving().context.partitions)
    expected: dict[tuple[int, str], list[int]] = {}
    for topic in ("orders", "payments"):
        book = make_book(topic, rows, from_ms=0, to_ms=2**62, now_ms=0)
        for bucket in book.buckets:
            key = (bucket.start_ms // HOUR_MS * HOUR_MS, topic)
            sums = expected.setdefault(key, [0, 0, 0, 0, 0])
            values = (
                *(bucket.count, bucket.stored_count, bucket.late_count),
                *(bucket.bytes, bucket.batches),
            )
            expected[key] = [a + b for a, b in zip(sums, values, strict=True)]
    assert expected[START_MS, "orders"][0] == 4
    names = ("count", "stored_count", "late_count", "bytes", "batches")
    told = LakeTable(lake / "audit_topics").read_arrow().to_pylist()
    found = {
        (int(row["window_start"].timestamp() * 1000), row["topic"]): [row[name] for name in names]
        for row in told
        if row["count"]
    }
    assert found == expected
    refused = [row for row in told if row["gaps_refused"]]
    assert [(row["topic"], row["gaps_refused"], row["count"]) for row in refused] == [
        ("payments", 3, 0)
    ]
    [group] = LakeTable(lake / "audit_groups").read_arrow().to_pylist()
    assert (group["group"], group["commit_count"], group["went_back_count"]) == ("billing", 2, 1)
