"""`Consumer` as a member of a group: commits, rebalances, listeners, coming back."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.consumer import Consumer
from headwater.client.consumer.errors import SubscriptionError
from headwater.client.consumer.listeners import ConsumerInterceptor, RebalanceListener
from tests.support.brokers.clusters import Cluster
from tests.support.values.filled_topics import fill, new_topic, numbers, poll_until, read

PROTOCOLS = ["classic", "consumer"]


def member(cluster: Cluster, group_id: str, **settings: Any) -> Consumer:
    return Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": group_id},
        **{"auto_offset_reset": "earliest"} | settings,
    )


class Recorder(RebalanceListener):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, frozenset[int]]] = []

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self.told.append(("revoked", frozenset(tp.partition for tp in partitions)))

    def on_partitions_assigned(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self.told.append(("assigned", frozenset(tp.partition for tp in partitions)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_comes_back_goes_on_where_it_stopped(cluster: Cluster, protocol: str) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 20)
    listener = Recorder()
    with member(cluster, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic], listener=listener)
        assert numbers(consumer.poll(20.0, max_records=7)) == list(range(7))
        assert {tp.partition for tp in consumer.assignment()} == {0, 1}
        identity = consumer.group_identity()
        assert identity.group_id == topic
        assert identity.generation_id > 0 and identity.member_id
        assert consumer.metrics()["assigned-partitions"] == 2
    assert ("assigned", frozenset({0, 1})) in listener.told
    assert listener.told[-1] == ("revoked", frozenset({0, 1}))
    with member(cluster, topic, group_protocol=protocol) as consumer:
        consumer.subscribe([topic])
        assert numbers(read(consumer, 13)) == list(range(7, 20))


def test_automatic_commits_are_of_what_the_poll_before_returned(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 10)
    partition = TopicPartition(topic, 0)
    with member(cluster, topic, auto_commit_interval_ms=0) as consumer:
        consumer.subscribe([topic])
        assert len(consumer.poll(20.0, max_records=4)) == 4
        committed = consumer.committed([partition])[partition]
        assert committed is None or committed.offset == 0
        assert len(consumer.poll(20.0, max_records=1)) == 1
        poll_until(
            consumer,
            lambda: (consumer.committed([partition])[partition] or (0,))[0] >= 4,
        )


def test_commits_by_hand(cluster: Cluster) -> None:
    topic = new_topic(cluster, 2)
    fill(cluster, topic, 10)
    fill(cluster, topic, 10, partition=1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    heard: list[tuple[Any, Any]] = []

    class Watching(ConsumerInterceptor):
        def on_commit(self, offsets: Any) -> None:
            heard.append(("interceptor", dict(offsets)))

    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=topic,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        interceptors=[Watching()],
    ) as consumer:
        assert not consumer.commits_automatically
        consumer.subscribe([topic])
        read(consumer, 20)
        assert consumer.committed([first, second]) == {first: None, second: None}
        consumer.commit({first: 4, second: OffsetAndMetadata(5, "half")})
        assert [
            offset and offset[:2] for offset in consumer.committed([first, second]).values()
        ] == [
            (4, ""),
            (5, "half"),
        ]
        assert heard.pop()[0] == "interceptor"
        consumer.commit_async({first: 6}, lambda offsets, error: heard.append((offsets, error)))
        poll_until(consumer, lambda: len(heard) == 2)
        assert ({first: OffsetAndMetadata(6)}, None) in heard
        consumer.commit()
        found = consumer.committed([first, second])
        assert {tp: offset and offset.offset for tp, offset in found.items()} == {
            first: 10,
            second: 10,
        }
    with member(cluster, topic) as consumer:
        consumer.assign([first])
        assert consumer.position(first) == 10


def test_a_commit_in_the_middle_of_an_iteration_is_of_the_record_at_hand(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 30)
    partition = TopicPartition(topic, 0)
    with member(cluster, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            if record.offset == 11:
                consumer.commit()
                break
        committed = consumer.committed([partition])[partition]
        assert committed is not None and committed.offset == 12
    with member(cluster, topic) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            assert record.offset >= 12
            if record.offset == 20:
                break
    with member(cluster, topic) as consumer:
        assert (consumer.committed([partition])[partition] or (0,))[0] == 21


def test_assigned_partitions_with_a_group_are_committed_too(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 10)
    partition = TopicPartition(topic, 0)
    for expected in ([0, 1, 2], [3, 4, 5]):
        with member(cluster, topic) as consumer:
            consumer.assign([partition])
            assert numbers(consumer.poll(20.0, max_records=3)) == expected


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"partition_assignment_strategy": "range", "heartbeat_interval_ms": 200}, id="eager"
        ),
        pytest.param(
            {
                "partition_assignment_strategy": ["cooperative-sticky"],
                "heartbeat_interval_ms": 200,
            },
            id="cooperative",
        ),
        # Here the broker says how often, and by default that is every five seconds.
        pytest.param({"group_protocol": "consumer"}, marks=pytest.mark.full, id="consumer"),
    ],
)
def test_two_members_share_and_lose_nothing(cluster: Cluster, settings: dict[str, Any]) -> None:
    topic = new_topic(cluster, 4)
    for number in range(4):
        fill(cluster, topic, 50, partition=number, start=50 * number)
    listener = Recorder()
    seen: list[int] = []
    with member(cluster, topic, **settings) as first:
        first.subscribe([topic], listener=listener)
        seen += numbers(read(first, 200))
        stop = threading.Event()
        other: list[int] = []
        parts: list[int] = []

        def be_second() -> None:
            with member(cluster, topic, **settings) as second:
                second.subscribe([topic])
                while not stop.is_set():
                    other.extend(numbers(second.poll(0.1)))
                    parts[:] = [tp.partition for tp in second.assignment()]

        thread = threading.Thread(target=be_second)
        thread.start()
        try:
            poll_until(first, lambda: len(parts) == 2 and len(first.assignment()) == 2)
            assert {tp.partition for tp in first.assignment()} | set(parts) == {0, 1, 2, 3}
            for number in range(4):
                fill(cluster, topic, 5, partition=number, start=1000 + 5 * number)
            seen += numbers(poll_until(first, lambda: len(other) >= 10))
        finally:
            stop.set()
            thread.join()
        seen += numbers(poll_until(first, lambda: len(first.assignment()) == 4))
        seen += other
        for _ in range(3):
            seen += numbers(first.poll(0.2))
    assert sorted(seen) == [*range(200), *range(1000, 1020)]
    assert any(kind == "revoked" for kind, _ in listener.told)


def test_a_listener_may_seek_and_commit(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 10)
    partition = TopicPartition(topic, 0)

    class Seeking(RebalanceListener):
        def on_partitions_assigned(self, consumer: Consumer, partitions: Any) -> None:
            for assigned in partitions:
                consumer.seek(assigned, 6)

        def on_partitions_revoked(self, consumer: Consumer, partitions: Any) -> None:
            consumer.commit({partition: 2})

    with member(cluster, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Seeking())
        assert numbers(read(consumer, 4)) == [6, 7, 8, 9]
    with member(cluster, topic) as consumer:
        assert (consumer.committed([partition])[partition] or (0,))[0] == 2


def test_a_listener_that_fails_fails_the_poll_and_not_the_group(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    fill(cluster, topic, 3)

    class Failing(RebalanceListener):
        def on_partitions_assigned(self, consumer: Consumer, partitions: Any) -> None:
            raise RuntimeError("a user's mistake")

    with member(cluster, topic) as consumer:
        consumer.subscribe([topic], listener=Failing())
        with pytest.raises(RuntimeError, match="mistake"):
            read(consumer, 3)
        assert numbers(read(consumer, 3)) == [0, 1, 2]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_finds_topics(cluster: Cluster, protocol: str) -> None:
    first, second = new_topic(cluster), new_topic(cluster)
    fill(cluster, first, 2)
    fill(cluster, second, 2, start=2)
    with member(cluster, first, group_protocol=protocol) as consumer:
        consumer.subscribe(pattern=f"{first}|{second}")
        assert sorted(numbers(read(consumer, 4))) == [0, 1, 2, 3]
        assert {tp.topic for tp in consumer.assignment()} == {first, second}


def test_a_pattern_finds_topics_that_come_later(cluster: Cluster) -> None:
    first = new_topic(cluster)
    later = f"{first}-later"
    with member(cluster, first, metadata_max_age_ms=300) as consumer:
        consumer.subscribe(pattern=f"{first}.*")
        poll_until(consumer, lambda: bool(consumer.assignment()))
        fill(cluster, later, 3, start=7)
        assert numbers(read(consumer, 3)) == [7, 8, 9]
        assert {tp.topic for tp in consumer.assignment()} == {first, later}


def test_unsubscribing_leaves_and_subscribing_joins_again(cluster: Cluster) -> None:
    first, second = new_topic(cluster), new_topic(cluster)
    fill(cluster, first, 2)
    fill(cluster, second, 2, start=5)
    with member(cluster, first) as consumer:
        consumer.subscribe([first])
        assert numbers(read(consumer, 2)) == [0, 1]
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        with pytest.raises(SubscriptionError):
            consumer.poll(0.1)
        consumer.subscribe(second)
        assert numbers(read(consumer, 2)) == [5, 6]
        consumer.subscribe([first, second])
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)


def test_a_wrong_group_is_told(cluster: Cluster) -> None:
    topic = new_topic(cluster)
    with member(cluster, topic) as first:
        first.subscribe([topic])
        poll_until(first, lambda: bool(first.assignment()))
        with member(cluster, topic, partition_assignment_strategy="roundrobin") as second:
            second.subscribe([topic])
            with pytest.raises(KafkaError) as caught:
                for _ in range(40):
                    second.poll(0.5)
                    first.poll(0.0)
            assert caught.value.code.name == "INCONSISTENT_GROUP_PROTOCOL"
