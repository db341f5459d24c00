"""Questions about groups and their offsets: see `questions`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headwater.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.list_groups import ListGroupsRequest
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headwater.wire.schema import Message
from tests.support.other_clients.groups.raw import join_alone, join_request
from tests.support.other_clients.questions.questions import STRANGER, Conversation

#: Since when a commit and a fetch of offsets name a topic by its id, and several groups at once.
BY_ID = 10
SEVERAL_GROUPS = 8
SEVERAL_LEAVE = 3

_MADE_UP = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


#: Fields that hold an epoch of a group or a member.
_EPOCHS = ("member_epoch", "group_epoch", "assignment_epoch")


class GroupConversation(Conversation):
    """Keeps answers without the ids that a coordinator makes up for members.

    Epochs are kept as if a group began with 1. Since Kafka 4.3 that is what a group has before its
    first member, who gets 2.
    """

    epoch_shift = 0

    def ask(
        self, label: str, make: Callable[[int], Message], versions: range | None = None
    ) -> None:
        super().ask(label, make, versions)
        for key in [key for key in self.answers if key.startswith(f"{label} v")]:
            self.answers[key] = self._shifted(_without_ids(self.answers[key]))

    def ask_this(self, label: str, message: Message, versions: range | None = None) -> None:
        """Ask the same in every version."""
        self.ask(label, lambda _: message, versions)

    def _shifted(self, value: object) -> object:
        if isinstance(value, dict):
            return {
                key: each - self.epoch_shift if key in _EPOCHS and each > 0 else self._shifted(each)
                for key, each in value.items()
            }
        return [self._shifted(each) for each in value] if isinstance(value, list) else value


def _without_ids(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_ids(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_ids(each) for each in value]
    return _MADE_UP.sub("(id)", value) if isinstance(value, str) else value


def _commit(
    topic_id: object, group: str, generation: int, member_id: str, **partition: Any
) -> Callable[[int], OffsetCommitRequest]:
    name = partition.pop("topic", "committed")
    instance_id = partition.pop("instance_id", None)
    wanted = OffsetCommitRequestPartition(**{"committed_offset": 3, **partition})
    known: Any = topic_id if name != "stranger" else STRANGER
    topic = OffsetCommitRequestTopic(name=name, topic_id=known, partitions=[wanted])
    return lambda _: OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[topic],
    )


def _fetch_offsets(
    group: str, topics: dict[str, list[int]] | None, topic_id: Any, *, stable: bool = False
) -> Callable[[int], OffsetFetchRequest]:
    def make(version: int) -> OffsetFetchRequest:
        if version < SEVERAL_GROUPS:
            named = topics if topics is not None or version >= 2 else {}
            return OffsetFetchRequest(
                group_id=group,
                topics=None
                if named is None
                else [
                    OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in named.items()
                ],
                require_stable=stable,
            )
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=name,
                    topic_id=topic_id if name != "stranger" else STRANGER,
                    partition_indexes=numbers,
                )
                for name, numbers in topics.items()
            ],
        )
        return OffsetFetchRequest(groups=[wanted], require_stable=stable)

    return make


def committed_offsets(conversation: GroupConversation) -> None:
    """Of a group without members, as tools and plain consumers commit and read them."""
    talk = conversation
    talk.create("committed", 2)
    topic_id = talk.connection.topic_id("committed")

    def ask_all(when: str) -> None:
        for name, topics in (
            ("one", {"committed": [0]}),
            ("both", {"committed": [0, 1]}),
            ("no such partition", {"committed": [7]}),
            ("no such topic", {"stranger": [0]}),
            ("all", None),
            ("none", {}),
        ):
            make = _fetch_offsets("simple", topics, topic_id)
            talk.ask(f"{when}: fetch {name}", make)
        talk.ask(f"{when}: stable", _fetch_offsets("simple", None, topic_id, stable=True))

    ask_all("before")
    variants: dict[str, dict[str, Any]] = {
        "plain": {},
        "metadata": {"committed_metadata": "note"},
        "null metadata": {"committed_metadata": None},
        "much metadata": {"committed_metadata": "x" * 5_000},
        "epoch": {"committed_leader_epoch": 0},
        "negative": {"committed_offset": -1},
        "large": {"committed_offset": 2**60},
        "no such partition": {"partition_index": 7},
        "no such topic": {"topic": "stranger"},
    }
    for label, more in variants.items():
        talk.ask(f"commit {label}", _commit(topic_id, "simple", -1, "", **more))
        talk.ask(f"fetch after {label}", _fetch_offsets("simple", {"committed": [0]}, topic_id))
    for label, generation, member in (
        ("generation alone", 0, ""),
        ("member alone", -1, "member"),
        ("both", 1, "member"),
    ):
        talk.ask(f"commit with {label}", _commit(topic_id, "simple", generation, member))
        talk.ask(f"commit new with {label}", _commit(topic_id, f"no-{label}", generation, member))
    talk.ask("commit without a group", _commit(topic_id, "", -1, ""))
    ask_all("after")
    talk.ask_this("describe", DescribeGroupsRequest(groups=["simple"]))

    def delete(label: str, group: str, topic: str, partition: int) -> None:
        wanted = OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        request = OffsetDeleteRequest(group_id=group, topics=[wanted])
        talk.ask_this(f"delete offset: {label}", request)

    delete("none there", "simple", "committed", 1)
    delete("no such partition", "simple", "committed", 7)
    delete("no such topic", "simple", "stranger", 0)
    delete("no such group", "nothing", "committed", 0)
    delete("it", "simple", "committed", 0)
    ask_all("at the end")
    for label, group in (("it", "simple"), ("nothing", "nothing"), ("unnamed", "")):
        talk.ask_this(
            f"delete group: {label}",
            DeleteGroupsRequest(groups_names=[group]),
        )


def missing_groups(conversation: GroupConversation) -> None:
    """Whatever one can ask of a group that is not there."""
    talk = conversation
    for kind in (0, 1, 2, 9):
        for key in ("key", ""):
            talk.ask_this(
                f"coordinator of kind {kind} for {key!r}",
                FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]),
                range(1, 6),
            )
    for group in ("missing", ""):
        talk.ask_this(
            f"heartbeat {group!r}",
            HeartbeatRequest(group_id=group, generation_id=1, member_id="member"),
        )
        talk.ask_this(
            f"sync {group!r}",
            SyncGroupRequest(
                group_id=group,
                generation_id=1,
                member_id="member",
                protocol_type="consumer",
                protocol_name="range",
            ),
        )
        talk.ask_this(
            f"leave {group!r}",
            LeaveGroupRequest(
                group_id=group, member_id="member", members=[MemberIdentity(member_id="member")]
            ),
        )
        talk.ask_this(
            f"join {group!r} as a known member",
            join_request(group, "member"),
        )
        talk.ask_this(
            f"describe {group!r}",
            DescribeGroupsRequest(groups=[group]),
        )
        talk.ask_this(
            f"describe {group!r} as of the newer kind",
            ConsumerGroupDescribeRequest(group_ids=[group]),
        )
        for epoch in (-2, -1, 1):
            talk.ask_this(
                f"newer heartbeat {group!r} {epoch}",
                ConsumerGroupHeartbeatRequest(
                    group_id=group, member_id="member", member_epoch=epoch
                ),
            )
    for label, request in {
        "short session": join_request("refused", session_timeout_ms=10),
        "long session": join_request("refused", session_timeout_ms=2**31 - 1),
        "no protocols": join_request("refused", protocols=()),
        "no type": join_request("refused", protocol_type=""),
    }.items():
        talk.ask_this(f"join with {label}", request)


def a_stable_group(conversation: GroupConversation) -> None:
    """What members, former ones and strangers are told by a group that has two."""
    talk = conversation
    talk.create("of-members", 2)
    topic_id = talk.connection.topic_id("of-members")
    joined = join_alone(talk.connection, "stable", instance_id="static")
    generation, member = joined.generation_id, joined.member_id
    for label, who in {
        "it": (generation, member, None),
        "it by name": (generation, member, "static"),
        "another name": (generation, member, "other"),
        "later": (generation + 1, member, None),
        "earlier": (generation - 1, member, None),
        "stranger": (generation, "stranger", None),
        "stranger by name": (generation, "stranger", "static"),
        "nobody": (-1, "", None),
    }.items():
        number, name, instance = who
        talk.ask_this(
            f"heartbeat of {label}",
            HeartbeatRequest(
                group_id="stable", generation_id=who[0], member_id=who[1], group_instance_id=who[2]
            ),
        )
        talk.ask(
            f"commit of {label}",
            _commit(topic_id, "stable", number, name, topic="of-members", instance_id=instance),
        )
        talk.ask_this(
            f"sync of {label}",
            SyncGroupRequest(
                group_id="stable",
                generation_id=who[0],
                member_id=who[1],
                group_instance_id=who[2],
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"other")],
            ),
        )
    for label, kind, protocol in (
        ("another type", "connect", "range"),
        ("another protocol", "consumer", "roundrobin"),
    ):
        talk.ask_this(
            f"sync with {label}",
            SyncGroupRequest(
                group_id="stable",
                generation_id=generation,
                member_id=member,
                protocol_type=kind,
                protocol_name=protocol,
            ),
        )
    for label, request in {
        "another protocol": join_request("stable", protocols=("roundrobin",)),
        "another type": join_request("stable", protocol_type="connect"),
        "a stranger": join_request("stable", "stranger"),
        "a stranger by name": join_request("stable", "stranger", instance_id="static"),
        "an unknown name": join_request("stable", "stranger", instance_id="other"),
    }.items():
        talk.ask_this(f"join with {label}", request)
    talk.ask_this(
        "leave of a stranger",
        LeaveGroupRequest(
            group_id="stable",
            member_id="stranger",
            members=[
                MemberIdentity(member_id="stranger"),
                MemberIdentity(member_id="stranger", group_instance_id="static"),
                MemberIdentity(member_id="", group_instance_id="other"),
            ],
        ),
    )
    talk.ask_this("describe", DescribeGroupsRequest(groups=["stable", "missing"]))
    talk.ask_this(
        "describe as of the newer kind",
        ConsumerGroupDescribeRequest(group_ids=["stable"]),
    )
    talk.ask_this("delete", DeleteGroupsRequest(groups_names=["stable", "missing"]))
    for states, types in (
        (["Stable"], []),
        (["stable"], ["classic"]),
        (["Empty"], []),
        ([], ["consumer"]),
        (["Nonsense"], []),
        ([], ["nonsense"]),
    ):
        talk.ask_this(
            f"list {states} {types}",
            ListGroupsRequest(states_filter=states, types_filter=types),
        )
    talk.ask("offsets", _fetch_offsets("stable", None, topic_id))


def a_group_of_the_newer_kind(conversation: GroupConversation) -> None:
    """Members whose partitions the broker assigns, and what is refused of them."""
    talk = conversation
    talk.create("assigned", 3)
    topic_id = talk.connection.topic_id("assigned")
    joining: dict[str, Any] = {
        "group_id": "newer",
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["assigned"],
        "topic_partitions": [],
    }

    def beat(label: str, **fields: Any) -> None:
        merged = {"group_id": "newer", **fields}
        if merged.get("member_epoch", 0) > 0:
            merged["member_epoch"] += talk.epoch_shift
        talk.ask_this(label, ConsumerGroupHeartbeatRequest(**merged), range(1, 2))

    first, second = "first-member-id", "second-member-id"
    joined = talk.connection.ask(ConsumerGroupHeartbeatRequest(member_id=first, **joining), 1)
    talk.epoch_shift = joined.member_epoch - 1
    beat("first joins", member_id=first, **joining)
    beat("first joins again", member_id=first, **joining)
    beat("first tells", member_id=first, member_epoch=1, topic_partitions=[])
    owned = [TopicPartitions(topic_id=topic_id, partitions=[0, 1, 2])]
    beat("first owns", member_id=first, member_epoch=1, topic_partitions=owned)
    beat("first goes on", member_id=first, member_epoch=1)
    beat("first ahead", member_id=first, member_epoch=5)
    beat("stranger", member_id="stranger", member_epoch=1)
    beat("stranger leaves", member_id="stranger", member_epoch=-1)
    refused: dict[str, dict[str, Any]] = {
        "without an id": {"member_id": ""},
        "without a timeout": {"rebalance_timeout_ms": -1},
        "without topics": {"subscribed_topic_names": None},
        "with nothing said of partitions": {"topic_partitions": None},
        "with partitions": {"topic_partitions": owned},
        "with an empty name": {"instance_id": ""},
        "with an empty rack": {"rack_id": ""},
        "with another assignor": {"server_assignor": "other"},
        "with a bad pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": "["},
        "with epoch -2": {"member_epoch": -2},
        "with epoch -3": {"member_epoch": -3},
    }
    for label, wrong in refused.items():
        beat(f"joins {label}", **{"member_id": second, **joining, **wrong})
    talk.ask_this("describe", ConsumerGroupDescribeRequest(group_ids=["newer"]))
    talk.ask_this("describe as of the older kind", DescribeGroupsRequest(groups=["newer"]))
    beat("second joins", member_id=second, instance_id="static", **joining)
    beat("its name is taken", member_id="third-member-id", instance_id="static", **joining)
    beat("first is told", member_id=first, member_epoch=1)
    epoch = 1 + talk.epoch_shift
    for label, who in {
        "first": (epoch, first),
        "first ahead": (epoch + 1, first),
        "stranger": (epoch, "stranger"),
        "nobody": (-1, ""),
    }.items():
        talk.ask(
            f"commit of {label}",
            _commit(topic_id, "newer", who[0], who[1], topic="assigned"),
            range(8, 11),
        )
    talk.ask_this(
        "older heartbeat",
        HeartbeatRequest(group_id="newer", generation_id=1, member_id=first),
    )
    beat("second leaves for a while", member_id=second, instance_id="static", member_epoch=-2)
    beat("second leaves", member_id=second, instance_id="static", member_epoch=-1)
    beat("first leaves", member_id=first, member_epoch=-1)
    talk.ask_this("describe the rest", ConsumerGroupDescribeRequest(group_ids=["newer"]))
    talk.ask_this("list", ListGroupsRequest(types_filter=["consumer"]), range(5, 6))
    talk.ask_this("delete", DeleteGroupsRequest(groups_names=["newer"]))
