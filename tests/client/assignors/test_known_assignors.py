"""Which assignors a configuration can name, and assignors of the user's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingError
from headwater.client.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
    PlainAssignor,
    RebalanceProtocol,
    Subscriptions,
)
from headwater.client.assignors.known_assignors import common_protocol, make_assignors


class BroadcastAssignor(PlainAssignor):
    """The notes' trick: every member reads all partitions of the topics that it wants."""

    name = "broadcast"

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        return {
            member_id: MemberAssignment(
                tuple(
                    TopicPartition(topic, number)
                    for topic in wanted.topics
                    for number in range(partition_counts.get(topic, 0))
                )
            )
            for member_id, wanted in subscriptions.items()
        }


def test_broadcast_gives_everybody_everything() -> None:
    dealt = BroadcastAssignor().assign(
        {"a": 2, "b": 1},
        {"x": MemberSubscription(("a", "b")), "y": MemberSubscription(("a", "gone"))},
    )
    a0, a1, b0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
    assert dealt == {"x": MemberAssignment((a0, a1, b0)), "y": MemberAssignment((a0, a1))}


def test_assignors_are_named_as_in_java_and_short() -> None:
    names = ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert [each.name for each in make_assignors(names)] == names
    package = "org.apache.kafka.clients.consumer."
    classes = ["RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"]
    assert [each.name for each in make_assignors([package + each for each in classes])] == names
    assert [each.name for each in make_assignors("sticky, range")] == ["sticky", "range"]


def test_assignors_may_be_the_users_own() -> None:
    own = BroadcastAssignor()
    assert make_assignors([own, "range"])[0] is own
    assert make_assignors([BroadcastAssignor])[0].name == "broadcast"


def test_several_assignors_do_what_all_of_them_can() -> None:
    both = make_assignors(["cooperative-sticky", "range"])
    assert common_protocol(both) is RebalanceProtocol.EAGER
    assert common_protocol(make_assignors(["cooperative-sticky"])) is RebalanceProtocol.COOPERATIVE


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        (["rang"], "There is no assignor 'rang'"),
        ([], "names no assignor"),
        (["range", "range"], "'range' twice"),
        ([object()], "object is not an assignor"),
    ],
)
def test_what_is_no_assignor_is_refused(entries: list[object], part: str) -> None:
    with pytest.raises(SettingError, match=part):
        make_assignors(entries)
