"""The built-in pipelines on a real Spark, run once over a small stream: every result is right.

The small tier leaves `aggregate` to the full one, which runs all of them beside each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.pipeline.builtin.catalogue import builtin_path
from headwater.pipeline.compiled.compiled_pipeline import Query, compile_pipeline
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.run_mode import Once
from headwater.pipeline.demo.calculation import calculate
from headwater.pipeline.demo.comparison import (
    compare_archive,
    compare_closed_revenue,
    compare_paid_orders,
    compare_rejected,
    compare_revenue,
)
from headwater.pipeline.demo.outcome import REJECTED, REVENUE, RULES
from headwater.pipeline.demo.results import (
    read_archive,
    read_paid_orders,
    read_revenue,
    rejected_in_topic,
    revenue_in_topic,
)
from headwater.pipeline.demo.sending import SentRecord, send_wave
from headwater.pipeline.demo.shop import ORDERS, PAYMENTS, ShopStream, make_stream
from headwater.pipeline.demo.topics import create_topics, read_topic
from headwater.pipeline.lake.verify.verify import verify
from headwater.testing.running_broker import RunningBroker
from tests.support.tiers import full_tier


def run_once(
    spark: SparkSession, address: str, state: Path, variables: Mapping[str, Mapping[str, str]]
) -> str:
    """Run built-in pipelines beside each other to their ends; what their screens show."""
    shown: list[str] = []
    queries: list[Query] = []
    for name, values in variables.items():
        spec = load_pipeline(
            builtin_path(name), values, bootstrap_servers=address, state_directory=state / name
        )
        queries += compile_pipeline(spec, spark, shown.append).start(Once())
    for query in queries:
        query.awaitTermination()
        assert query.exception() is None
    return "".join(shown)


def test_built_in_pipelines_give_what_plain_python_does(
    spark: SparkSession, headwater_fresh_broker: RunningBroker, tmp_path: Path
) -> None:
    address, lake = headwater_fresh_broker.bootstrap, tmp_path / "lake"
    create_topics(address, (ORDERS, PAYMENTS, REVENUE, "again", *REJECTED))
    # One wave, in one batch: nothing comes after the watermark, so nothing is left out.
    stream = ShopStream(11, make_stream(11, 400).first_wave, ())
    sent = send_wave(address, stream.first_wave, seconds=0, on_progress=lambda written: None)
    expected = calculate(stream, RULES)
    assert expected.paid_orders
    assert expected.closed_revenue

    tables = {"lake": str(lake)}
    variables = {"archive": {"topics": f"{ORDERS},{PAYMENTS}", "lake": str(lake / "archive")}}
    variables |= {"aggregate": tables, "join": tables} if full_tier() else {"join": tables}
    run_once(spark, address, tmp_path, variables)

    verdicts = [
        compare_archive(sent, read_archive(lake / "archive")),
        compare_paid_orders(expected, read_paid_orders(lake / "paid_orders")),
    ]
    if full_tier():
        topics = [read_topic(address, topic) for topic in REJECTED]
        verdicts += [
            compare_revenue(expected, read_revenue(lake / "revenue")),
            compare_closed_revenue(expected, revenue_in_topic(read_topic(address, REVENUE))),
            compare_rejected(expected, [one for each in topics for one in rejected_in_topic(each)]),
        ]
    assert not [verdict for verdict in verdicts if not verdict.is_right]
    assert verify(lake / "archive", bootstrap_servers=address) == []

    replay = {"lake": str(lake / "archive"), "topic": ORDERS, "target": "again"}
    shown = run_once(spark, address, tmp_path, {"replay": replay})
    orders = [record for record in sent if record.topic == ORDERS]
    again = [
        SentRecord(ORDERS, record.partition, record.offset, record.key, record.value)
        for record in read_topic(address, "again")
    ]
    assert sorted(record[3:] for record in again) == sorted(record[3:] for record in orders)
    assert f"{len(orders)}" in shown
