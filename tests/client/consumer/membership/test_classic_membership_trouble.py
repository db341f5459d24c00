"""A member of a classic group in trouble, and how it leaves, request by request."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError, UnsupportedVersionError
from headwater.client.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
    PlainAssignor,
    RebalanceProtocol,
    Subscriptions,
)
from headwater.client.assignors.consumer_protocol import (
    write_assignment,
    write_subscription,
)
from headwater.client.connection.cluster_connection import Lane
from headwater.client.consumer.committed.errors import CommitFailedError
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.fakes.lone_member import (
    A0,
    A1,
    ASSIGNED,
    B0,
    COORDINATOR,
    LOST,
    REVOKED,
    Member,
    lead,
)

# -- trouble ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "me")],
)
def test_who_is_out_has_lost_what_it_had(code: ErrorCode, member_id: str) -> None:
    member = Member()
    member.settle(A0)
    member.beat(code)
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        member.membership.committer()
    assert member.is_quiet(), "it waits until the user knows"
    member.handle(LOST, A0)
    request, _ = member.take(JoinGroupRequest)
    assert request.member_id == member_id


def test_an_event_is_not_changed_while_it_is_handled() -> None:
    member = Member(["cooperative-sticky"])
    member.settle(A0, B0, protocol="cooperative-sticky")
    member.subscribe("a")
    member.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    member.handle(REVOKED, B0)
    member.handle(LOST, A0)
    assert member.take(JoinGroupRequest)[0].member_id == ""


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_GROUP_ID,
    ],
)
def test_what_cannot_pass_is_told(code: ErrorCode) -> None:
    member = Member()
    member.subscribe("a")
    member.answer(JoinGroupRequest, JoinGroupResponse(error_code=code))
    failure = member.membership.failure
    assert failure is not None and failure.code is code and "Group 'readers'" in str(failure)
    assert member.is_quiet() and member.notified_count > 0
    assert member.membership.take_failure() is failure
    assert member.membership.take_failure() is None
    member.membership.polled(member.now_s)
    tries_again = not member.is_quiet()
    assert tries_again is (code is not ErrorCode.FENCED_INSTANCE_ID)


def test_a_fenced_member_has_lost_what_it_had() -> None:
    member = Member(settings={"group.instance.id": "i1"})
    member.settle(A0)
    member.beat(ErrorCode.FENCED_INSTANCE_ID)
    member.handle(LOST, A0)
    failure = member.membership.take_failure()
    assert failure is not None and "group.instance.id" in str(failure)
    member.membership.polled(member.now_s)
    member.wait(1000)
    assert member.is_quiet()


def test_brokers_that_are_too_old_are_told_of() -> None:
    member = Member()
    member.subscribe("a")
    member.fail(JoinGroupRequest, UnsupportedVersionError("There is no version."))
    failure = member.membership.take_failure()
    assert isinstance(failure, UnsupportedVersionError)


def test_a_coordinator_that_has_moved_is_looked_for() -> None:
    member = Member()
    member.settle(A0)
    member.beat(ErrorCode.NOT_COORDINATOR)
    assert member.coordinators.get(COORDINATOR) is None
    assert member.membership.is_stable, "the member has lost nothing by that"
    member.wait(0.2)
    assert isinstance(member.take(HeartbeatRequest)[0], HeartbeatRequest)


def test_a_coordinator_that_does_not_answer_is_dead_after_a_session() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(HeartbeatRequest)
    _, ask = member.take(HeartbeatRequest)
    assert ask.timeout_s == 45.0
    member.wait(45)
    member.fail(HeartbeatRequest)
    assert member.coordinators.get(COORDINATOR) is None
    assert member.membership.is_stable


def test_a_missed_assignment_is_joined_for_again() -> None:
    member = Member()
    member.subscribe("a")
    member.join()
    member.fail(SyncGroupRequest)
    request = member.wait_for(JoinGroupRequest)
    assert request.member_id == "me"


def test_late_answers_mean_nothing() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(HeartbeatRequest)
    _, late = member.take(HeartbeatRequest)
    member.open.remove(late)
    member.subscribe("a")
    member.handle(REVOKED, A0)
    member.take(JoinGroupRequest)
    late.on_answer(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), member.now_s)
    assert member.membership.identity.member_id == "me"
    assert member.membership.event is None


def test_a_join_that_is_answered_after_the_consumer_has_left_makes_no_member() -> None:
    member = Member()
    member.subscribe("a")
    _, late = member.take(JoinGroupRequest)
    member.open.remove(late)
    member.membership.leave(member.now_s)
    late.on_answer(
        JoinGroupResponse(generation_id=1, leader="x", member_id="me", protocol_name="range"),
        member.now_s,
    )
    assert member.is_quiet()
    assert member.membership.identity.generation_id == -1


class Thief(PlainAssignor):
    name = "range"
    protocol = RebalanceProtocol.COOPERATIVE

    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        return {"me": MemberAssignment((A0,)), "you": MemberAssignment()}


class Broken(Thief):
    def assign(
        self, partition_counts: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, MemberAssignment]:
        raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("assignor", "part"),
    [
        (Thief, "gave a-0 to member 'me' while 'you' still has it"),
        (Broken, "The assignor 'range' failed: RuntimeError: no idea"),
    ],
)
def test_an_assignor_that_fails_does_not_take_the_group_with_it(
    assignor: type[Thief], part: str
) -> None:
    member = Member([assignor])
    member.subscribe("a")
    yours = write_subscription(MemberSubscription(("a",), frozenset({A0})))
    mine = write_subscription(MemberSubscription(("a",)))
    lead(
        member,
        {},
        members=[
            JoinGroupResponseMember(member_id="me", metadata=mine),
            JoinGroupResponseMember(member_id="you", metadata=yours),
        ],
    )
    failure = member.membership.take_failure()
    assert failure is not None and part in str(failure)
    request, _ = member.take(LeaveGroupRequest)
    assert request.members[0].reason == "the consumer's assignor failed"


# -- leaving ---------------------------------------------------------------------------------------


def test_leaving_is_done_when_the_coordinator_knows() -> None:
    member = Member()
    member.settle(A0)
    completion = member.membership.leave(member.now_s)
    request, ask = member.take(LeaveGroupRequest)
    assert [each.member_id for each in request.members] == ["me"]
    assert ask.lane is Lane.ORDINARY, "not behind a join that waits"
    assert not completion.is_done
    member.answer(LeaveGroupRequest, LeaveGroupResponse())
    assert completion.is_done
    member.wait(1000)
    assert member.is_quiet()


def test_leaving_is_tried_a_few_times() -> None:
    member = Member()
    member.settle(A0)
    completion = member.membership.leave(member.now_s)
    for _ in range(5):
        assert not completion.is_done
        member.wait_for(LeaveGroupRequest)
        member.fail(LeaveGroupRequest)
    assert completion.is_done


def test_a_static_member_stays() -> None:
    member = Member(settings={"group.instance.id": "i1"})
    member.settle(A0)
    assert member.membership.leave(member.now_s).is_done
    assert member.is_quiet()


def test_an_empty_subscription_leaves_and_a_new_one_joins() -> None:
    member = Member()
    member.settle(A0)
    member.subscribe()
    member.answer(LeaveGroupRequest, LeaveGroupResponse())
    member.subscribe("b")
    assert member.take(JoinGroupRequest)[0].member_id == ""


def test_who_does_not_poll_leaves_and_comes_back_with_the_next_poll() -> None:
    member = Member(settings={"max.poll.interval.ms": 10000})
    member.settle(A0)
    for _ in range(3):
        member.beat()
    request = member.wait_for(LeaveGroupRequest)
    assert member.now_s == 110.0
    assert "max.poll.interval.ms" in (request.members[0].reason or "")
    member.answer(LeaveGroupRequest, LeaveGroupResponse())
    member.wait(1000)
    assert member.is_quiet()
    member.membership.polled(member.now_s)
    member.handle(LOST, A0)
    assert member.take(JoinGroupRequest)[0].member_id == ""


def test_who_has_nothing_and_does_not_poll_stays_away_too() -> None:
    member = Member(settings={"max.poll.interval.ms": 10000})
    member.settle()
    for _ in range(3):
        member.beat()
    member.wait_for(LeaveGroupRequest)
    member.answer(LeaveGroupRequest, LeaveGroupResponse())
    member.wait(1000)
    assert member.is_quiet()
    member.membership.polled(member.now_s)
    assert member.take(JoinGroupRequest)[0].member_id == ""


def test_who_polls_stays() -> None:
    member = Member(settings={"max.poll.interval.ms": 10000})
    member.settle(A0)
    for _ in range(10):
        member.beat()
        member.membership.polled(member.now_s)
    assert member.membership.is_stable


# -- anything --------------------------------------------------------------------------------------

CODES = [
    ErrorCode.NONE,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


@given(
    st.sampled_from(["range", "cooperative-sticky"]),
    st.lists(
        st.tuples(st.sampled_from([*CODES, None]), st.floats(0, 4), st.booleans()), max_size=25
    ),
)
@example(
    "cooperative-sticky",
    [
        (ErrorCode.NONE, 0.0, False),
        (ErrorCode.NONE, 3.0, False),
        (ErrorCode.REBALANCE_IN_PROGRESS, 0.0, False),
    ],
)
def test_whatever_it_is_answered_it_comes_to_rest_when_that_ends(
    assignor: str, trouble: list[tuple[ErrorCode | None, float, bool]]
) -> None:
    member = Member([assignor])
    member.subscribe("a", "b")
    generation = 0
    is_over = False

    def go_on(code: ErrorCode | None, is_polled: bool) -> None:
        nonlocal generation
        member.look()
        if member.open:
            ask = member.open.pop(0)
            if code is None:
                ask.on_failure(KafkaError(ErrorCode.NETWORK_EXCEPTION), member.now_s)
            elif isinstance(ask.request, JoinGroupRequest):
                generation += 1
                ask.on_answer(
                    JoinGroupResponse(
                        error_code=code,
                        generation_id=generation,
                        leader="other",
                        member_id="me",
                        protocol_name=assignor,
                    ),
                    member.now_s,
                )
            elif isinstance(ask.request, SyncGroupRequest):
                # A leader that gave out something else in every generation would have a cooperative
                # member let go and join again for ever.
                partitions = (A0, B0) if generation % 2 or is_over else (A0, A1)
                assignment = write_assignment(MemberAssignment(partitions))
                ask.on_answer(
                    SyncGroupResponse(error_code=code, assignment=assignment), member.now_s
                )
            elif isinstance(ask.request, HeartbeatRequest):
                ask.on_answer(HeartbeatResponse(error_code=code), member.now_s)
        if is_polled:
            member.membership.take_failure()
            member.membership.polled(member.now_s)
            event = member.membership.event
            if event is not None:
                owned = set(member.membership._ownership.owned)
                if event.kind is ASSIGNED:
                    assert not owned & event.partitions, "what it has is not given to it again"
                    owned |= event.partitions
                else:
                    assert event.partitions <= owned, "only what it has can go"
                    owned -= event.partitions
                member.membership.event_handled(owned, member.now_s)

    for code, pause_s, is_polled in trouble:
        go_on(code, is_polled)
        member.wait(pause_s)
    is_over = True
    for _ in range(30):
        go_on(ErrorCode.NONE, True)
        member.wait(1.0)
    assert member.membership.is_stable
    assert member.membership._ownership.owned in ({A0, B0}, {A0, A1})
