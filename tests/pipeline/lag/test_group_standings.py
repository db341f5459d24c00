"""Of several queries that are reported as one group, the slowest counts."""

from __future__ import annotations

from headwater.base.ids import TopicPartition
from headwater.pipeline.lag.finished_batch import GroupKey
from headwater.pipeline.lag.group_standings import GroupStandings

KEY, OTHER = GroupKey("one:9092", "billing"), GroupKey("one:9092", "audit")
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_group_stands_where_its_slowest_query_does() -> None:
    standings = GroupStandings()
    assert standings.report("fast", {KEY: {P0: 9, P1: 4}}) == {KEY: {P0: 9, P1: 4}}
    assert standings.report("slow", {KEY: {P0: 2}}) == {KEY: {P0: 2, P1: 4}}
    assert standings.report("fast", {KEY: {P0: 12, P1: 7}}) == {KEY: {P0: 2, P1: 7}}
    assert standings.report("slow", {KEY: {P0: 12}}) == {KEY: {P0: 12, P1: 7}}


def test_groups_are_apart() -> None:
    standings = GroupStandings()
    standings.report("slow", {KEY: {P0: 1}})
    assert standings.report("fast", {OTHER: {P0: 9}}) == {OTHER: {P0: 9}}


def test_a_query_that_has_ended_holds_nobody_back() -> None:
    standings = GroupStandings()
    standings.report("slow", {KEY: {P0: 1}, OTHER: {P0: 1}})
    standings.report("fast", {KEY: {P0: 9}})
    assert standings.forget("slow") == {KEY: {P0: 9}}
    assert standings.forget("slow") == {}
    assert standings.forget("fast") == {}
