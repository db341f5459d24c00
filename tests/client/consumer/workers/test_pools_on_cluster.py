"""Both ways of consuming with several threads, on a real cluster."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping

import pytest

from headwater import Admin, Consumer, ConsumerRecord, NewTopic, Producer, TopicPartition
from headwater.client.consumer.workers.pool import WorkerPool
from headwater.client.consumer.workers.threads import ConsumerThreads
from tests.support.brokers.clusters import Cluster
from tests.support.waiting import eventually

PARTITION_COUNT = 4
RECORD_COUNT = 1500
KEYS = [b"key-%d" % number for number in range(25)]


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Numbered records, whose values tell in which order each key's were written."""
    name = cluster.new_name("pools")
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITION_COUNT)])
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(RECORD_COUNT):
            producer.send(name, b"%d" % number, KEYS[number % len(KEYS)])
        producer.flush()
    return name


class Handled:
    """Remembers, from many threads, and fails where it is told to."""

    def __init__(self, is_bad: Callable[[ConsumerRecord], bool] = lambda _: False) -> None:
        self.records: list[ConsumerRecord] = []
        self._is_bad = is_bad
        self._lock = threading.Lock()

    def __call__(self, record: ConsumerRecord) -> None:
        if self._is_bad(record):
            raise RuntimeError("no")
        with self._lock:
            self.records.append(record)

    @property
    def numbers(self) -> set[int]:
        return {int(record.value) for record in self.records}

    def order_by(self, lane: Callable[[ConsumerRecord], object]) -> dict[object, list[int]]:
        orders: dict[object, list[int]] = defaultdict(list)
        for record in self.records:
            orders[lane(record)].append(int(record.value))
        return orders


def make_consumer(
    cluster: Cluster, group: str, settings: Mapping[str, object] | None = None
) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.records": 100,
            **(settings or {}),
        }
    )


def committed(cluster: Cluster, group: str, topic: str) -> dict[TopicPartition, int]:
    partitions = [TopicPartition(topic, number) for number in range(PARTITION_COUNT)]
    with make_consumer(cluster, group) as consumer:
        return {
            partition: 0 if found is None else found.offset
            for partition, found in consumer.committed(partitions).items()
        }


def end_offsets(cluster: Cluster, topic: str) -> dict[TopicPartition, int]:
    partitions = [TopicPartition(topic, number) for number in range(PARTITION_COUNT)]
    with make_consumer(cluster, "unused") as consumer:
        return consumer.end_offsets(partitions)


def run_pool(pool: WorkerPool, is_over: Callable[[], bool]) -> None:
    thread = threading.Thread(target=pool.run, daemon=True)
    thread.start()
    try:
        eventually(is_over)
    finally:
        pool.stop()
        thread.join(20)
    assert not thread.is_alive()


def test_a_pool_keeps_the_order_of_keys_and_commits_all(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    handled = Handled()
    with make_consumer(cluster, group) as consumer:
        pool = WorkerPool(consumer, handled, 6, ordering="key", max_in_flight=100)
        pool.subscribe([topic])
        run_pool(pool, lambda: len(handled.records) == RECORD_COUNT)
    orders = handled.order_by(lambda record: record.key)
    assert set(orders) == set(KEYS)
    assert all(numbers == sorted(numbers) for numbers in orders.values())
    assert committed(cluster, group, topic) == end_offsets(cluster, topic)


def test_a_failing_handler_loses_nothing(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    first = Handled(is_bad=lambda record: int(record.value) == 700)
    with make_consumer(cluster, group) as consumer:
        pool = WorkerPool(
            consumer, first, 6, ordering="none", max_in_flight=200, commit_interval_s=0.01
        )
        pool.subscribe([topic])
        with pytest.raises(RuntimeError, match="no"):
            pool.run()
    done = {(record.partition, record.offset) for record in first.records}
    for partition, offset in committed(cluster, group, topic).items():
        assert done >= {(partition.partition, one) for one in range(offset)}
    second = Handled()
    with make_consumer(cluster, group) as consumer:
        pool = WorkerPool(consumer, second, 3)
        pool.subscribe([topic])
        run_pool(pool, lambda: first.numbers | second.numbers == set(range(RECORD_COUNT)))
    assert 700 in second.numbers
    assert committed(cluster, group, topic) == end_offsets(cluster, topic)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_pools_share_a_topic(cluster: Cluster, topic: str, strategy: str) -> None:
    group = cluster.new_name("group")
    everything = Handled()
    gate = threading.Event()

    def slowly(record: ConsumerRecord) -> None:
        # The first member holds back its records, so that the rebalance finds some under way.
        if int(record.value) % 50 == 0:
            gate.wait(0.2)
        everything(record)

    def consumer() -> Consumer:
        return make_consumer(cluster, group, {"partition.assignment.strategy": strategy})

    with consumer() as one, consumer() as other:
        pools = [
            WorkerPool(member, handle, 4, max_in_flight=50, commit_interval_s=0.05)
            for member, handle in ((one, slowly), (other, everything))
        ]
        for pool in pools:
            pool.subscribe([topic])
        threads = [threading.Thread(target=pool.run, daemon=True) for pool in pools]
        threads[0].start()
        eventually(lambda: len(everything.records) > 20)
        threads[1].start()
        eventually(lambda: len(other.assignment()) == PARTITION_COUNT // 2)
        gate.set()
        eventually(lambda: everything.numbers == set(range(RECORD_COUNT)))
        for pool in pools:
            pool.stop()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
    assert committed(cluster, group, topic) == end_offsets(cluster, topic)


@pytest.mark.parametrize("commits_automatically", [True, False])
def test_threads_with_a_consumer_each_share_a_topic(
    cluster: Cluster, topic: str, commits_automatically: bool
) -> None:
    group = cluster.new_name("group")
    handled = Handled()

    def make() -> Consumer:
        consumer = make_consumer(cluster, group, {"enable.auto.commit": commits_automatically})
        consumer.subscribe([topic])
        return consumer

    with ConsumerThreads(make, handled, 2):
        eventually(lambda: handled.numbers == set(range(RECORD_COUNT)))
    assert committed(cluster, group, topic) == end_offsets(cluster, topic)


def test_a_thread_that_failed_goes_on_where_it_was(cluster: Cluster, topic: str) -> None:
    group = cluster.new_name("group")
    failures = iter([True])
    handled = Handled(is_bad=lambda record: int(record.value) == 700 and next(failures, False))

    def make() -> Consumer:
        consumer = make_consumer(cluster, group)
        consumer.subscribe([topic])
        return consumer

    with ConsumerThreads(make, handled, 1, restart_backoff_s=0.01):
        eventually(lambda: handled.numbers == set(range(RECORD_COUNT)))
    # What was handled before the failure was committed, so nothing was handled twice.
    assert len(handled.records) == RECORD_COUNT
    orders = handled.order_by(lambda record: record.partition)
    assert all(numbers == sorted(numbers) for numbers in orders.values())
