"""When a client asks for metadata, with a cluster that the test plays."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from headwater.base.errors import ErrorCode
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.errors import BrokerUnreachableError
from headwater.client.machines.ask import Ask
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

MAX_AGE_S = 300.0


def new_upkeep() -> MetadataUpkeep:
    return MetadataUpkeep(
        ClusterMetadata(),
        max_age_s=MAX_AGE_S,
        policy=RetryPolicy(jitter=0.0),
        generator=Random(1),
        allow_auto_creation=False,
    )


def only_ask(upkeep: MetadataUpkeep, now_s: float) -> Ask:
    [ask] = upkeep.asks(now_s)
    assert list(upkeep.asks(now_s)) == []  # One at a time.
    return ask


def names_of(ask: Ask) -> list[str | None] | None:
    assert isinstance(ask.request, MetadataRequest)
    topics = ask.request.topics
    return None if topics is None else [topic.name for topic in topics]


def answer(*known: str, unknown: str | None = None) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(
            name=name, partitions=[MetadataResponsePartition(partition_index=0, leader_id=0)]
        )
        for name in known
    ]
    if unknown is not None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics.append(MetadataResponseTopic(name=unknown, error_code=code))
    return MetadataResponse(topics=topics)


def test_it_asks_at_first_and_when_the_answer_has_grown_old() -> None:
    upkeep = new_upkeep()
    upkeep.add_topics(["orders"])
    first = only_ask(upkeep, 10.0)
    assert names_of(first) == ["orders"]
    assert upkeep.wake_at_s(10.0) is None
    first.on_answer(answer("orders"), 11.0)
    assert list(upkeep.asks(12.0)) == []
    assert upkeep.wake_at_s(12.0) == 11.0 + MAX_AGE_S
    assert names_of(only_ask(upkeep, 11.0 + MAX_AGE_S)) == ["orders"]


def test_who_finds_it_wrong_is_heard_after_a_pause() -> None:
    upkeep = new_upkeep()
    only_ask(upkeep, 0.0).on_answer(answer(), 0.0)
    upkeep.is_stale()
    assert list(upkeep.asks(0.05)) == []
    assert upkeep.wake_at_s(0.05) == 0.1
    assert names_of(only_ask(upkeep, 0.1)) == []


@pytest.mark.parametrize("want", [MetadataUpkeep.add_topics, MetadataUpkeep.set_topics])
def test_who_wants_another_topic_is_heard_at_once(
    want: Callable[[MetadataUpkeep, list[str]], None],
) -> None:
    upkeep = new_upkeep()
    only_ask(upkeep, 0.0).on_answer(answer(), 0.0)
    want(upkeep, ["payments"])
    assert upkeep.wake_at_s(0.01) == 0.0
    under_way = only_ask(upkeep, 0.01)
    assert names_of(under_way) == ["payments"]
    want(upkeep, ["payments", "orders"])
    under_way.on_answer(answer("payments"), 0.02)
    only_ask(upkeep, 0.02).on_answer(answer("payments", unknown="orders"), 0.03)
    # To ask for the same once more has to wait.
    want(upkeep, ["payments", "orders"])
    assert list(upkeep.asks(0.04)) == []


def test_after_a_failure_everybody_waits() -> None:
    upkeep = new_upkeep()
    only_ask(upkeep, 0.0).on_failure(BrokerUnreachableError("gone"), 0.0)
    upkeep.add_topics(["payments"])
    assert list(upkeep.asks(0.05)) == []
    assert names_of(only_ask(upkeep, 0.1)) == ["payments"]


def test_a_topic_that_stays_unknown_is_asked_for_less_and_less_often() -> None:
    upkeep = new_upkeep()
    upkeep.add_topics(["nowhere"])
    now_s, pauses_s = 0.0, []
    for _ in range(6):
        only_ask(upkeep, now_s).on_answer(answer(unknown="nowhere"), now_s)
        upkeep.is_stale()
        due_s = upkeep.wake_at_s(now_s)
        assert due_s is not None
        pauses_s.append(round(due_s - now_s, 3))
        now_s = due_s
    assert pauses_s == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_failure_is_remembered_until_an_answer_comes() -> None:
    upkeep = new_upkeep()
    heard: list[int] = []
    upkeep.on_change(lambda: heard.append(upkeep.version))
    error = BrokerUnreachableError("nobody is there")
    only_ask(upkeep, 0.0).on_failure(error, 1.0)
    assert upkeep.failure is error and heard == []
    assert upkeep.wake_at_s(1.0) == 1.1
    only_ask(upkeep, 1.1).on_answer(answer(), 1.2)
    assert upkeep.failure is None and heard == [1]


def test_all_topics_are_asked_for_where_any_may_matter() -> None:
    upkeep = new_upkeep()
    upkeep.wants_all = True
    assert names_of(only_ask(upkeep, 0.0)) is None
