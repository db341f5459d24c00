"""Which offsets are committed after a batch, as which group and where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.pipeline.connector.offset_json import SourceOffsets
from headwater.pipeline.lag.finished_batch import (
    FinishedBatch,
    GroupKey,
    SourceReport,
    offsets_to_commit,
)

ID = "4b0e8a4c-0000-4000-8000-000000000000"

positions = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(("orders", "payments")), st.integers(0, 3)),
    st.integers(0, 1 << 40),
    min_size=1,
)
sources = st.lists(
    st.builds(
        SourceOffsets,
        positions,
        st.sampled_from(("one:9092", "two:9092")),
        st.sampled_from(("", "billing", "audit")),
    ),
    max_size=4,
)


def _batch(*reports: SourceReport, name: str | None = None) -> FinishedBatch:
    return FinishedBatch(ID, name, 7, reports)


def _ours(offsets: SourceOffsets) -> SourceReport:
    return SourceReport("HeadwaterDataSource", json.dumps(offsets.to_json()))


@given(sources)
def test_each_group_gets_the_least_of_what_its_sources_have_read(
    several: list[SourceOffsets],
) -> None:
    expected: dict[GroupKey, dict[TopicPartition, int]] = {}
    for offsets in several:
        key = GroupKey(offsets.bootstrap_servers, offsets.group or "spark-sums")
        for partition, offset in offsets.positions.items():
            before = expected.setdefault(key, {}).get(partition)
            expected[key][partition] = offset if before is None else min(before, offset)
    assert offsets_to_commit(_batch(*map(_ours, several), name="sums")) == expected


def test_a_query_without_a_name_goes_by_its_id() -> None:
    read = SourceOffsets({TopicPartition("orders", 0): 5}, "one:9092")
    assert [key.group for key in offsets_to_commit(_batch(_ours(read)))] == [f"spark-{ID}"]


def test_a_group_is_told_which_batch_of_which_query_it_was() -> None:
    assert _batch(name="sums").note == "Spark query sums, batch 7"
    assert _batch().note == f"Spark query {ID}, batch 7"


def test_the_connector_of_spark_is_reported_where_its_cluster_is_known() -> None:
    batch = _batch(SourceReport("KafkaV2[Subscribe[orders]]", '{"orders":{"0":3,"1":4}}'))
    assert offsets_to_commit(batch) == {}
    assert offsets_to_commit(batch, "one:9092") == {
        GroupKey("one:9092", f"spark-{ID}"): {
            TopicPartition("orders", 0): 3,
            TopicPartition("orders", 1): 4,
        }
    }


@pytest.mark.parametrize(
    "report",
    [
        SourceReport("RateStreamV2[rowsPerSecond=1]", "17"),
        SourceReport("FileStreamSource[file:/data]", '{"logOffset":3}'),
        SourceReport("KafkaV2[Subscribe[orders]]", "null"),
        SourceReport("HeadwaterDataSource", "None"),
        SourceReport("HeadwaterDataSource", ""),
        SourceReport("KafkaV2[Subscribe[orders]]", '{"orders":{"zero":3}}'),
        SourceReport("KafkaV2[Subscribe[orders]]", "{}"),
    ],
    ids=lambda report: f"{report.description[:12]}:{report.end_offset}",
)
def test_what_is_not_the_offsets_of_topics_is_passed_over(report: SourceReport) -> None:
    assert offsets_to_commit(_batch(report), "one:9092") == {}
