"""What a stage counts, and how its rows are added up."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.delivery.audit.stage_counts import StageCounts
from headwater.delivery.audit.stage_rows import (
    decode_stage_row,
    encode_stage_row,
    sum_stages,
)

NAMES: dict[str, Any] = {"tier": "stage", "stage": "db", "host": "here", "process": "p"}
SEEN = st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 40), st.integers(1, 9))


@given(st.lists(SEEN), st.integers(1, 5), st.integers(1, 4))
def test_each_record_is_in_one_row_however_often_rows_are_sent(
    seen: list[tuple[str, int, int, int]], publish_every: int, counters_max: int
) -> None:
    counts = StageCounts(10, counters_max)
    rows = []
    for sequence, (topic, partition, time_ms, count) in enumerate(seen):
        counts.add(topic, partition, time_ms, count, count * 2, 50)
        if sequence % publish_every == 0:
            rows += counts.take({**NAMES, "sequence": sequence, "time": 50})
    rows += counts.take({**NAMES, "sequence": len(seen), "time": 50})
    model: Counter[str] = Counter()
    for topic, _, _, count in seen:
        model[topic] += count
    sent = [decode_stage_row(encode_stage_row(row).value) for row in [*rows, *rows]]
    for topic in "ab":
        sums = sum_stages([row for row in sent if row is not None], topic, 0, 1_000)
        told = sum(each.count for each in sums)
        assert told <= model[topic]
        if counters_max == 4 and publish_every == 1:
            assert told == model[topic]
            assert [each.bytes for each in sums] == [2 * each.count for each in sums]


def test_what_there_is_no_counter_for_is_told() -> None:
    counts = StageCounts(10, counters_max=1)
    for time_ms in (5, 7, 15, 25):
        counts.add("a", 0, time_ms, 1, 0, 30)
    rows = counts.take({**NAMES, "sequence": 1, "time": 30})
    assert [(row["count"], row["uncounted_count"]) for row in rows] == [(2, 2)]
    assert rows[0]["latency_ms_max"] == 25
    assert len(counts) == 0


def test_what_is_no_row_is_none() -> None:
    for value in (b"", b"{}", b"[1]", b'{"version": 1, "tier": "stage"}'):
        assert decode_stage_row(value) is None


def test_of_what_is_published_again_the_last_counts() -> None:
    def published(time_ms: int, sequence: int, counted: dict[int, int]) -> list[dict[str, Any]]:
        counts = StageCounts(10)
        for at_ms, count in counted.items():
            counts.add("a", 0, at_ms, count, 0, at_ms)
        return counts.take({**NAMES, "sequence": sequence, "time": time_ms})

    rows = [*published(1, 1, {5: 3}), *published(1, 2, {5: 1}), *published(2, 1, {15: 2, 25: 2})]
    for told in (rows, rows[::-1]):
        [found] = sum_stages(told, "a", 0, 100)
        assert found.count_by_bucket == {0: 1, 10: 2, 20: 2}
    # Also if the last is of times that nobody asks for.
    [found] = sum_stages(rows, "a", 0, 10)
    assert found.count == 1


def test_rows_of_several_are_added_up() -> None:
    parts = StageCounts(10, counters_max=1), StageCounts(10)
    parts[0].add("a", 0, 5, 3, 30, 9)
    parts[0].add("a", 1, 5, 7, 0, 9)
    parts[1].add("a", 0, 2, 1, 10, 100, 2)
    whole = StageCounts(10)
    for part in parts:
        for row in part.take({}):
            whole.add_row(row)
    [row] = whole.take({})
    assert (row["count"], row["bytes"], row["given_up_count"]) == (4, 40, 2)
    assert (row["time_min"], row["time_max"], row["latency_ms_max"]) == (2, 5, 98)
    assert row["uncounted_count"] == 7
