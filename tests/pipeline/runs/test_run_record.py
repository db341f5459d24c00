"""A record is what was written, and a run without a lock has crashed unless it said otherwise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.runs.run_record import QueryRecord, RunRecord, RunState, seen_state

QUERIES = st.builds(
    QueryRecord,
    name=st.text(),
    is_active=st.booleans(),
    batch_id=st.none() | st.integers(0),
    row_count=st.integers(0),
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
