"""A member of a classic group, request by request."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError, UnsupportedVersionError
from headwater.base.ids import TopicPartition
from headwater.client.ask import CoordinatorOf
from headwater.client.assignors.assignor import (
    MemberAssignment,
    MemberSubscription,
    PlainAssignor,
    RebalanceProtocol,
    Subscriptions,
)
from headwater.client.assignors.consumer_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from headwater.client.assignors.known_assignors import make_assignors
from headwater.client.cluster_connection import Lane
from headwater.client.cluster_metadata import ClusterMetadata
from headwater.client.consumer.classic_membership import ClassicMembership
from headwater.client.consumer.commit_errors import CommitFailedError
from headwater.client.consumer.membership import RebalanceKind, Subscription
from headwater.client.coordinator_cache import CoordinatorCache
from headwater.client.coordinators import CoordinatorKind
from headwater.client.retry import RetryPolicy
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.asked_machine import AskedMachine

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COORDINATOR = CoordinatorOf(CoordinatorKind.GROUP, "readers")
REVOKED, LOST, ASSIGNED = RebalanceKind.REVOKED, RebalanceKind.LOST, RebalanceKind.ASSIGNED


def metadata_answer(counts: Mapping[str, int]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[MetadataResponsePartition(partition_index=n) for n in range(count)],
            )
            for name, count in counts.items()
        ]
    )


class Member(AskedMachine):
    """A membership with its user: topic `a` has two partitions and `b` one."""

    membership: ClassicMembership

    def __init__(
        self, assignors: Iterable[object] = ("range",), settings: Mapping[str, object] | None = None
    ) -> None:
        self.coordinators = CoordinatorCache()
        self.coordinators.learn(COORDINATOR, 1)
        self.metadata = ClusterMetadata()
        self.metadata.learn(metadata_answer({"a": 2, "b": 1}), None)
        self.refreshed: list[Collection[str]] = []
        self.notified_count = 0
        config = {"bootstrap.servers": "localhost:9092", "group.id": "readers"}
        self.membership = ClassicMembership(
            parse_settings(CONSUMER_SETTINGS, {**config, **(settings or {})}, {}),
            coordinators=self.coordinators,
            metadata=self.metadata,
            assignors=make_assignors(assignors),
            policy=RetryPolicy(),
            generator=random.Random(1),
            refresh=self.refreshed.append,
            notify=self._notified,
        )
        super().__init__(self.membership)

    def _notified(self) -> None:
        self.notified_count += 1

    def subscribe(self, *topics: str, pattern: str | None = None) -> None:
        self.membership.subscribe(Subscription(frozenset(topics), pattern), self.now_s)

    def learn(self, counts: Mapping[str, int]) -> None:
        self.metadata.learn(metadata_answer(counts), None)
        self.membership.metadata_changed(self.now_s)

    def handle(self, kind: RebalanceKind, *partitions: TopicPartition) -> None:
        """The event must be this one; the user handles it."""
        event = self.membership.event
        assert event is not None
        assert (event.kind, set(event.partitions)) == (kind, set(partitions))
        owned = set(self.membership._ownership.owned)
        owned = owned | event.partitions if kind is ASSIGNED else owned - event.partitions
        self.membership.event_handled(owned, self.now_s)

    def join(self, generation: int = 1, leader: str = "other", protocol: str = "range") -> None:
        self.answer(
            JoinGroupRequest,
            JoinGroupResponse(
                generation_id=generation, leader=leader, member_id="me", protocol_name=protocol
            ),
        )

    def sync(self, *partitions: TopicPartition) -> None:
        assignment = write_assignment(MemberAssignment(partitions))
        self.answer(SyncGroupRequest, SyncGroupResponse(assignment=assignment))

    def settle(self, *partitions: TopicPartition, protocol: str = "range") -> None:
        """Subscribe, and become a member that has these."""
        self.subscribe("a", "b")
        self.join(protocol=protocol)
        self.sync(*partitions)
        self.handle(ASSIGNED, *partitions)
        assert self.membership.is_stable

    def beat(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.wait_for(HeartbeatRequest)
        self.answer(HeartbeatRequest, HeartbeatResponse(error_code=code))


# -- joining ---------------------------------------------------------------------------------------


def test_a_member_id_is_handed_out_first() -> None:
    member = Member()
    member.subscribe("a")
    first = member.answer(
        JoinGroupRequest,
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given"),
    )
    second, ask = member.take(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", "given")
    assert ask.target == COORDINATOR and ask.lane is Lane.COORDINATION


def test_what_a_join_says() -> None:
    member = Member(
        ["range", "sticky"],
        {"group.instance.id": "i1", "client.rack": "r1", "max.poll.interval.ms": 70000},
    )
    member.subscribe("b", "a")
    request, ask = member.take(JoinGroupRequest)
    assert [each.name for each in request.protocols] == ["range", "sticky"]
    assert request.group_instance_id == "i1"
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45000, 70000)
    assert ask.timeout_s == 75.0, "the answer may take as long as a rebalance"
    subscription = read_subscription(request.protocols[0].metadata, None)
    assert (subscription.topics, subscription.rack_id) == (("a", "b"), "r1")


def test_a_follower_syncs_without_assignments_and_takes_over() -> None:
    member = Member()
    member.subscribe("a")
    member.join(generation=4)
    request, _ = member.take(SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.assignments) == (4, "me", [])
    assert request.protocol_name == "range"
    member.sync(A0)
    assert not member.membership.is_stable
    member.handle(ASSIGNED, A0)
    assert member.membership.is_stable
    assert member.membership.committer() == ("readers", 4, "me", None)


def lead(member: Member, wanted: Mapping[str, Iterable[str]], **fields: object) -> None:
    answer = JoinGroupResponse(
        generation_id=1,
        leader="me",
        member_id="me",
        protocol_name="range",
        members=[
            JoinGroupResponseMember(
                member_id=name, metadata=write_subscription(MemberSubscription(tuple(topics)))
            )
            for name, topics in wanted.items()
        ],
    )
    for name, value in fields.items():
        setattr(answer, name, value)
    member.answer(JoinGroupRequest, answer)


def dealt(member: Member) -> dict[str, set[TopicPartition]]:
    request, _ = member.take(SyncGroupRequest)
    return {
        each.member_id: set(read_assignment(each.assignment).partitions)
        for each in request.assignments
    }


def test_the_leader_deals_out() -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"], "you": ["a", "b"]})
    assert dealt(member) == {"me": {A0}, "you": {A1, B0}}
    assert member.membership.group_topics == {"a", "b"}


def test_the_leader_asks_for_topics_that_only_others_want() -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"], "you": ["a", "new"]})
    assert member.refreshed == [{"a", "new"}]
    assert member.is_quiet()
    member.learn({"a": 2, "b": 1})
    assert member.refreshed == [{"a", "new"}] * 2, "that may have been an older question's answer"
    assert member.is_quiet()
    member.learn({"a": 2, "b": 1, "new": 1})
    assert dealt(member) == {"me": {A0}, "you": {A1, TopicPartition("new", 0)}}


def test_topics_that_do_not_exist_are_not_waited_for() -> None:
    member = Member()
    member.subscribe("a", "gone")
    lead(member, {"me": ["a", "gone"]})
    member.learn({"a": 2})
    member.learn({"a": 2})
    assert dealt(member) == {"me": {A0, A1}}


def test_the_leader_may_be_told_to_leave_it_as_it_is() -> None:
    member = Member(settings={"group.instance.id": "i1"})
    member.subscribe("a")
    lead(member, {"me": ["a"]}, skip_assignment=True)
    assert dealt(member) == {}


@pytest.mark.parametrize("counts", [{"a": 3, "b": 1}, {"b": 1}])
def test_the_leader_watches_the_topics(counts: dict[str, int]) -> None:
    member = Member()
    member.subscribe("a")
    lead(member, {"me": ["a"]})
    member.sync(A0, A1)
    member.handle(ASSIGNED, A0, A1)
    member.learn({"a": 2, "b": 9})
    assert member.membership.is_stable, "nobody subscribes to b"
    member.learn(counts)
    member.handle(REVOKED, A0, A1)
    assert member.take(JoinGroupRequest)[0].reason == (
        "the group's topics or their partitions have changed"
    )


def test_a_follower_does_not() -> None:
    member = Member()
    member.settle(A0, A1)
    member.learn({"a": 9})
    assert member.membership.is_stable


def test_a_pattern_is_looked_for_in_all_topics() -> None:
    member = Member()
    member.subscribe(pattern="a|new.*")
    assert member.is_quiet() and member.refreshed == [()]
    member.learn({"a": 2, "ab": 1, "b": 1})
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("a",)
    member.join()
    member.sync(A0)
    member.handle(ASSIGNED, A0)
    member.learn({"a": 2, "new-1": 1})
    member.handle(REVOKED, A0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("a", "new-1")


# -- rebalances ------------------------------------------------------------------------------------


def test_heartbeats_come_at_their_interval() -> None:
    member = Member()
    member.settle(A0)
    started_s = member.now_s
    for number in range(1, 4):
        member.beat()
        assert member.now_s == pytest.approx(started_s + 3 * number)


def test_an_eager_member_lets_go_of_everything_before_it_joins() -> None:
    member = Member()
    member.settle(A0, B0)
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert not member.membership.is_stable
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)  # They go on while the listener runs.
    member.handle(REVOKED, A0, B0)
    request, _ = member.take(JoinGroupRequest)
    assert request.member_id == "me"
    assert read_subscription(request.protocols[0].metadata, None).owned == frozenset()
    member.wait(10)
    assert [type(each) for each in member.look()] == [JoinGroupRequest], "heartbeats pause"


def test_a_cooperative_member_keeps_what_it_has_and_joins_twice() -> None:
    member = Member(["cooperative-sticky"])
    member.settle(A0, A1, protocol="cooperative-sticky")
    member.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert member.membership.event is None
    request, _ = member.take(JoinGroupRequest)
    subscription = read_subscription(request.protocols[0].metadata, None)
    assert (subscription.owned, subscription.generation_id) == (frozenset({A0, A1}), 1)
    member.join(generation=2, protocol="cooperative-sticky")
    member.sync(A0, B0)
    member.handle(REVOKED, A1)
    member.handle(ASSIGNED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert request.reason == "partitions were let go of, so that others may have them"
    assert read_subscription(request.protocols[0].metadata, None).owned == {A0, B0}


def test_a_cooperative_member_lets_go_of_topics_it_does_not_want_any_more() -> None:
    member = Member(["cooperative-sticky"])
    member.settle(A0, B0, protocol="cooperative-sticky")
    member.subscribe("a")
    member.handle(REVOKED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).owned == {A0}


def test_a_subscription_that_changes_while_it_joins_is_joined_with_again() -> None:
    member = Member()
    member.subscribe("a", "b")
    member.join()
    member.subscribe("b")
    member.sync(A0, B0)
    member.handle(ASSIGNED, B0)
    member.handle(REVOKED, B0)
    request, _ = member.take(JoinGroupRequest)
    assert read_subscription(request.protocols[0].metadata, None).topics == ("b",)


def test_a_rebalance_can_be_enforced() -> None:
    member = Member()
    member.settle(A0)
    member.membership.enforce_rebalance("I want it", member.now_s)
    member.handle(REVOKED, A0)
    assert member.take(JoinGroupRequest)[0].reason == "I want it"


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
def test_whatever_it_is_answered_it_comes_to_rest_when_that_ends(
    assignor: str, trouble: list[tuple[ErrorCode | None, float, bool]]
) -> None:
    member = Member([assignor])
    member.subscribe("a", "b")
    generation = 0

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
                partitions = (A0, B0) if generation % 2 else (A0, A1)
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
    for _ in range(30):
        go_on(ErrorCode.NONE, True)
        member.wait(1.0)
    assert member.membership.is_stable
    assert member.membership._ownership.owned in ({A0, B0}, {A0, A1})
