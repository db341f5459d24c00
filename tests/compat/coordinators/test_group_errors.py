"""What a member is told that is late, unknown, fenced or wrong, request by request."""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.groups.raw import (
    JOIN_VERSION,
    NO_TOPICS,
    SYNC_VERSION,
    commit,
    committed,
    describe,
    heartbeat,
    join,
    join_alone,
    join_request,
    leave,
    sync_request,
)
from tests.support.other_clients.raw import RawConnection

MakeTopic = Callable[..., str]


def test_ids_are_handed_out_first(connection: RawConnection, group: str) -> None:
    answer = connection.ask(join_request(group), JOIN_VERSION)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("raw-")
    assert answer.generation_id == -1
    joined = connection.ask(join_request(group, answer.member_id), JOIN_VERSION)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id == answer.member_id
    [member] = joined.members
    assert (member.member_id, member.metadata) == (answer.member_id, NO_TOPICS)
    # Before the version in which ids are handed out first, one is given at once.
    old = connection.ask(join_request(f"{group}-old"), 3)
    assert (old.error_code, old.generation_id, old.leader) == (0, 1, old.member_id)


def test_what_a_stale_or_unknown_member_is_told(
    connection: RawConnection, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    joined = join_alone(connection, group)
    generation, member = joined.generation_id, joined.member_id
    for version in connection.versions(ApiKey.HEARTBEAT):
        beat = [
            heartbeat(connection, group, *who, version=version)
            for who in ((generation, member), (generation + 1, member), (generation, "nobody"))
        ]
        assert beat == [0, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID], version
    for version in range(2, 10):
        codes = [
            commit(connection, group, topic, 4, *who, version=version)
            for who in (
                (generation, member),
                (generation - 1, member),
                (generation, "nobody"),
                (-1, ""),
            )
        ]
        assert codes == [
            0,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ], version
    assert committed(connection, group, topic) == (4, 0)
    # A sync of a generation that is over, or by nobody.
    joined.generation_id += 1
    request = sync_request(group, joined, {})
    assert connection.ask(request, SYNC_VERSION).error_code == ErrorCode.ILLEGAL_GENERATION
    joined.generation_id, joined.member_id = generation, "nobody"
    request = sync_request(group, joined, {})
    assert connection.ask(request, SYNC_VERSION).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(connection, group, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    refused = connection.ask(join_request(group, "nobody"), JOIN_VERSION)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_after_leaving(connection: RawConnection, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic()
    joined = join_alone(connection, group)
    generation, member = joined.generation_id, joined.member_id
    assert leave(connection, group, member) == 0
    assert heartbeat(connection, group, generation, member) == ErrorCode.UNKNOWN_MEMBER_ID
    late = commit(connection, group, topic, 1, generation, member)
    assert late == ErrorCode.UNKNOWN_MEMBER_ID
    assert describe(connection, group).group_state == "Empty"
    # Whoever is no member at all may commit for a group that is empty.
    assert commit(connection, group, topic, 7) == 0
    assert committed(connection, group, topic) == (7, 0)


def test_groups_that_do_not_exist(
    connection: RawConnection, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    assert heartbeat(connection, group, 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(connection, group, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    late = commit(connection, group, topic, 1, 1, "nobody", version=8)
    assert late == ErrorCode.ILLEGAL_GENERATION
    late = commit(connection, group, topic, 1, 1, "nobody", version=9)
    assert late == ErrorCode.GROUP_ID_NOT_FOUND
    assert committed(connection, group, topic) == (-1, 0)
    [described] = connection.ask(DescribeGroupsRequest(groups=[group]), 5).groups
    assert (described.error_code, described.group_state) == (0, "Dead")
    [described] = connection.ask(DescribeGroupsRequest(groups=[group]), 6).groups
    assert (described.error_code, described.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    [deleted] = connection.ask(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_fenced_instance(connection: RawConnection, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic()
    first = join_alone(connection, group, instance_id="static")
    again = join_alone(connection, group, instance_id="static")
    assert again.member_id != first.member_id
    stale = (first.generation_id, first.member_id)
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert heartbeat(connection, group, *stale, instance_id="static") == fenced
    assert commit(connection, group, topic, 1, *stale, instance_id="static") == fenced
    assert leave(connection, group, first.member_id, instance_id="static") == fenced
    request = sync_request(group, first, {}, instance_id="static")
    assert connection.ask(request, SYNC_VERSION).error_code == fenced
    request_again = join_request(group, first.member_id, instance_id="static")
    assert connection.ask(request_again, JOIN_VERSION).error_code == fenced
    current = (again.generation_id, again.member_id)
    assert heartbeat(connection, group, *current, instance_id="static") == 0
    unknown = heartbeat(connection, group, *current, instance_id="other")
    assert unknown == ErrorCode.UNKNOWN_MEMBER_ID
    # An administrator removes a static member by its name alone.
    assert leave(connection, group, "", instance_id="static") == 0
    assert describe(connection, group).group_state == "Empty"


def test_joins_that_are_refused(connection: RawConnection, group: str) -> None:
    join_alone(connection, group)
    cases = {
        ErrorCode.INVALID_SESSION_TIMEOUT: join_request(f"{group}-1", session_timeout_ms=100),
        ErrorCode.INVALID_GROUP_ID: join_request(""),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: join_request(group, protocols=("other",)),
    }
    for code, request in cases.items():
        assert connection.ask(request, 3).error_code == code
    for wrong in (
        join_request(group, protocol_type="connect"),
        join_request(f"{group}-2", protocols=()),
        join_request(f"{group}-2", protocol_type=""),
    ):
        refused = connection.ask(wrong, 3)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_rebalance_step_by_step(
    broker: BrokerUnderTest, connection: RawConnection, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    first = join_alone(connection, group)
    with RawConnection(broker.bootstrap) as second_connection:
        answer = second_connection.ask(join_request(group), JOIN_VERSION)
        second_id = answer.member_id
        second_connection.send(join_request(group, second_id), JOIN_VERSION)
        wait_until(
            lambda: describe(connection, group).group_state == "PreparingRebalance",
            "the group is told",
        )
        current = (first.generation_id, first.member_id)
        assert heartbeat(connection, group, *current) == ErrorCode.REBALANCE_IN_PROGRESS
        # It may still commit what it has done so far.
        assert commit(connection, group, topic, 3, *current) == 0
        led = connection.ask(join_request(group, first.member_id), JOIN_VERSION)
        assert (led.error_code, led.generation_id) == (0, first.generation_id + 1)
        assert led.leader == first.member_id
        assert {each.member_id for each in led.members} == {first.member_id, second_id}
        _, followed = second_connection.receive(ApiKey.JOIN_GROUP, JOIN_VERSION)
        assert (followed.error_code, followed.generation_id) == (0, led.generation_id)
        assert (followed.leader, followed.members) == (first.member_id, [])
        assert describe(connection, group).group_state == "CompletingRebalance"
        refused = commit(connection, group, topic, 4, led.generation_id, led.member_id)
        assert refused == ErrorCode.REBALANCE_IN_PROGRESS
        second_connection.send(sync_request(group, followed, {}), SYNC_VERSION)
        assignments = {first.member_id: b"one", second_id: b"two"}
        synced = connection.ask(sync_request(group, led, assignments), SYNC_VERSION)
        assert (synced.error_code, synced.assignment) == (0, b"one")
        _, synced = second_connection.receive(ApiKey.SYNC_GROUP, SYNC_VERSION)
        assert (synced.error_code, synced.assignment) == (0, b"two")
    described = describe(connection, group)
    assert (described.group_state, described.protocol_type) == ("Stable", "consumer")
    found = {each.member_id: each.member_assignment for each in described.members}
    assert found == {first.member_id: b"one", second_id: b"two"}
    assert {each.client_id for each in described.members} == {"raw"}
    [deleted] = connection.ask(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP


def test_a_session_ends(connection: RawConnection, group: str) -> None:
    joined = join_alone(connection, group, session_timeout_ms=500)
    wait_until(lambda: describe(connection, group).group_state == "Empty", "the session ends")
    gone = heartbeat(connection, group, joined.generation_id, joined.member_id)
    assert gone == ErrorCode.UNKNOWN_MEMBER_ID
    again = join(connection, group)
    assert (again.error_code, again.generation_id) == (0, joined.generation_id + 2)
