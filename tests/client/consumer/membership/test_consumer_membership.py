"""A member of a group of the consumer protocol, heartbeat by heartbeat."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError, UnsupportedVersionError
from headwater.base.ids import TopicPartition
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.errors import CommitFailedError
from headwater.client.consumer.membership.consumer_membership import ConsumerMembership
from headwater.client.consumer.membership.membership import RebalanceKind, Subscription
from headwater.client.machines.ask import CoordinatorOf
from headwater.client.settings.client_config import parse_settings
from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from headwater.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.support.fakes.lone_machine import LoneMachine

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COORDINATOR = CoordinatorOf(CoordinatorKind.GROUP, "readers")
REVOKED, LOST, ASSIGNED = RebalanceKind.REVOKED, RebalanceKind.LOST, RebalanceKind.ASSIGNED
ID_A, ID_B = uuid.UUID(int=10), uuid.UUID(int=11)
IDS = {"a": ID_A, "b": ID_B}
Request = ConsumerGroupHeartbeatRequest


def entries(*partitions: TopicPartition, ids: Mapping[str, uuid.UUID] = IDS) -> Assignment:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=ids[topic], partitions=numbers)
            for topic, numbers in topics.items()
        ]
    )


class Member(LoneMachine):
    membership: ConsumerMembership

    def __init__(
        self, settings: Mapping[str, object] | None = None, *, has_polled: bool = True
    ) -> None:
        self.coordinators = CoordinatorCache()
        self.coordinators.learn(COORDINATOR, 1)
        self.metadata = ClusterMetadata()
        self.refreshed: list[Collection[str]] = []
        config = {
            "bootstrap.servers": "localhost:9092",
            "group.id": "readers",
            "group.protocol": "consumer",
        }
        self.membership = ConsumerMembership(
            parse_settings(CONSUMER_SETTINGS, {**config, **(settings or {})}, {}),
            coordinators=self.coordinators,
            metadata=self.metadata,
            policy=RetryPolicy(),
            generator=random.Random(1),
            refresh=self.refreshed.append,
            notify=lambda: None,
        )
        super().__init__(self.membership)
        if has_polled:
            self.membership.polled(self.now_s)
        self.learn(IDS)

    def learn(self, ids: Mapping[str, uuid.UUID]) -> None:
        topics = [MetadataResponseTopic(name=name, topic_id=each) for name, each in ids.items()]
        self.metadata.learn(MetadataResponse(topics=topics), None)
        self.membership.metadata_changed(self.now_s)

    def subscribe(self, *topics: str, pattern: str | None = None) -> None:
        self.membership.subscribe(Subscription(frozenset(topics), pattern), self.now_s)

    def told(
        self, epoch: int, assignment: Assignment | None = None, error: ErrorCode = ErrorCode.NONE
    ) -> ConsumerGroupHeartbeatRequest:
        """Answer the heartbeat that is under way; what it said."""
        return self.answer(
            Request,
            ConsumerGroupHeartbeatResponse(
                error_code=error,
                member_epoch=epoch,
                heartbeat_interval_ms=5000,
                assignment=assignment,
            ),
        )

    def handle(self, kind: RebalanceKind, *partitions: TopicPartition) -> None:
        event = self.membership.event
        assert event is not None
        assert (event.kind, set(event.partitions)) == (kind, set(partitions))
        owned = set(self.membership._ownership.owned)
        owned = owned | event.partitions if kind is ASSIGNED else owned - event.partitions
        self.membership.event_handled(owned, self.now_s)

    def settle(self, *partitions: TopicPartition) -> None:
        self.subscribe("a", "b")
        self.told(1, entries(*partitions))
        self.handle(ASSIGNED, *partitions)
        if partitions:
            self.told(1)
        assert self.membership.is_stable and self.is_quiet()


def test_nobody_joins_who_does_not_poll() -> None:
    member = Member(has_polled=False)
    member.subscribe("a")
    assert member.look() == []
    member.membership.polled(member.now_s)
    first, _ = member.take(Request)
    assert (first.member_epoch, first.subscribed_topic_names) == (0, ["a"])


def test_the_first_heartbeat_says_everything() -> None:
    member = Member(
        {"group.instance.id": "i1", "client.rack": "r1", "group.remote.assignor": "range"}
    )
    member.subscribe("b", "a")
    request, ask = member.take(Request)
    assert request.member_epoch == 0 and len(request.member_id) == 22
    assert (request.instance_id, request.rack_id, request.server_assignor) == ("i1", "r1", "range")
    assert request.rebalance_timeout_ms == 300_000
    assert request.subscribed_topic_names == ["a", "b"]
    assert request.subscribed_topic_regex is None
    assert request.topic_partitions == []
    assert ask.target == COORDINATOR and ask.lane is Lane.COORDINATION


def test_what_is_assigned_is_taken_over_and_acknowledged() -> None:
    member = Member()
    member.subscribe("a", "b")
    member.told(1, entries(A0, B0))
    assert not member.membership.is_stable
    member.handle(ASSIGNED, A0, B0)
    acknowledged = member.told(1)
    assert acknowledged.topic_partitions == entries(A0, B0).topic_partitions
    assert acknowledged.subscribed_topic_names is None and acknowledged.rebalance_timeout_ms == -1
    assert member.membership.is_stable
    assert member.membership.committer().generation_id == 1


def test_regular_heartbeats_say_nothing_and_come_when_the_coordinator_wants_them() -> None:
    member = Member()
    member.settle(A0)
    started_s = member.now_s
    request = member.wait_for(Request)
    assert member.now_s == started_s + 5
    assert request.topic_partitions is None and request.subscribed_topic_names is None


def test_no_partitions_are_an_assignment_too() -> None:
    member = Member()
    member.settle()


def test_revoke_then_acknowledge_and_assign() -> None:
    member = Member()
    member.settle(A0, A1)
    member.wait_for(Request)
    member.told(1, entries(A0, B0))
    assert not member.membership.is_stable and member.is_quiet()
    member.handle(REVOKED, A1)
    request, _ = member.take(Request)
    assert request.topic_partitions == entries(A0, B0).topic_partitions
    member.told(2)
    member.handle(ASSIGNED, B0)
    assert member.membership.is_stable and member.is_quiet()
    assert member.wait_for(Request).member_epoch == 2


def test_what_it_was_told_to_take_counts_as_its_own_before_it_has_polled() -> None:
    """Or the coordinator would give it away, and the poll that comes late would take it too."""
    member = Member()
    member.subscribe("a", "b")
    member.told(1, entries(A0, B0))
    member.fail(Request)
    assert member.wait_for(Request).topic_partitions == entries(A0, B0).topic_partitions
    member.told(2, entries(A0))
    member.handle(ASSIGNED, A0, B0)
    member.handle(REVOKED, B0)


def test_a_fenced_static_member_takes_its_own_place() -> None:
    member = Member({"group.instance.id": "i1"})
    member.settle(A0)
    member.wait_for(Request)
    member.told(0, error=ErrorCode.FENCED_MEMBER_EPOCH)
    member.handle(LOST, A0)
    member.told(0, error=ErrorCode.UNRELEASED_INSTANCE_ID)
    assert member.told(-2).member_epoch == -2
    assert member.take(Request)[0].member_epoch == 0


def test_a_slow_listener_does_not_stop_the_heartbeats() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(Request)
    member.told(1, entries())
    for _ in range(5):
        member.wait_for(Request)
        assert member.told(1).topic_partitions is None, "it has not let go of anything yet"
    member.handle(REVOKED, A0)
    assert member.take(Request)[0].topic_partitions == []


def test_topics_without_a_name_are_waited_for() -> None:
    member = Member()
    member.learn({"a": ID_A})
    member.subscribe("a", "b")
    member.told(1, entries(A0, B0))
    assert member.refreshed
    member.handle(ASSIGNED, A0)
    member.told(1)
    member.learn(IDS)
    member.handle(ASSIGNED, B0)


def test_nothing_is_told_while_no_name_is_known() -> None:
    member = Member()
    member.learn({})
    member.subscribe("a")
    member.told(1, entries(A0))
    assert member.membership.event is None and not member.membership.is_stable
    member.learn(IDS)
    member.handle(ASSIGNED, A0)


def test_a_topic_that_was_made_again_is_another_one() -> None:
    member = Member()
    member.settle(A0)
    again = {"a": uuid.UUID(int=99), "b": ID_B}
    member.learn(again)
    member.wait_for(Request)
    member.told(2, entries(A0, ids=again))
    member.handle(REVOKED, A0)
    member.handle(ASSIGNED, A0)
    assert member.take(Request)[0].topic_partitions == entries(A0, ids=again).topic_partitions


def test_a_change_of_the_subscription_is_said_at_once() -> None:
    member = Member()
    member.settle(A0)
    member.subscribe("b")
    request = member.told(1)
    assert request.subscribed_topic_names == ["b"] and request.subscribed_topic_regex is None
    member.subscribe(pattern="c.*")
    request = member.told(1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "c.*")
    member.subscribe("b")
    request = member.told(1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["b"], "")


def test_a_change_while_a_heartbeat_is_under_way_is_said_after_it() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(Request)
    member.subscribe("b")
    assert member.told(1).subscribed_topic_names is None
    assert member.take(Request)[0].subscribed_topic_names == ["b"]


def test_after_a_lost_answer_everything_is_said_again() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(Request)
    member.fail(Request)
    assert member.coordinators.get(COORDINATOR) is None
    request = member.wait_for(Request)
    assert request.subscribed_topic_names == ["a", "b"] and request.member_epoch == 1
    assert request.topic_partitions == entries(A0).topic_partitions
    assert request.rebalance_timeout_ms == 300_000


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_who_is_fenced_loses_everything_and_joins_anew(code: ErrorCode) -> None:
    member = Member()
    member.settle(A0)
    member_id = member.membership.identity.member_id
    member.wait_for(Request)
    member.told(0, error=code)
    with pytest.raises(CommitFailedError):
        member.membership.committer()
    assert member.is_quiet()
    member.handle(LOST, A0)
    request, _ = member.take(Request)
    assert (request.member_epoch, request.member_id) == (0, member_id)
    assert request.topic_partitions == [] and request.subscribed_topic_names == ["a", "b"]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    ],
)
def test_what_cannot_pass_is_told(code: ErrorCode) -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(Request)
    member.told(0, error=code)
    member.handle(LOST, A0)
    failure = member.membership.take_failure()
    assert failure is not None and failure.code is code
    assert member.is_quiet()


@pytest.mark.parametrize("is_answered", [True, False])
def test_brokers_without_the_protocol_are_told_of_clearly(is_answered: bool) -> None:
    member = Member()
    member.subscribe("a")
    if is_answered:
        member.told(0, error=ErrorCode.UNSUPPORTED_VERSION)
    else:
        member.fail(Request, UnsupportedVersionError("It has no such API."))
    failure = member.membership.take_failure()
    assert isinstance(failure, UnsupportedVersionError)
    assert "group.protocol=classic" in str(failure)


def test_topics_that_may_not_be_seen_are_told_of_and_the_member_stays() -> None:
    member = Member()
    member.settle(A0)
    member.wait_for(Request)
    member.told(0, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert member.membership.event is None
    failure = member.membership.take_failure()
    assert failure is not None and failure.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert member.wait_for(Request).member_epoch == 1


def test_a_static_member_whose_join_went_through_unheard_takes_its_own_place() -> None:
    member = Member({"group.instance.id": "i1"})
    member.subscribe("a")
    member.fail(Request)
    member.wait_for(Request)
    member.told(0, error=ErrorCode.UNRELEASED_INSTANCE_ID)
    assert member.told(-2).member_epoch == -2
    assert member.take(Request)[0].member_epoch == 0
    member.told(0, error=ErrorCode.UNRELEASED_INSTANCE_ID)
    failure = member.membership.take_failure()
    assert failure is not None and "close it first" in str(failure)


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i1", -2)])
def test_leaving(instance_id: str | None, epoch: int) -> None:
    member = Member({} if instance_id is None else {"group.instance.id": instance_id})
    member.settle(A0)
    completion = member.membership.leave(member.now_s)
    assert not completion.is_done
    assert member.told(epoch).member_epoch == epoch
    assert completion.is_done
    member.wait(100)
    assert member.is_quiet()


def test_joining_again_waits_until_the_coordinator_knows_that_it_left() -> None:
    member = Member()
    member.settle(A0)
    member.subscribe()
    member.subscribe("a")
    [request] = member.look()
    assert isinstance(request, Request) and request.member_epoch == -1
    member.told(-1)
    assert member.take(Request)[0].member_epoch == 0


def test_who_does_not_poll_leaves_and_comes_back_with_the_next_poll() -> None:
    member = Member({"max.poll.interval.ms": 7000})
    member.settle(A0)
    member.wait_for(Request)
    member.told(1)
    member.wait(2.5)
    assert member.told(-1).member_epoch == -1
    member.wait(1000)
    assert member.is_quiet()
    member.membership.polled(member.now_s)
    member.handle(LOST, A0)
    assert member.take(Request)[0].member_epoch == 0


CODES = [
    ErrorCode.NONE,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    None,
]
TARGETS = [(), (A0,), (A0, A1), (A1, B0), None]


@given(
    st.lists(
        st.tuples(st.sampled_from(CODES), st.sampled_from(TARGETS), st.floats(0, 4), st.booleans()),
        max_size=25,
    )
)
def test_whatever_it_is_answered_it_comes_to_rest_when_that_ends(
    trouble: list[tuple[ErrorCode | None, tuple[TopicPartition, ...] | None, float, bool]],
) -> None:
    member = Member()
    member.subscribe("a", "b")
    epoch = 0

    def go_on(
        code: ErrorCode | None, target: tuple[TopicPartition, ...] | None, is_polled: bool
    ) -> None:
        nonlocal epoch
        member.look()
        if member.open and code is None:
            ask = member.open.pop(0)
            ask.on_failure(KafkaError(ErrorCode.NETWORK_EXCEPTION), member.now_s)
        elif member.open and code is not None:
            epoch += 1
            member.told(epoch, None if target is None else entries(*target), code)
        if is_polled:
            member.membership.take_failure()
            member.membership.polled(member.now_s)
            event = member.membership.event
            if event is not None:
                owned = set(member.membership._ownership.owned)
                if event.kind is ASSIGNED:
                    assert not owned & event.partitions, "what it has is not given to it again"
                else:
                    assert event.partitions <= owned, "only what it has can go"
                member.handle(event.kind, *event.partitions)

    for code, target, pause_s, is_polled in trouble:
        go_on(code, target, is_polled)
        member.wait(pause_s)
    for _ in range(30):
        go_on(ErrorCode.NONE, (A0, B0), True)
        member.wait(2.0)
    assert member.membership.is_stable
    assert member.membership._ownership.owned == {A0, B0}
