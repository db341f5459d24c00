"""Spark's reports of a pipeline's queries, in one line."""

from __future__ import annotations

import json
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.pipeline.demo.under_way import lag_of, state_of

ENDS = {
    TopicPartition("orders", 0): 100,
    TopicPartition("orders", 1): 50,
    TopicPartition("payments", 0): 7,
}


def report(*offsets: dict[str, dict[str, int]] | None, **others: Any) -> dict[str, Any]:
    """As Spark gives it: offsets are JSON text."""
    sources = [{"endOffset": each and json.dumps(each)} for each in offsets]
    return {"batchId": 3, "sources": sources, "eventTime": {}, **others}


def test_lag_counts_only_the_topics_that_are_read() -> None:
    assert lag_of(report({"orders": {"0": 100, "1": 50}}), ENDS) == 0
    assert lag_of(report({"orders": {"0": 90, "1": 50}}), ENDS) == 10
    assert lag_of(report({"orders": {"0": 90}}), ENDS) == 60
    both = report({"orders": {"0": 100, "1": 50}}, {"payments": {"0": 0}})
    assert lag_of(both, ENDS) == 7


def test_a_source_that_has_read_nothing_yet_has_all_before_it() -> None:
    assert lag_of(report(None), ENDS) == 157


def test_the_slowest_query_tells_the_lag_and_the_watermark() -> None:
    state = state_of(
        "join",
        [
            report(
                {"orders": {"0": 100, "1": 50}},
                eventTime={"watermark": "2026-03-02T09:20:00.500Z"},
                processedRowsPerSecond=10.0,
            ),
            report(
                {"orders": {"0": 60, "1": 50}},
                eventTime={"watermark": "2026-03-02T09:10:00.500Z"},
                processedRowsPerSecond=30.0,
                batchId=7,
            ),
        ],
        ENDS,
    )
    assert state.lag == 40
    assert state.watermark == "09:10:00"
    assert (state.batch_count, state.record_count, state.records_per_s) == (8, 150, 30.0)


def test_before_the_first_report_nothing_is_read() -> None:
    state = state_of("join", [], ENDS)
    assert (state.lag, state.batch_count, state.watermark) == (157, 0, "")
    early = report({"orders": {"0": 0}}, eventTime={"watermark": "1970-01-01T00:00:00.000Z"})
    assert state_of("join", [early], ENDS).watermark == ""
