"""What the members of a group rely on, on Headwater and on Apache Kafka, in both protocols."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from headwater import Admin, Consumer, KafkaError, OffsetAndMetadata, Producer, TopicPartition
from headwater.client.consumer.listeners import RebalanceListener
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import (
    Poller,
    create_topic,
    numbers,
    partitions_of,
    shared_among,
    take,
    values_of,
    wait_for,
)

PROTOCOLS = ["classic", "consumer"]

Join = Callable[..., Poller]


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def group(cluster: Cluster) -> str:
    return cluster.new_name("group")


@pytest.fixture
def make(cluster: Cluster, protocol: str, group: str) -> Iterator[Callable[..., Consumer]]:
    """`make(**settings)`: a member of the test's group, which does nothing yet."""
    made: list[Consumer] = []

    def new(**settings: object) -> Consumer:
        defaults: dict[str, object] = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "metadata.max.age.ms": 1_000,
        }
        if protocol == "classic":
            defaults["heartbeat.interval.ms"] = 300
        given = {name.replace("_", "."): value for name, value in settings.items()}
        made.append(Consumer(defaults | given))
        return made[-1]

    yield new
    for consumer in made:
        consumer.close()


@pytest.fixture
def join(make: Callable[..., Consumer]) -> Iterator[Join]:
    """`join(topics, listener, **settings)`: a member that is polled all the time."""
    members: list[Poller] = []

    def start(
        topics: list[str], listener: RebalanceListener | None = None, **settings: object
    ) -> Poller:
        consumer = make(**settings)
        consumer.subscribe(topics, listener=listener)
        members.append(Poller(consumer))
        return members[-1]

    yield start
    for member in members:
        member.close()


def fill(cluster: Cluster, topic: str, partition_count: int, start: int, stop: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(start, stop):
            producer.send(topic, b"%d" % number, partition=number % partition_count)


def seen(*members: Poller) -> list[int]:
    return sorted(int(record.value or b"") for member in members for record in member.records)


def test_members_come_and_go(cluster: Cluster, join: Join) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 4)
    partitions = partitions_of(topic, 4)
    first = join([topic])
    wait_for(lambda: shared_among([first], partitions), "the first has all")
    second = join([topic])
    wait_for(lambda: shared_among([first, second], partitions), "two share")
    third = join([topic])
    wait_for(lambda: shared_among([first, second, third], partitions), "three share")
    fill(cluster, topic, 4, 0, 40)
    wait_for(lambda: len(seen(first, second, third)) >= 40, "all records have come")
    first.close()
    wait_for(lambda: shared_among([second, third], partitions), "two are left")
    fill(cluster, topic, 4, 40, 80)
    wait_for(lambda: len(seen(first, second, third)) >= 80, "the rest has come")
    assert seen(first, second, third) == list(range(80))
    third.close()
    wait_for(lambda: shared_among([second], partitions), "one is left")


def test_a_group_goes_on_where_it_stopped(cluster: Cluster, make: Callable[..., Consumer]) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    fill(cluster, topic, 1, 0, 20)
    first = make(enable_auto_commit=False)
    first.subscribe([topic])
    assert values_of(take(first, 20)) == numbers(0, 20)
    assert first.committed([partition]) == {partition: None}
    first.commit({partition: OffsetAndMetadata(10, metadata="half")})
    found = first.committed([partition])[partition]
    assert found is not None
    assert (found.offset, found.metadata) == (10, "half")
    first.close()
    second = make(enable_auto_commit=False)
    second.subscribe([topic])
    assert values_of(take(second, 10)) == numbers(10, 20)
    # Without arguments it is the position: one more than the last record's offset.
    second.commit()
    after = second.committed([partition])[partition]
    assert after is not None
    assert after.offset == 20
    done: list[tuple[object, KafkaError | None]] = []
    second.commit_async(
        {partition: 5}, callback=lambda offsets, error: done.append((offsets, error))
    )
    wait_for(lambda: bool(second.poll(0.05) or done), "the commit is answered")
    [(_, error)] = done
    assert error is None
    second.close()
    third = make()
    third.subscribe([topic])
    assert values_of(take(third, 15)) == numbers(5, 20)


def test_what_is_committed_without_being_asked(
    cluster: Cluster, make: Callable[..., Consumer]
) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    fill(cluster, topic, 1, 0, 30)
    consumer = make(auto_commit_interval_ms=200)
    consumer.subscribe([topic])
    take(consumer, 30)

    def committed() -> int | None:
        consumer.poll(0.05)
        found = consumer.committed([partition])[partition]
        return None if found is None else found.offset

    wait_for(lambda: committed() == 30, "the interval is over")
    fill(cluster, topic, 1, 30, 40)
    take(consumer, 10)
    # The rest is committed when it leaves.
    consumer.close()
    successor = make()
    successor.subscribe([topic])
    assert successor.poll(2.0) == []
    wait_for(lambda: bool(successor.poll(0.1) or successor.assignment()), "it has joined")
    assert successor.position(partition) == 40


def test_a_listener_hears_before_partitions_go(cluster: Cluster, join: Join) -> None:
    """What it commits when it is told is where the next owner starts."""
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    fill(cluster, topic, 2, 0, 20)
    events: list[tuple[str, frozenset[TopicPartition]]] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(
            self, consumer: Consumer, partitions: frozenset[TopicPartition]
        ) -> None:
            consumer.commit()
            events.append(("revoked", frozenset(partitions)))

        def on_partitions_assigned(
            self, consumer: Consumer, partitions: frozenset[TopicPartition]
        ) -> None:
            events.append(("assigned", frozenset(partitions)))

    first = join([topic], Listener(), enable_auto_commit=False)
    wait_for(lambda: len(first.records) == 20, "all records have come")
    assert events[0] == ("assigned", frozenset(partitions_of(topic, 2)))
    second = join([topic], enable_auto_commit=False)
    wait_for(lambda: shared_among([first, second], partitions_of(topic, 2)), "two share")
    revoked = frozenset().union(*(some for kind, some in events if kind == "revoked"))
    assert revoked >= second.owned
    fill(cluster, topic, 2, 20, 40)
    wait_for(lambda: len(seen(first, second)) >= 40, "the rest has come")
    assert seen(first, second) == list(range(40))


def test_slow_user_code_keeps_its_place(
    cluster: Cluster, make: Callable[..., Consumer], protocol: str
) -> None:
    """Heartbeats go on while nobody polls, for longer than the two seconds of a session."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    fill(cluster, topic, 1, 0, 2)
    settings: dict[str, object] = {"max_poll_interval_ms": 60_000}
    if protocol == "classic":
        settings["session_timeout_ms"] = 2_000
    consumer = make(enable_auto_commit=False, **settings)
    consumer.subscribe([topic])
    take(consumer, 2)
    time.sleep(3.0)
    consumer.commit()
    assert set(consumer.assignment()) == {TopicPartition(topic, 0)}


def test_who_does_not_poll_is_out(cluster: Cluster, make: Callable[..., Consumer]) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    partition = TopicPartition(topic, 0)
    fill(cluster, topic, 1, 0, 10)
    slow = make(enable_auto_commit=False, max_poll_interval_ms=1_500)
    slow.subscribe([topic])
    take(slow, 10)
    other = make()
    other.subscribe([topic])
    wait_for(lambda: bool(other.poll(0.1)) or bool(other.assignment()), "another has taken over")
    assert set(other.assignment()) == {partition}
    with pytest.raises(KafkaError) as refused:
        slow.commit({partition: 10})
    assert refused.type.__name__ in ("CommitFailedError", "UnknownMemberIdError")
    # The next poll lets it in again.
    other.close()
    wait_for(lambda: len(slow.poll(0.1)) > 0 or bool(slow.assignment()), "it is back")


def test_static_members_come_back_unnoticed(cluster: Cluster, join: Join, protocol: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    partitions = partitions_of(topic, 2)
    events: list[str] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(
            self, consumer: Consumer, partitions: frozenset[TopicPartition]
        ) -> None:
            events.append("revoked")

    steady = join([topic], Listener(), group_instance_id="steady")
    restarted = join([topic], group_instance_id="restarted")
    wait_for(lambda: shared_among([steady, restarted], partitions), "two share")
    had = restarted.owned
    events.clear()
    restarted.close()
    again = join([topic], group_instance_id="restarted")
    wait_for(lambda: shared_among([steady, again], partitions), "two share again")
    assert again.owned == had
    assert events == []


def test_cooperative_members_keep_what_stays_theirs(cluster: Cluster, group: str) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 6)
    partitions = partitions_of(topic, 6)
    taken: list[TopicPartition] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(
            self, consumer: Consumer, partitions: frozenset[TopicPartition]
        ) -> None:
            taken.extend(partitions)

    def member(listener: RebalanceListener | None = None) -> Poller:
        consumer = Consumer(
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            heartbeat_interval_ms=300,
            partition_assignment_strategy="cooperative-sticky",
        )
        consumer.subscribe([topic], listener=listener)
        return Poller(consumer)

    first = member(Listener())
    wait_for(lambda: shared_among([first], partitions), "the first has all")
    second = member()
    try:
        wait_for(lambda: shared_among([first, second], partitions), "two share")
        assert set(taken) == second.owned
        assert len(taken) == 3
    finally:
        first.close()
        second.close()


def test_new_partitions_are_found(cluster: Cluster, join: Join) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name(), 1)
    member = join([topic])
    wait_for(lambda: shared_among([member], partitions_of(topic, 1)), "it has the first")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_partitions({topic: 3})
    wait_for(lambda: shared_among([member], partitions_of(topic, 3)), "it has all three")
    fill(cluster, topic, 3, 0, 9)
    wait_for(lambda: len(member.records) == 9, "records of all have come")


def test_a_pattern_finds_topics_that_come_later(
    cluster: Cluster, make: Callable[..., Consumer]
) -> None:
    stem = cluster.new_name("pattern")
    create_topic(cluster.bootstrap, f"{stem}-a")
    consumer = make()
    consumer.subscribe(pattern=f"{stem}-.*")
    wait_for(lambda: bool(consumer.poll(0.05) or consumer.assignment()), "it has joined")
    create_topic(cluster.bootstrap, f"{stem}-b")
    expected = {TopicPartition(f"{stem}-{name}", 0) for name in "ab"}
    wait_for(
        lambda: bool(consumer.poll(0.05)) or set(consumer.assignment()) == expected,
        "it has the new topic",
    )


def test_leaving_a_subscription(cluster: Cluster, make: Callable[..., Consumer]) -> None:
    [one, other] = [create_topic(cluster.bootstrap, cluster.new_name()) for _ in range(2)]
    consumer = make()
    consumer.subscribe([one])
    wait_for(lambda: bool(consumer.poll(0.05) or consumer.assignment()), "it has joined")
    assert set(consumer.subscription()) == {one}
    consumer.subscribe([other])
    wait_for(
        lambda: (
            bool(consumer.poll(0.05)) or set(consumer.assignment()) == {TopicPartition(other, 0)}
        ),
        "it has the other",
    )
    consumer.unsubscribe()
    assert set(consumer.assignment()) == set()
    assert set(consumer.subscription()) == set()
