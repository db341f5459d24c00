"""How a consumer processes a message twice, and what to do about it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater import Consumer, Producer, RebalanceListener, TopicPartition
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import (
    Poller,
    create_topic,
    numbers,
    partitions_of,
    read_all,
    shared_among,
    take,
    values_of,
    wait_for,
)

_COUNT = 10

Make = Callable[..., Consumer]


def _fill(cluster: Cluster, topic: str, start: int, stop: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(start, stop):
            producer.send(topic, b"%d" % number, partition=number % 2)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Two partitions with messages in them."""
    name = create_topic(cluster.bootstrap, cluster.new_name(), 2)
    _fill(cluster, name, 0, _COUNT)
    return name


@pytest.fixture
def make(cluster: Cluster) -> Iterator[Make]:
    """`make(**settings)`: another consumer of the story's group."""
    group = cluster.new_name("group")
    made: list[Consumer] = []

    def new(**settings: object) -> Consumer:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        consumer = Consumer(
            {"auto.offset.reset": "earliest", "heartbeat.interval.ms": 300, **config},
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
        )
        made.append(consumer)
        return consumer

    yield new
    for consumer in made:
        consumer.close()


def _numbers(*pollers: Poller) -> list[int]:
    return sorted(int(record.value) for poller in pollers for record in poller.records)


# -- processed, and not yet committed ------------------------------------------------------------


def test_a_crash_between_processing_and_committing_doubles(topic: str, make: Make) -> None:
    first = make(enable_auto_commit=False)
    first.assign(partitions_of(topic, 2))
    processed = values_of(take(first, _COUNT))
    # It crashes here: all is processed and nothing is committed.
    second = make(enable_auto_commit=False)
    second.assign(partitions_of(topic, 2))
    processed += values_of(take(second, _COUNT))
    assert sorted(processed, key=lambda value: int(value or b"")) == sorted(
        numbers(0, _COUNT) * 2, key=int
    )


def test_processing_that_notices_what_it_has_done_does_not_mind(topic: str, make: Make) -> None:
    effects: dict[tuple[str, int, int], bytes] = {}
    for _ in range(2):
        consumer = make(enable_auto_commit=False)
        consumer.assign(partitions_of(topic, 2))
        for record in take(consumer, _COUNT):
            # A message is known by where it lies, which is the same for whoever reads it again.
            effects.setdefault((record.topic, record.partition, record.offset), record.value)
    assert sorted(map(int, effects.values())) == list(range(_COUNT))


def test_offsets_that_are_stored_with_the_results_do_not_depend_on_commits(
    topic: str, make: Make
) -> None:
    rows: list[bytes] = []
    positions = dict.fromkeys(partitions_of(topic, 2), 0)
    for _ in range(2):
        consumer = make(enable_auto_commit=False)
        consumer.assign(list(positions))
        for partition, offset in positions.items():
            consumer.seek(partition, offset)
        for record in take(consumer, _COUNT // 2)[: _COUNT // 2]:
            # One transaction of the database has both, or neither.
            rows.append(record.value)
            positions[record.topic_partition] = record.offset + 1
    while len(rows) < _COUNT:
        for record in consumer.poll(0.1):
            if record.offset >= positions[record.topic_partition]:
                rows.append(record.value)
                positions[record.topic_partition] = record.offset + 1
    assert sorted(map(int, rows)) == list(range(_COUNT))


def test_a_transaction_has_the_results_and_the_offsets_or_neither(
    cluster: Cluster, topic: str, make: Make
) -> None:
    target = create_topic(cluster.bootstrap, cluster.new_name())
    transactional_id = cluster.new_name("copier")
    producers: list[Producer] = []
    for is_crashing in (True, False):
        consumer = make(enable_auto_commit=False, isolation_level="read_committed")
        consumer.assign(partitions_of(topic, 2))
        producer = Producer(bootstrap_servers=cluster.bootstrap, transactional_id=transactional_id)
        producers.append(producer)
        producer.init_transactions()
        producer.begin_transaction()
        offsets: dict[TopicPartition, int] = {}
        for record in take(consumer, _COUNT):
            producer.send(target, record.value)
            offsets[record.topic_partition] = record.offset + 1
        producer.flush(30)
        producer.send_offsets_to_transaction(offsets, consumer.group_identity())
        if not is_crashing:
            producer.commit_transaction()
        # The first one crashes here, and its transaction ends when the second one begins.
    found = values_of(read_all(cluster.bootstrap, target, isolation_level="read_committed"))
    assert sorted(map(int, (value or b"" for value in found))) == list(range(_COUNT))
    committed = consumer.committed(partitions_of(topic, 2))
    assert [None if each is None else each.offset for each in committed.values()] == [5, 5]
    for producer in producers:
        producer.close()


# -- leaving without committing ------------------------------------------------------------------


def test_who_unsubscribes_without_a_commit_reads_again(topic: str, make: Make) -> None:
    careless = make(enable_auto_commit=False)
    careless.subscribe([topic])
    take(careless, _COUNT)
    careless.unsubscribe()
    careless.close()
    second = make(enable_auto_commit=True)
    second.subscribe([topic])
    assert len(take(second, _COUNT)) == _COUNT


@pytest.mark.parametrize("unsubscribes", [False, True], ids=["closes", "unsubscribes first"])
def test_leaving_commits_what_was_consumed(
    cluster: Cluster, topic: str, make: Make, unsubscribes: bool
) -> None:
    # Kafka's own consumer does not commit when it unsubscribes, and then has nothing left to commit
    # when it is closed: the notes' story. Ours commits at the first of the two.
    right = make(enable_auto_commit=True, auto_commit_interval_ms=3_600_000)
    right.subscribe([topic])
    take(right, _COUNT)
    if unsubscribes:
        right.unsubscribe()
    right.close()
    _fill(cluster, topic, _COUNT, _COUNT + 2)
    second = make(enable_auto_commit=True)
    second.subscribe([topic])
    assert sorted(values_of(take(second, 2)), key=lambda value: int(value or b"")) == numbers(
        _COUNT, _COUNT + 2
    )


def test_who_must_unsubscribe_commits_before(cluster: Cluster, topic: str, make: Make) -> None:
    right = make(enable_auto_commit=False)
    right.subscribe([topic])
    take(right, _COUNT)
    right.commit()
    right.unsubscribe()
    right.close()
    _fill(cluster, topic, _COUNT, _COUNT + 2)
    second = make()
    second.subscribe([topic])
    assert len(take(second, 2)) == 2


# -- rebalances ----------------------------------------------------------------------------------


class _CommitOnRevoke(RebalanceListener):
    """Writes down what is done before somebody else goes on with it."""

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        consumer.commit()


def _share_with_another(
    topic: str, make: Make, listener: RebalanceListener | None, **settings: object
) -> tuple[Poller, Poller]:
    """One member processes all there is; then a second one joins, and they share."""
    first_consumer = make(**settings)
    first_consumer.subscribe([topic], listener=listener)
    first = Poller(first_consumer)
    first.wait(lambda poller: len(poller.records) == _COUNT, "the first has processed all")
    second_consumer = make(**settings)
    second_consumer.subscribe([topic], listener=listener)
    second = Poller(second_consumer)
    wait_for(lambda: shared_among([first, second], partitions_of(topic, 2)), "they share")
    return first, second


def test_a_rebalance_gives_processed_messages_to_another_member(topic: str, make: Make) -> None:
    first, second = _share_with_another(topic, make, None, enable_auto_commit=False)
    try:
        second.wait(lambda poller: len(poller.records) >= _COUNT // 2, "it processes them again")
        # It may have begun its own partition anew, too: nothing was committed.
        assert set(_numbers(first)) == set(range(_COUNT))
        assert len(_numbers(first, second)) > _COUNT
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize(
    ("listener", "auto_commit"),
    [(_CommitOnRevoke(), False), (None, True)],
    ids=["listener", "auto"],
)
def test_committing_before_partitions_go_keeps_a_rebalance_from_doubling(
    cluster: Cluster, topic: str, make: Make, listener: RebalanceListener | None, auto_commit: bool
) -> None:
    first, second = _share_with_another(
        topic,
        make,
        listener,
        enable_auto_commit=auto_commit,
        # Only the rebalance makes it commit.
        auto_commit_interval_ms=3_600_000,
    )
    try:
        _fill(cluster, topic, _COUNT, 2 * _COUNT)
        wait_for(lambda: len(_numbers(first, second)) >= 2 * _COUNT, "the rest is processed")
        assert _numbers(first, second) == list(range(2 * _COUNT))
        assert second.records
    finally:
        first.close()
        second.close()
