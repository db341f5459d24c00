"""The requests of a group's member, said one by one on a `RawConnection`.

For what no client can be made to do: claim a generation that is over, or an id that nobody gave it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.other_clients.groups.contract import LONG_SESSION_MS
from tests.support.other_clients.raw import RawConnection

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_VERSION = 5
DESCRIBE_VERSION = 5
#: The last ones that name a topic by its name.
COMMIT_VERSION = 9
OFFSET_FETCH_VERSION = 9

GROUP = 0
TRANSACTION = 1
#: What a consumer says that subscribes to nothing: a version, no topics, and no data of a user.
NO_TOPICS = struct.pack(">hii", 0, 0, -1)
#: What a broker answers that is about to be a key's coordinator.
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def coordinator_error(connection: RawConnection, key: str, kind: int) -> int:
    """What FindCoordinator says of the key."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    [found] = connection.ask(request, 4).coordinators
    code: int = found.error_code
    return code


def wait_for_coordinators(bootstrap: str, key: str = "any") -> None:
    """Until both kinds of coordinator are there, and the groups' has loaded what it has to."""
    with RawConnection(bootstrap) as connection:
        for kind in (GROUP, TRANSACTION):
            wait_until(
                lambda kind=kind: coordinator_error(connection, key, kind) == 0,  # type: ignore[misc]
                "there is a coordinator",
            )
        wait_until(
            lambda: describe(connection, key).error_code not in NOT_YET, "the groups are loaded"
        )


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    session_timeout_ms: int = LONG_SESSION_MS,
    protocols: tuple[str, ...] = ("range",),
    protocol_type: str = "consumer",
    metadata: bytes = NO_TOPICS,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=LONG_SESSION_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    )


def join(connection: RawConnection, group: str, **more: Any) -> JoinGroupResponse:
    """Join; with the id that was given first, where the broker asks for that."""
    answer: JoinGroupResponse = connection.ask(join_request(group, **more), JOIN_VERSION)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request = join_request(group, answer.member_id, **more)
        answer = connection.ask(request, JOIN_VERSION)
    return answer


def sync_request(
    group: str,
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes],
    *,
    instance_id: str | None = None,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in assignments.items()
        ],
    )


def join_alone(connection: RawConnection, group: str, **more: Any) -> JoinGroupResponse:
    """Join a group that has nobody else, up to a stable generation."""
    joined = join(connection, group, **more)
    assert (joined.error_code, joined.leader) == (0, joined.member_id)
    request = sync_request(
        group, joined, {joined.member_id: b"all"}, instance_id=more.get("instance_id")
    )
    synced = connection.ask(request, SYNC_VERSION)
    assert (synced.error_code, synced.assignment) == (0, b"all")
    return joined


def heartbeat(
    connection: RawConnection,
    group: str,
    generation: int,
    member_id: str,
    *,
    instance_id: str | None = None,
    version: int = HEARTBEAT_VERSION,
) -> int:
    request = HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
    )
    code: int = connection.ask(request, version).error_code
    return code


def leave(
    connection: RawConnection, group: str, member_id: str, *, instance_id: str | None = None
) -> int:
    """What is said of the member, or else of the whole request."""
    identity = MemberIdentity(member_id=member_id, group_instance_id=instance_id)
    request = LeaveGroupRequest(group_id=group, members=[identity])
    answer = connection.ask(request, LEAVE_VERSION)
    code: int = answer.error_code or answer.members[0].error_code
    return code


def commit(
    connection: RawConnection,
    group: str,
    topic: str,
    offset: int,
    generation: int = -1,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    version: int = COMMIT_VERSION,
) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    [topic_answer] = connection.ask(request, version).topics
    code: int = topic_answer.partitions[0].error_code
    return code


def committed(
    connection: RawConnection, group: str, topic: str, partition: int = 0, *, stable: bool = False
) -> tuple[int, int]:
    """The committed offset, and the error."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])], require_stable=stable
    )
    [answer] = connection.ask(request, OFFSET_FETCH_VERSION).groups
    if answer.error_code != 0:
        return -1, answer.error_code
    [found] = answer.topics[0].partitions
    return found.committed_offset, found.error_code


def describe(connection: RawConnection, group: str) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group])
    [described] = connection.ask(request, DESCRIBE_VERSION).groups
    found: DescribedGroup = described
    return found
