"""Steps and links as records of `__trace`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.tracing.trace_step import (
    ACKNOWLEDGED,
    TraceLink,
    TraceStep,
    decode_link,
    decode_step,
    encode_link,
    encode_step,
    is_trace_id,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
STEP = TraceStep(
    TRACE,
    ACKNOWLEDGED,
    1_700_000_000_000,
    "orders-0@1234",
    topic="orders",
    host="h",
    client_id="c",
    attempt=2,
    details={"span_id": "b7ad6b7169203331", "created_ms": 1_699_999_999_990},
)
LINK = TraceLink("orders-0@1234", TRACE)

texts = st.one_of(st.none(), st.text())
steps = st.builds(
    TraceStep,
    st.just(TRACE),
    st.text(),
    st.integers(0, 2**63 - 1),
    st.sampled_from([None, "orders-0@1234"]),
    topic=texts,
    host=texts,
    group=texts,
    error=texts,
    attempt=st.one_of(st.none(), st.integers(1, 100)),
    details=st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans())),
)


def test_a_step_is_json_with_stable_names() -> None:
    key, value = encode_step(STEP)
    assert key == TRACE.encode()
    assert json.loads(value) == {
        "version": 1,
        "kind": "step",
        "trace_id": TRACE,
        "step": "acknowledged",
        "time_ms": 1_700_000_000_000,
        "message_id": "orders-0@1234",
        "topic": "orders",
        "host": "h",
        "client_id": "c",
        "attempt": 2,
        "details": {"span_id": "b7ad6b7169203331", "created_ms": 1_699_999_999_990},
    }


@given(steps)
def test_steps_come_back_as_they_were(step: TraceStep) -> None:
    assert decode_step(encode_step(step).value) == step


def test_a_link_is_found_by_its_message() -> None:
    key, value = encode_link(LINK)
    assert key == b"orders-0@1234"
    assert decode_link(value) == LINK
    assert decode_step(value) is None
    assert decode_link(encode_step(STEP).value) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"kind": "other"},
        {"trace_id": "0" * 32},
        {"trace_id": 1},
        {"step": None},
        {"time_ms": "now"},
        {"time_ms": True},
        {"time_ms": -1},
        {"message_id": "orders"},
        {"topic": 1},
        {"attempt": 0},
        {"details": []},
    ],
)
def test_what_is_not_as_it_should_be_is_none(change: dict[str, Any]) -> None:
    row = {**json.loads(encode_step(STEP).value), **change}
    assert decode_step(json.dumps(row).encode()) is None


def test_what_a_later_version_adds_is_left_out() -> None:
    row = {**json.loads(encode_step(STEP).value), "more": 1}
    row["details"]["list"] = [1]
    assert decode_step(json.dumps(row).encode()) == STEP


@given(st.one_of(st.none(), st.binary()))
def test_garbage_is_none(value: bytes | None) -> None:
    assert decode_step(value) is None
    assert decode_link(value) is None


def test_deep_json_is_none() -> None:
    assert decode_step(b"[" * 100_000) is None


def test_trace_ids() -> None:
    assert is_trace_id(TRACE)
    assert not any(map(is_trace_id, ("", TRACE[1:], TRACE.upper(), "0" * 32, None, 5)))
