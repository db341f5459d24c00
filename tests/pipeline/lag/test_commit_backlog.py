"""The backlog commits the newest offsets of every group, none twice, and waits after failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.base.ids import TopicPartition
from headwater.pipeline.lag.commit_backlog import (
    RETRY_DELAY_MAX_S,
    RETRY_DELAY_MIN_S,
    CommitBacklog,
)
from headwater.pipeline.lag.finished_batch import GroupKey

KEY = GroupKey("one:9092", "billing")
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

keys = st.builds(GroupKey, st.sampled_from(("one:9092", "two:9092")), st.sampled_from(("a", "b")))
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            keys,
            st.dictionaries(st.sampled_from((P0, P1)), st.integers(0, 3), min_size=1),
        ),
        st.tuples(st.just("commit"), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from((0.5, 3.0, 100.0))),
    ),
    max_size=40,
)


@given(steps)
def test_in_the_end_each_group_has_its_newest_offsets_and_none_was_committed_twice(
    script: list[tuple[object, ...]],
) -> None:
    backlog = CommitBacklog()
    newest: dict[GroupKey, dict[TopicPartition, int]] = {}
    committed: dict[GroupKey, dict[TopicPartition, int]] = {}
    now_s = 0.0

    def commit(is_answered: bool) -> bool:
        due = backlog.next_due(now_s)
        if due is None:
            return False
        held = committed.setdefault(due.key, {})
        assert due.positions
        assert all(held.get(partition) != offset for partition, offset in due.positions.items())
        if is_answered:
            held.update(due.positions)
            backlog.settled(due)
        else:
            backlog.failed(due, now_s)
        return True

    for step in script:
        match step:
            case ("add", GroupKey() as key, dict() as positions):
                newest.setdefault(key, {}).update(positions)
                backlog.add(key, positions, "note")
            case ("commit", bool() as is_answered):
                commit(is_answered)
            case ("wait", float() as delay_s):
                now_s += delay_s
    now_s += RETRY_DELAY_MAX_S
    while commit(is_answered=True):
        pass
    assert backlog.is_empty
    assert backlog.wait_s(now_s) is None
    assert committed == newest


def test_what_is_added_during_a_commit_stays() -> None:
    backlog = CommitBacklog()
    backlog.add(KEY, {P0: 1, P1: 1}, "first")
    due = backlog.next_due(0.0)
    assert due is not None
    backlog.add(KEY, {P0: 2}, "second")
    backlog.settled(due)
    due = backlog.next_due(0.0)
    assert due is not None
    assert (due.positions, due.note) == ({P0: 2}, "second")


def test_a_failure_waits_twice_as_long_each_time_and_is_news_once() -> None:
    backlog = CommitBacklog()
    backlog.add(KEY, {P0: 1}, "note")
    now_s, waits, news = 0.0, [], []
    for _ in range(9):
        due = backlog.next_due(now_s)
        assert due is not None
        news.append(backlog.failed(due, now_s))
        assert backlog.next_due(now_s) is None
        wait_s = backlog.wait_s(now_s)
        assert wait_s is not None
        waits.append(wait_s)
        now_s += wait_s
    assert news == [True] + [False] * 8
    assert waits[:4] == [RETRY_DELAY_MIN_S * factor for factor in (1, 2, 4, 8)]
    assert waits[-1] == RETRY_DELAY_MAX_S

    due = backlog.next_due(now_s)
    assert due is not None
    backlog.settled(due)
    backlog.add(KEY, {P0: 2}, "note")
    due = backlog.next_due(now_s)
    assert due is not None
    assert backlog.failed(due, now_s), "after a success the next failure is news again"


def test_one_who_is_about_to_leave_need_not_wait() -> None:
    backlog = CommitBacklog()
    backlog.add(KEY, {P0: 1}, "note")
    due = backlog.next_due(0.0)
    assert due is not None
    backlog.failed(due, 0.0)
    assert backlog.next_due(0.0) is None
    backlog.hurry()
    assert backlog.next_due(0.0) == due


def test_what_was_refused_is_given_up_until_there_is_more_and_is_news_once() -> None:
    backlog = CommitBacklog()
    news = []
    for offset in (1, 2):
        backlog.add(KEY, {P0: offset}, "note")
        due = backlog.next_due(0.0)
        assert due is not None
        news.append(backlog.settled(due, "There is no topic 'orders'."))
        backlog.add(KEY, {P0: offset}, "note")
        assert backlog.is_empty
    assert news == [True, False]
