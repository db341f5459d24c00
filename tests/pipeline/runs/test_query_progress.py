"""The figures of a query follow from what Spark reports, however often one looks."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.runs.query_progress import advanced
from headwater.pipeline.runs.run_record import QueryRecord, RowCounts, SourceRows


def report(batch_id: int, rows: int = 0, **others: Any) -> dict[str, Any]:
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "processedRowsPerSecond": 10.0,
        "durationMs": {"addBatch": 50, "triggerExecution": 100 + batch_id},
        "sources": [],
        "stateOperators": [],
        **others,
    }


@given(st.lists(st.integers(0, 100), max_size=20), st.data())
def test_rows_are_counted_once_in_any_looks(rows: list[int], data: st.DataObject) -> None:
    reports = [report(number, count) for number, count in enumerate(rows)]
    record = QueryRecord("q")
    seen = 0
    while seen < len(reports):
        again = data.draw(st.integers(0, seen))
        seen = data.draw(st.integers(seen + 1, len(reports)))
        record = advanced(record, reports[again:seen])
    assert record.rows.read == sum(rows)
    assert record.batch_rows.read == (rows[-1] if rows else 0)
    assert record.batch_id == (len(rows) - 1 if rows else None)


def test_all_figures_of_a_report() -> None:
    offsets = {"orders": {"0": 10, "1": 5}, "@headwater": {"bootstrap": "x", "group": ""}}
    latest = {"orders": {"0": 12, "1": 5, "2": 7}, "@headwater": {"bootstrap": "x", "group": ""}}
    record = advanced(
        QueryRecord("q"),
        [
            report(
                3,
                15,
                eventTime={"watermark": "2026-01-01T00:00:00.000Z"},
                sources=[
                    {"endOffset": json.dumps(offsets), "latestOffset": latest},
                    {"endOffset": {"p": {"0": 1}}, "latestOffset": None},
                    {"description": "rate"},
                ],
                stateOperators=[{"numRowsTotal": 4}, {"numRowsTotal": 6}],
            )
        ],
    )
    assert record == QueryRecord(
        "q",
        batch_id=3,
        is_planned=True,
        rows=RowCounts(read=15),
        batch_rows=RowCounts(read=15),
        sources={"": SourceRows(15)},
        rows_per_s=10.0,
        batch_ms=103,
        watermark="2026-01-01T00:00:00.000Z",
        lag={"orders": 9, "p": None, "source 3": None},
        state_row_count=10,
    )
    assert record.lag_total == 9


def test_an_idle_report_changes_only_what_it_tells() -> None:
    rows = RowCounts(read=15)
    before = QueryRecord("q", batch_id=3, rows=rows, batch_ms=200, watermark="2026-01-01")
    # Spark gives it the number of the batch that will come next.
    idle = report(4, 0, processedRowsPerSecond=None, eventTime={"watermark": "1970-01-01T00:00:00"})
    del idle["durationMs"]["addBatch"]
    after = advanced(before, [idle])
    assert (after.batch_id, after.rows, after.batch_ms) == (3, rows, 200)
    assert (after.rows_per_s, after.watermark) == (0.0, "2026-01-01")
    assert advanced(after, [report(4, 5)]).rows.read == 20


def observed(read: int, rejected: int) -> dict[str, Any]:
    # As Spark's JSON gives it; in Python it is a Row, which has the same names.
    return {"headwater source orders": {"read": read, "rejected": rejected}, "other": {}}


def test_what_was_observed_goes_before_what_scans_count() -> None:
    # A query that joins a source with itself scans it twice.
    twice = report(0, 20, observedMetrics=observed(10, 3), sink={"numOutputRows": 7})
    record = advanced(QueryRecord("q"), [twice, report(1, 4, observedMetrics=observed(2, 0))])
    assert record.rows == RowCounts(read=12, written=7, rejected=3)
    assert record.batch_rows == RowCounts(read=2)
    assert record.sources == {"orders": SourceRows(12, 3)}


def test_rows_that_spark_does_not_count_come_from_who_wrote_them() -> None:
    written = {("query-id", 0): 5, ("query-id", 1): 6}
    unknown = {"numOutputRows": -1}
    reports = [report(number, 9, id="query-id", sink=unknown) for number in range(2)]
    record = advanced(QueryRecord("q"), reports, lambda query, batch: written[query, batch])
    assert record.rows.written == 11


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(VALUES, VALUES)
def test_offsets_of_any_form_are_no_failure(end: Any, latest: Any) -> None:
    sources = [{"endOffset": end, "latestOffset": latest}]
    record = advanced(QueryRecord("q"), [report(0, sources=sources)])
    assert len(record.lag) == 1 and record.batch_id == 0
