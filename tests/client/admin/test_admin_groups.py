"""Admin operations on groups and their offsets, against brokers that answer as they are told."""

import struct

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import (
    AdminOperations,
    CommittedOffset,
    GroupDescription,
    GroupListing,
    Outcomes,
    require_all,
)
from headwater.client.errors import UnknownGroupError
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import encode
from headwater.wire.messages import consumer_group_describe as consumer_messages
from headwater.wire.messages import describe_groups as classic_messages
from headwater.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from headwater.wire.messages.consumer_protocol_assignment import (
    TopicPartition as AssignedTopic,
)
from headwater.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headwater.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from headwater.wire.messages.leave_group import LeaveGroupResponse, MemberResponse
from headwater.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from headwater.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headwater.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Call, FakeBrokers
from tests.support.fakes.peers.coordinators import connection_to, place_coordinators

ORDERS = [TopicPartition("orders", number) for number in range(3)]
ASSIGNED = [AssignedTopic(topic="orders", partitions=[2, 0])]


def with_version(body: bytes, version: int = 1) -> bytes:
    return struct.pack(">h", version) + body


@run_async
async def test_the_groups_of_all_brokers_are_listed() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        answers = [
            ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            ListGroupsResponse(
                groups=[
                    ListedGroup(
                        group_id="b",
                        protocol_type="consumer",
                        group_state="Stable",
                        group_type="consumer",
                    ),
                    ListedGroup(group_id="c", group_state="Empty", group_type="classic"),
                ]
            ),
        ]

        def list_groups(call: Call) -> ListGroupsResponse:
            if call.broker_id == 0:
                return ListGroupsResponse(groups=[ListedGroup(group_id="a", group_state="Stable")])
            return answers.pop(0)

        cluster.script(ApiKey.LIST_GROUPS, list_groups)
        async with connection_to(cluster) as connection:
            groups = await AdminOperations(connection).list_groups(
                states=["Stable"], kinds=["consumer"]
            )
        assert groups == [
            GroupListing("a", "", "Stable", ""),
            GroupListing("b", "consumer", "Stable", "consumer"),
        ]
        [request, *_] = cluster.requests(ApiKey.LIST_GROUPS)
        assert (request.states_filter, request.types_filter) == (["Stable"], ["consumer"])


def consumer_groups(call: Call) -> consumer_messages.ConsumerGroupDescribeResponse:
    """`new` is of the consumer protocol, and nothing else."""
    member = consumer_messages.Member(
        member_id="m",
        client_id="c",
        client_host="/h",
        member_epoch=5,
        subscribed_topic_names=["orders"],
        assignment=consumer_messages.Assignment(
            topic_partitions=[
                consumer_messages.TopicPartitions(topic_name="orders", partitions=[1])
            ]
        ),
        member_type=0,
    )
    return consumer_messages.ConsumerGroupDescribeResponse(
        groups=[
            consumer_messages.DescribedGroup(
                group_id=group_id,
                group_state="Stable",
                group_epoch=7,
                assignment_epoch=6,
                assignor_name="uniform",
                members=[member],
            )
            if group_id == "new"
            else consumer_messages.DescribedGroup(group_id=group_id, error_code=69)
            for group_id in call.request.group_ids
        ]
    )


def classic_groups(call: Call) -> classic_messages.DescribeGroupsResponse:
    groups = {
        "old": classic_messages.DescribedGroup(
            group_id="old",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                classic_messages.DescribedGroupMember(
                    member_id="m",
                    group_instance_id="i",
                    client_id="c",
                    client_host="/h",
                    member_metadata=with_version(
                        encode(ConsumerProtocolSubscription(topics=["orders"]), 1)
                    ),
                    # A version from the future begins like the newest that is known.
                    member_assignment=with_version(
                        encode(ConsumerProtocolAssignment(assigned_partitions=ASSIGNED), 3), 9
                    ),
                ),
                classic_messages.DescribedGroupMember(
                    member_id="odd", member_metadata=b"\xff\xff?", member_assignment=b"\0\0\x7f"
                ),
            ],
        ),
        "connect": classic_messages.DescribedGroup(
            group_id="connect",
            group_state="Stable",
            protocol_type="connect",
            members=[
                classic_messages.DescribedGroupMember(
                    member_id="w", member_assignment=with_version(b"\0\0\0\1anything")
                )
            ],
        ),
        "dead": classic_messages.DescribedGroup(group_id="dead", group_state="Dead"),
        "absent": classic_messages.DescribedGroup(
            group_id="absent", error_code=69, error_message="Group absent not found."
        ),
        "secret": classic_messages.DescribedGroup(group_id="secret", error_code=30),
    }
    return classic_messages.DescribeGroupsResponse(
        groups=[groups[group_id] for group_id in call.request.groups]
    )


async def describe(cluster: FakeBrokers, *group_ids: str) -> Outcomes[str, GroupDescription]:
    place_coordinators(cluster, dict.fromkeys(group_ids, 0))
    cluster.script(ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_groups)
    cluster.script(ApiKey.DESCRIBE_GROUPS, classic_groups)
    async with connection_to(cluster) as connection:
        return await AdminOperations(connection).describe_groups(group_ids)


@run_async
async def test_groups_of_both_protocols_are_described() -> None:
    async with FakeBrokers() as cluster:
        described = await describe(cluster, "new", "old", "connect", "dead", "absent", "secret")
        new, old, connect = (described[group_id] for group_id in ("new", "old", "connect"))
        assert not isinstance(new, KafkaError)
        assert (new.kind, new.state, new.assignor) == ("consumer", "Stable", "uniform")
        assert (new.group_epoch, new.assignment_epoch) == (7, 6)
        assert new.coordinator.broker_id == 0
        [member] = new.members
        assert (member.member_epoch, member.is_upgraded) == (5, False)
        assert (member.assignment, member.target_assignment) == ((ORDERS[1],), ())
        assert not isinstance(old, KafkaError)
        assert (old.kind, old.assignor, old.group_epoch) == ("classic", "range", None)
        [member, odd] = old.members
        assert member.subscribed_topics == ("orders",)
        assert member.assignment == (ORDERS[0], ORDERS[2])
        assert (member.group_instance_id, member.target_assignment) == ("i", None)
        assert (odd.subscribed_topics, odd.assignment) == ((), ())
        assert not isinstance(connect, KafkaError)
        assert connect.members[0].assignment == ()
        for group_id in ("dead", "absent"):
            assert isinstance(described[group_id], UnknownGroupError)
            assert str(described[group_id]) == f"There is no group {group_id!r}."
        assert str(described["secret"]) == "Group 'secret': Access to the group is denied."
        [request] = cluster.requests(ApiKey.DESCRIBE_GROUPS)
        assert "new" not in request.groups


@run_async
async def test_a_cluster_without_the_consumer_protocol_is_not_asked_about_it() -> None:
    async with FakeBrokers() as cluster:
        del cluster.versions[ApiKey.CONSUMER_GROUP_DESCRIBE]
        described = await describe(cluster, "old")
        assert not isinstance(described["old"], KafkaError)
        assert cluster.requests(ApiKey.CONSUMER_GROUP_DESCRIBE) == []


@run_async
async def test_committed_offsets_are_listed_when_they_are_stable() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": 0, "none": 0})
        codes = [int(ErrorCode.UNSTABLE_OFFSET_COMMIT), 0]

        def fetch(call: Call) -> OffsetFetchResponse:
            assert call.version == 9
            assert call.request.require_stable
            code = codes.pop(0) if any(g.group_id == "g" for g in call.request.groups) else 0
            found = {
                "g": [
                    OffsetFetchResponseTopics(
                        name="orders",
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=0,
                                committed_offset=5,
                                committed_leader_epoch=2,
                                metadata="x",
                                error_code=code,
                            ),
                            OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
                        ],
                    )
                ]
            }
            return OffsetFetchResponse(
                groups=[
                    OffsetFetchResponseGroup(
                        group_id=group.group_id, topics=found.get(group.group_id, [])
                    )
                    for group in call.request.groups
                ]
            )

        cluster.script(ApiKey.OFFSET_FETCH, fetch)
        async with connection_to(cluster) as connection:
            offsets = require_all(
                await AdminOperations(connection).list_group_offsets(
                    ["g", "none"], require_stable=True
                )
            )
        assert offsets == {"g": {ORDERS[0]: CommittedOffset(5, 2, "x")}, "none": {}}
        first, second = cluster.requests(ApiKey.OFFSET_FETCH)
        assert [group.topics for group in first.groups] == [None, None]
        assert [group.group_id for group in second.groups] == ["g"]


@run_async
async def test_offsets_are_committed_for_a_group_without_members() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": 0})
        answers = [{0: 14, 1: 14, 2: 14}, {0: 0, 1: 3, 2: 12}]

        def commit(call: Call) -> OffsetCommitResponse:
            codes = answers.pop(0)
            return OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetCommitResponsePartition(
                                partition_index=each.partition_index,
                                error_code=codes[each.partition_index],
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in call.request.topics
                ]
            )

        cluster.script(ApiKey.OFFSET_COMMIT, commit)
        async with connection_to(cluster) as connection:
            wanted = {key: CommittedOffset(key.partition * 10) for key in ORDERS}
            outcomes = await AdminOperations(connection).alter_group_offsets(
                "g", wanted, raise_errors=False
            )
        codes = [None if error is None else error.code for error in outcomes.values()]
        assert codes == [
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ]
        _, request = cluster.requests(ApiKey.OFFSET_COMMIT)
        assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
        [topic] = request.topics
        assert [(it.partition_index, it.committed_offset) for it in topic.partitions] == [
            (0, 0),
            (1, 10),
            (2, 20),
        ]


@run_async
async def test_offsets_are_deleted_unless_the_group_reads_them() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": 0, "absent": 0})

        def delete(call: Call) -> OffsetDeleteResponse:
            if call.request.group_id == "absent":
                return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
            [topic] = call.request.topics
            return OffsetDeleteResponse(
                topics=[
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetDeleteResponsePartition(
                                partition_index=each.partition_index,
                                error_code=86 if each.partition_index else 0,
                            )
                            for each in topic.partitions
                        ],
                    )
                ]
            )

        cluster.script(ApiKey.OFFSET_DELETE, delete)
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            outcomes = await admin.delete_group_offsets("g", ORDERS[:2], raise_errors=False)
            assert outcomes[ORDERS[0]] is None
            assert str(outcomes[ORDERS[1]]) == (
                "Group 'g', orders-1: A member of the group still reads that topic."
            )
            with pytest.raises(UnknownGroupError, match="There is no group 'absent'"):
                await admin.delete_group_offsets("absent", ORDERS)


@run_async
async def test_groups_are_deleted_one_by_one() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        place_coordinators(cluster, {"a": 0, "b": 1, "c": 1})
        codes = {"a": 0, "b": 68, "c": 69}
        cluster.script(
            ApiKey.DELETE_GROUPS,
            lambda call: DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=group_id, error_code=codes[group_id])
                    for group_id in call.request.groups_names
                ]
            ),
        )
        async with connection_to(cluster) as connection:
            outcomes = await AdminOperations(connection).delete_groups(
                ["a", "b", "c"], raise_errors=False
            )
        assert outcomes["a"] is None
        assert str(outcomes["b"]) == "Group 'b': The group still has members."
        assert str(outcomes["c"]) == "There is no group 'c'."


@run_async
async def test_members_are_removed_by_either_of_their_ids() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"g": 0, "absent": 0})

        def leave(call: Call) -> LeaveGroupResponse:
            if call.request.group_id == "absent":
                return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
            return LeaveGroupResponse(
                members=[
                    MemberResponse(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        error_code=25 if member.group_instance_id == "gone" else 0,
                    )
                    for member in call.request.members
                ]
            )

        cluster.script(ApiKey.LEAVE_GROUP, leave)
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            outcomes = await admin.remove_members(
                "g",
                member_ids=["m"],
                group_instance_ids=["i", "gone"],
                reason="moved",
                raise_errors=False,
            )
            assert (outcomes["m"], outcomes["i"]) == (None, None)
            assert str(outcomes["gone"]) == (
                "Member 'gone' of group 'g': The group has no member with that id."
            )
            with pytest.raises(KafkaError, match="Group 'absent'"):
                await admin.remove_members("absent", member_ids=["m"])
        assert {it.reason for it in cluster.requests(ApiKey.LEAVE_GROUP)[0].members} == {"moved"}
