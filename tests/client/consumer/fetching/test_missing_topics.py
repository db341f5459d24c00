"""A consumer that is to read what the cluster does not have warns once, and later again."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from typing import Literal

import pytest

from headwater import AsyncConsumer, Consumer, TopicPartition
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.metadata_upkeep import MetadataUpkeep
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.fetching.missing_topics import AGAIN_S, CREATION_S, MissingTopics
from headwater.client.consumer.fetching.subscription_state import SubscriptionState
from headwater.testing.running_broker import RunningBroker
from headwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.async_tests import run_async
from tests.support.other_clients.users import wait_for

UNKNOWN = 3
POLLS_MAX = 300


def poll_until_told(consumer: Consumer, caplog: pytest.LogCaptureFixture, text: str) -> None:
    wait_for(lambda: consumer.poll(0.1) is not None and text in caplog.text, f"it says: {text}")


class Watch:
    """What a consumer would hear, with metadata and time made up."""

    def __init__(
        self, caplog: pytest.LogCaptureFixture, *, may_create: bool = False, internal: bool = False
    ) -> None:
        self.subscription = SubscriptionState()
        self._metadata = ClusterMetadata()
        self._upkeep = MetadataUpkeep(
            self._metadata,
            max_age_s=300,
            policy=RetryPolicy(),
            generator=random.Random(1),
            allow_auto_creation=may_create,
        )
        self._missing = MissingTopics(
            self.subscription,
            self._metadata,
            self._upkeep,
            may_create=may_create,
            excludes_internal=not internal,
        )
        self._caplog = caplog

    def learn(self, *topics: str, missing: str = "", is_all: bool = False) -> None:
        listed = [
            MetadataResponseTopic(
                name=name,
                is_internal=name.startswith("__"),
                partitions=[MetadataResponsePartition(partition_index=0)],
            )
            for name in topics
        ]
        if missing:
            listed.append(MetadataResponseTopic(name=missing, error_code=UNKNOWN))
        names = None if is_all else [*topics, *([missing] if missing else [])]
        self._upkeep._answered(names, MetadataResponse(topics=listed), 0.0)

    def heard(self, now_s: float) -> list[str]:
        self._caplog.clear()
        self._missing.look(now_s)
        assert all(record.levelno == logging.WARNING for record in self._caplog.records)
        return [record.getMessage() for record in self._caplog.records]


def test_a_topic_is_told_once_and_after_a_while_again(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(caplog)
    watch.subscription.subscribe(["orders", "orderz"], None)
    assert watch.heard(0) == []  # Nobody has been asked yet.
    watch.learn("orders", missing="orderz")
    [line] = watch.heard(1)
    assert line == (
        "There is no topic 'orderz', to which a consumer has subscribed: nothing is read from it "
        "until it is created. Check the name."
    )
    assert watch.heard(2) == watch.heard(AGAIN_S) == []
    assert watch.heard(1 + AGAIN_S) == [line]
    assert watch.heard(2 + AGAIN_S) == []
    # It comes, and goes.
    watch.learn("orders", "orderz")
    assert watch.heard(3 + AGAIN_S) == []
    watch.learn("orders", missing="orderz")
    assert watch.heard(4 + AGAIN_S) == [line]


def test_a_cluster_may_be_creating_it(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(caplog, may_create=True)
    watch.subscription.subscribe(["soon"], None)
    watch.learn(missing="soon")
    assert watch.heard(5) == []
    assert watch.heard(5 + CREATION_S / 2) == []
    assert len(watch.heard(5 + CREATION_S)) == 1


def test_what_is_assigned(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(caplog)
    watch.subscription.assign(
        [TopicPartition("orders", 0), TopicPartition("orders", 7), TopicPartition("orderz", 0)]
    )
    watch.learn("orders", missing="orderz")
    assert watch.heard(0) == [
        "There is no topic 'orderz', to which a consumer is assigned: nothing is read from it "
        "until it is created. Check the name.",
        "Topic 'orders' has no partition 7: it has partition 0 only. A consumer is assigned to it: "
        "nothing is read from it until it is created.",
    ]


def test_a_groups_assignment_is_the_coordinators(caplog: pytest.LogCaptureFixture) -> None:
    """It may know of a partition before this member's metadata do."""
    watch = Watch(caplog)
    watch.subscription.subscribe(["orders"], None)
    watch.subscription.add([TopicPartition("orders", 7)])
    watch.learn("orders")
    assert watch.heard(0) == []


def test_a_pattern(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(caplog)
    watch.subscription.subscribe(None, "order.*|__.*")
    watch.learn("bills")
    assert watch.heard(0) == []  # That was not the answer about all topics.
    watch.learn("bills", "__consumer_offsets", is_all=True)
    assert watch.heard(1) == [
        "No topic matches the pattern 'order.*|__.*', to which a consumer has subscribed: nothing "
        "is read until one is created that does. Check the pattern."
    ]
    watch.learn("bills", "orders", is_all=True)
    assert watch.heard(2) == []


def test_a_pattern_for_internal_topics(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(caplog, internal=True)
    watch.subscription.subscribe(None, "__.*")
    watch.learn("__consumer_offsets", is_all=True)
    assert watch.heard(0) == []


# -- on a broker ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(settings={"auto.create.topics.enable": "false"}) as running:
        running.create_topic("there", partitions=2)
        yield running


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_protocols(
    broker: RunningBroker,
    protocol: Literal["classic", "consumer"],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        group_id=f"group-{protocol}",
        group_protocol=protocol,
        allow_auto_create_topics=False,
    ) as consumer:
        consumer.subscribe(["missing", "there"])
        wait_for(
            lambda: consumer.poll(0.1) is not None and len(consumer.assignment()) == 2, "it reads"
        )
        assert caplog.text.count("There is no topic 'missing'") == 1
        consumer.unsubscribe()
        consumer.subscribe(pattern="nothing-.*")
        poll_until_told(consumer, caplog, "No topic matches the pattern 'nothing-.*'")


@run_async
async def test_with_asyncio(broker: RunningBroker, caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncConsumer(
        bootstrap_servers=broker.bootstrap, allow_auto_create_topics=False
    ) as consumer:
        consumer.assign([TopicPartition("missing", 0), TopicPartition("there", 2)])
        for _ in range(POLLS_MAX):
            await consumer.poll(0.1)
            if "There is no topic" in caplog.text and "has no partition" in caplog.text:
                break
        assert "There is no topic 'missing'" in caplog.text
        assert "Topic 'there' has no partition 2" in caplog.text


def test_a_topic_that_comes_later_is_read(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("later", 0)])
        poll_until_told(consumer, caplog, "There is no topic 'later'")
        broker.create_topic("later")
        assert consumer.position(TopicPartition("later", 0)) == 0
