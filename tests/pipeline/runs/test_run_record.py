"""A record is what was written, and a run without a lock has crashed unless it said otherwise."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.runs.run_record import (
    QueryRecord,
    RowCounts,
    RunRecord,
    RunState,
    SourceRows,
    seen_state,
)

COUNTS = st.integers(0, 10**12)
ROWS = st.builds(RowCounts, read=COUNTS, written=COUNTS, rejected=COUNTS)
QUERIES = st.builds(
    QueryRecord,
    name=st.text(),
    is_active=st.booleans(),
    batch_id=st.none() | st.integers(0),
    is_planned=st.booleans(),
    rows=ROWS,
    batch_rows=ROWS,
    sources=st.dictionaries(st.text(), st.builds(SourceRows, read=COUNTS, rejected=COUNTS)),
    dead_letters_of=st.text(),
    rows_per_s=st.none() | st.floats(0, 1e9),
    batch_ms=st.none() | st.integers(0),
    watermark=st.none() | st.text(),
    lag=st.dictionaries(st.text(), st.none() | st.integers(0)),
    state_row_count=st.integers(0),
    error=st.text(),
)
RECORDS = st.builds(
    RunRecord,
    pipeline=st.text(),
    state=st.sampled_from(RunState),
    pid=st.integers(1),
    host=st.text(),
    started_ms=st.integers(0),
    updated_ms=st.integers(0),
    mode=st.text(),
    ended_ms=st.none() | st.integers(0),
    error=st.text(),
    queries=st.lists(QUERIES, max_size=3).map(tuple),
)


@given(RECORDS)
def test_what_is_written_is_read(record: RunRecord) -> None:
    assert RunRecord.from_json(record.to_json()) == record


@given(RECORDS)
def test_what_a_newer_version_adds_is_passed_over(record: RunRecord) -> None:
    found = json.loads(record.to_json())
    found["new"] = 1
    for query in found["queries"]:
        query["new"] = {}
    assert RunRecord.from_json(json.dumps(found)) == record


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "5", '{"queries": 5}', '{"queries": [], "state": "x"}']
)
def test_other_text_is_no_record(text: str) -> None:
    assert RunRecord.from_json(text) is None


@given(RECORDS)
def test_a_run_without_its_lock_is_over(record: RunRecord) -> None:
    assert seen_state(record, is_locked=True) is record.state
    seen = seen_state(record, is_locked=False)
    assert seen.is_over and seen is (record.state if record.state.is_over else RunState.CRASHED)


def run_of(*queries: QueryRecord) -> RunRecord:
    return RunRecord("pipe", RunState.FINISHED, 1, "here", 0, 0, queries=queries)


def sink(name: str, written: int, **sources: tuple[int, int]) -> QueryRecord:
    found = {source: SourceRows(*rows) for source, rows in sources.items()}
    return QueryRecord(name, rows=RowCounts(written=written), sources=found)


def test_what_two_sinks_read_counts_once_and_what_they_write_twice() -> None:
    table = sink("table", 7, orders=(10, 2))
    topic = sink("topic", 3, orders=(8, 1), payments=(5, 0))
    assert run_of(table, topic).rows == RowCounts(read=15, written=10, rejected=2)
    assert run_of().rows == RowCounts()


def test_dead_letters_are_rejected_and_not_written() -> None:
    letters = replace(sink("orders-dead-letters", 4, orders=(10, 4)), dead_letters_of="orders")
    table = sink("table", 5, orders=(9, 3))
    assert run_of(letters, table).rows == RowCounts(read=10, written=5, rejected=4)


def test_rows_of_no_source_that_is_known_are_written_and_not_rejected() -> None:
    report = QueryRecord("report", rows=RowCounts(written=1), sources={"": SourceRows()})
    assert run_of(report).rows == RowCounts(written=1)


def test_a_run_that_could_decode_nothing() -> None:
    letters = replace(sink("orders-dead-letters", 3, orders=(3, 3)), dead_letters_of="orders")
    assert run_of(letters, sink("table", 0, orders=(3, 3))).rejected_all
    assert not run_of(letters, sink("table", 1, orders=(3, 3))).rejected_all
    assert not run_of(sink("table", 0, orders=(3, 3), payments=(1, 0))).rejected_all
    assert not run_of(sink("table", 0, orders=(0, 0))).rejected_all


def test_totals_are_in_what_is_written_for_programs() -> None:
    record = run_of(sink("table", 7, orders=(10, 3)))
    assert json.loads(record.to_json())["rows"] == {"read": 10, "written": 7, "rejected": 3}
