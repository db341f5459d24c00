import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.histories.group_history import GroupHistory
from headwater.sim.histories.history import PropertyViolated

ZERO, ONE = TopicPartition("source", 0), TopicPartition("source", 1)


def test_a_partition_has_one_owner_in_a_generation() -> None:
    groups = GroupHistory()
    groups.own("group", 1, "a", [ZERO, ONE])
    groups.own("group", 1, "a", [ZERO])
    groups.own("group", 2, "b", [ZERO])
    groups.own("other", 1, "b", [ZERO])
    assert groups.generation_count == 3
    with pytest.raises(PropertyViolated, match="one owner"):
        groups.own("group", 1, "b", [ONE])


def test_committed_offsets_never_go_back() -> None:
    groups = GroupHistory()
    groups.commit("group", {ZERO: 5})
    known = groups.known("group")
    groups.commit("group", {ZERO: 9})
    # Asked before the second commit, so the answer may be as old.
    groups.observe("group", known, {ZERO: 5, ONE: 1})
    assert groups.known("group") == {ZERO: 9, ONE: 1}
    with pytest.raises(PropertyViolated, match="never go back"):
        groups.observe("group", groups.known("group"), {ZERO: 8})


def test_a_group_gets_every_record() -> None:
    groups = GroupHistory()
    for offset in (0, 1, 3):
        groups.deliver("group", ZERO, offset)
    groups.check_all_delivered("group", {ZERO: 2, ONE: 0})
    with pytest.raises(PropertyViolated, match="nobody in group got offset 2"):
        groups.check_all_delivered("group", {ZERO: 4})
