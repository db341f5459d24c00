"""Which rows cannot be written, and that nothing is looked at one by one where none is."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InvalidTopicError, KafkaError
from headwater.client.columns.encoding.row_size import RowSize
from headwater.pipeline.sink.row_faults import RowJudge, size_with
from headwater.pipeline.sink.topic_limits import TopicLimits

LIMITS: dict[str, TopicLimits | KafkaError] = {
    "orders": TopicLimits(3, 1000),
    "wide": TopicLimits(1, None),
    "gone": InvalidTopicError("There is no such topic."),
}
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def faults(batch: pyarrow.RecordBatch, topic: str | None = None, **client: str) -> dict[int, str]:
    judge = RowJudge(topic, 5000, size_with({"bootstrap.servers": "b:1", **client}))
    found = judge.faults(batch, LIMITS.__getitem__)
    assert [fault.row for fault in found] == sorted(fault.row for fault in found)
    for fault in found:
        assert fault.topic == (topic or batch.column("topic")[fault.row].as_py())
    return {fault.row: f"{type(fault.error).__name__}: {fault.error}" for fault in found}


def test_what_is_wrong_with_each_row() -> None:
    headers: list[Any] = [[{"key": "a", "value": b"1"}]] * 8
    headers[5] = [{"key": "a", "value": b"1"}, {"key": None, "value": b"2"}]
    headers[6] = [None]
    batch = pyarrow.record_batch(
        {
            "topic": pyarrow.array(
                ["orders", None, "gone", "orders", "wide", "orders", "wide", "orders"]
            ),
            "partition": pyarrow.array([2, 0, 0, 3, None, 0, None, -1], pyarrow.int32()),
            "value": pyarrow.array([b"v"] * 8),
            "headers": pyarrow.array(headers, HEADERS),
        }
    )
    found = faults(batch)
    assert found.keys() == {1, 2, 3, 5, 6, 7}
    assert found[1].startswith("SinkRowError: A row has null in the column 'topic'")
    assert found[2] == "InvalidTopicError: There is no such topic."
    assert found[3].startswith("UnknownTopicError: Topic 'orders' has no partition 3")
    assert found[5] == found[6] == "InvalidRecordError: A header's key may not be null."
    assert "no partition -1" in found[7]


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.string()])
def test_rows_that_are_too_large(kind: pyarrow.DataType) -> None:
    sizes = [10, 1200, 6000]
    batch = pyarrow.record_batch({"value": pyarrow.array(["x" * size for size in sizes], kind)})
    of_topic = faults(batch, "orders")
    assert of_topic.keys() == {1, 2}
    assert "larger than max.message.bytes of the topic 'orders', which is 1000." in of_topic[1]
    assert "larger than max.request.size, which is 5000." in of_topic[2]
    assert faults(batch, "wide").keys() == {2}
    # A topic bounds what is compressed, a producer what is not.
    assert faults(batch, "orders", **{"compression.type": "gzip"}).keys() == {2}


def test_headers_and_keys_count() -> None:
    batch = pyarrow.record_batch(
        {
            "key": pyarrow.array([b"k" * 900, None, b"k"]),
            "value": pyarrow.array([b"v" * 200, None, b"v"]),
            "headers": pyarrow.array(
                [None, [{"key": "h" * 500, "value": b"v" * 500}], []], HEADERS
            ),
        }
    )
    assert faults(batch, "orders").keys() == {0, 1}
    assert faults(batch.slice(1), "orders").keys() == {0}


@given(st.lists(st.tuples(st.integers(800, 1100), st.integers(0, 60))))
def test_the_bound_by_columns_misses_no_row(rows: list[tuple[int, int]]) -> None:
    batch = pyarrow.record_batch(
        {
            "value": pyarrow.array([b"v" * size for size, _ in rows], pyarrow.binary()),
            "headers": pyarrow.array(
                [[{"key": "h", "value": None}] * count for _, count in rows], HEADERS
            ),
        }
    )
    size_of = size_with({"bootstrap.servers": "b:1"})
    expected = {row for row in range(len(rows)) if size_of(batch.slice(row, 1)).batch_bytes > 1000}
    assert faults(batch, "orders").keys() == expected


def test_rows_that_are_all_well_are_not_looked_at_one_by_one() -> None:
    def size_of(row: pyarrow.RecordBatch) -> RowSize:
        raise AssertionError("a small row was encoded")

    count = 100_000
    batch = pyarrow.record_batch(
        {
            "topic": pyarrow.array(["orders", "wide"] * (count // 2)),
            "partition": pyarrow.array([0] * count, pyarrow.int32()),
            "value": pyarrow.array([b"v" * 100] * count),
            "headers": pyarrow.array([[{"key": "h", "value": b"1"}]] * count, HEADERS),
        }
    )
    assert RowJudge(None, 5000, size_of).faults(batch, LIMITS.__getitem__) == []
