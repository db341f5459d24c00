"""Names and decisions: what is written can be read, and names do not collide."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.pipeline.sink.exactly_once.decision import (
    decode_decision,
    encode_decision,
    make_decision,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName, TaskName

queries = st.builds(QueryName, st.text(min_size=1))
runs = st.uuids().map(str)
attempts = st.tuples(*[st.integers(0, 5000)] * 3).map(lambda parts: ".".join(map(str, parts)))
states = st.builds(PreparedTransactionState, st.integers(0, 2**62), st.integers(0, 32766))


@given(queries, runs, st.dictionaries(attempts, states), st.integers(-1, 2**40))
def test_a_decision_is_read_as_it_was_made(
    query: QueryName, run: str, tasks: dict[str, PreparedTransactionState], batch: int
) -> None:
    entries = [Prepared(TaskName(query, run, attempt), state) for attempt, state in tasks.items()]
    decision = make_decision(batch, entries)
    assert decode_decision(query, encode_decision(decision)) == decision


@given(queries, runs, attempts)
def test_a_name_is_read_as_it_was_made(query: QueryName, run: str, attempt: str) -> None:
    name = TaskName(query, run, attempt)
    assert TaskName.parse(name.transactional_id) == name
    assert re.fullmatch(query.task_pattern, name.transactional_id, re.DOTALL)
    other = QueryName(query.text + "x")
    assert not re.fullmatch(other.task_pattern, name.transactional_id, re.DOTALL)
    assert not re.fullmatch(query.task_pattern, query.transactional_id)


@pytest.mark.parametrize(
    "text", ["", "orders", "headwater-spark.q", "headwater-spark.q.run.1.2.3", "x.q.1.2.3"]
)
def test_what_is_no_tasks_name(text: str) -> None:
    assert TaskName.parse(text) is None
