"""How a consumer loses messages although the cluster has them all, and what to do about it.

A consumer that "crashes" here is one that nobody polls any more and that does not say goodbye. It
has its partition assigned, so that the next one need not wait until the group has noticed.
"""

from collections.abc import Callable, Iterator

import pytest

from headwater import Consumer, ConsumerRecord, Producer, TopicPartition
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, numbers, take, values_of, wait_for

_COUNT = 20

Start = Callable[..., Consumer]


@pytest.fixture
def partition(cluster: Cluster) -> TopicPartition:
    """A partition with messages in it."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in numbers(0, _COUNT):
            producer.send(topic, value)
    return TopicPartition(topic, 0)


@pytest.fixture
def start(cluster: Cluster, partition: TopicPartition) -> Iterator[Start]:
    """`start(**settings)`: a consumer of the story's group, where the one before left off."""
    group = cluster.new_name("group")
    started: list[Consumer] = []

    def new(**settings: object) -> Consumer:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        consumer = Consumer(
            {"auto.offset.reset": "earliest", "max.poll.records": 5, **config},
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
        )
        consumer.assign([partition])
        started.append(consumer)
        return consumer

    yield new
    for consumer in started:
        consumer.close()


def _committed(consumer: Consumer, partition: TopicPartition) -> int:
    found = consumer.committed([partition])[partition]
    return 0 if found is None else found.offset


# -- committed before it was processed -----------------------------------------------------------


def test_auto_commit_passes_messages_that_are_still_in_memory(
    start: Start, partition: TopicPartition
) -> None:
    careless = start(enable_auto_commit=True, auto_commit_interval_ms=1)
    in_memory: list[ConsumerRecord] = []

    def poll() -> bool:
        # Another thread will process them some day; the next poll commits them all the same.
        in_memory.extend(careless.poll(0.05))
        return _committed(careless, partition) > 0

    wait_for(poll, "the consumer commits by itself")
    # It crashes here, before any of them is processed.
    lost = _committed(careless, partition)
    rest = take(start(enable_auto_commit=False), _COUNT - lost)
    assert lost >= 5
    assert values_of(rest) == numbers(lost, _COUNT)
    assert values_of(in_memory)[:lost] == numbers(0, lost)


def test_committing_what_is_processed_loses_nothing(
    start: Start, partition: TopicPartition
) -> None:
    right = start(enable_auto_commit=False)
    in_memory = take(right, 10)
    processed = in_memory[:7]
    right.commit({partition: processed[-1].offset + 1})
    # It crashes here, with three of them unprocessed.
    rest = take(start(enable_auto_commit=False), _COUNT - 7)
    assert values_of(processed) + values_of(rest) == numbers(0, _COUNT)


def test_committing_first_loses_what_a_crash_keeps_from_being_processed(
    start: Start, partition: TopicPartition
) -> None:
    careless = start(enable_auto_commit=False)
    records = take(careless, 5)
    careless.commit({partition: records[-1].offset + 1})
    processed = records[:2]
    # It crashes here.
    rest = take(start(enable_auto_commit=False), _COUNT - 5)
    assert values_of(processed) + values_of(rest) == numbers(0, 2) + numbers(5, _COUNT)


# -- processing that fails -----------------------------------------------------------------------


class _Database:
    """Refuses one message the first time."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self._refused = False

    def insert(self, value: bytes) -> None:
        if value == b"7" and not self._refused:
            self._refused = True
            raise OSError("The database is away for a moment.")
        self.rows.append(value)


def test_auto_commit_passes_a_message_whose_processing_failed(
    start: Start, partition: TopicPartition
) -> None:
    careless = start(enable_auto_commit=True, auto_commit_interval_ms=1)
    database = _Database()

    def consume() -> bool:
        for record in careless.poll(0.05):
            try:
                database.insert(record.value)
            except OSError:
                continue
        return _committed(careless, partition) == _COUNT

    wait_for(consume, "all is committed")
    assert database.rows == [value for value in numbers(0, _COUNT) if value != b"7"]


def test_going_back_to_a_message_whose_processing_failed(
    start: Start, partition: TopicPartition
) -> None:
    right = start(enable_auto_commit=False)
    database = _Database()

    def consume() -> bool:
        for record in right.poll(0.05):
            try:
                database.insert(record.value)
            except OSError:
                right.seek(partition, record.offset)
                break
            right.commit({partition: record.offset + 1})
        return _committed(right, partition) == _COUNT

    wait_for(consume, "all is committed")
    assert database.rows == numbers(0, _COUNT)


def test_committing_when_a_batch_is_in_the_database(
    start: Start, partition: TopicPartition
) -> None:
    """The notes' second example: gather a batch, write it, and only then commit."""
    batch_size_min = 8
    rows: list[bytes] = []
    buffer: list[ConsumerRecord] = []
    right = start(enable_auto_commit=False)
    while len(rows) < batch_size_min:
        buffer += right.poll(0.05)
        if len(buffer) >= batch_size_min:
            rows += [record.value for record in buffer]
            right.commit()
            buffer.clear()
    buffer += take(right, 5)
    # It crashes here, with a buffer that is not written.
    committed = _committed(right, partition)
    rest = take(start(enable_auto_commit=False), _COUNT - committed)
    assert rows + values_of(rest) == numbers(0, _COUNT)
