import threading

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.failure_policy import FailurePolicy
from headwater.client.consumer.workers.threads import ConsumerThreads
from tests.support.fakes.consumer import TOPIC, FakeConsumer, record
from tests.support.waiting import eventually

PARTITION_0 = TopicPartition(TOPIC, 0)


class Consumers:
    """Makes a consumer of one partition each, and remembers them."""

    def __init__(self, record_count: int, *, commits_automatically: bool = False) -> None:
        self.record_count = record_count
        self.commits_automatically = commits_automatically
        self.made: list[FakeConsumer] = []
        self.lock = threading.Lock()

    def __call__(self) -> FakeConsumer:
        with self.lock:
            number = len(self.made)
            consumer = FakeConsumer(
                {number: [record(number, offset) for offset in range(self.record_count)]},
                commits_automatically=self.commits_automatically,
            )
            self.made.append(consumer)
            return consumer

    @property
    def commits(self) -> dict[TopicPartition, int]:
        return {key: value for one in self.made for key, value in one.commits.items()}


@pytest.mark.parametrize("commits_automatically", [False, True])
def test_every_thread_has_a_consumer_and_keeps_order(commits_automatically: bool) -> None:
    make = Consumers(100, commits_automatically=commits_automatically)
    threads_of: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    offsets_of: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def handle(one: ConsumerRecord) -> None:
        threads_of[one.partition].add(threading.current_thread().name)
        offsets_of[one.partition].append(one.offset)

    with ConsumerThreads(make, handle, 3):
        eventually(lambda: sum(map(len, offsets_of.values())) == 300)
    assert all(offsets == list(range(100)) for offsets in offsets_of.values())
    assert len(set.union(*threads_of.values())) == 3
    assert set(make.commits.values()) == {100}
    assert all(consumer.is_closed for consumer in make.made)


@pytest.mark.parametrize("commits_automatically", [False, True])
def test_a_failure_ends_all_threads_and_commits_only_what_is_done(
    commits_automatically: bool,
) -> None:
    make = Consumers(100, commits_automatically=commits_automatically)

    def handle(one: ConsumerRecord) -> None:
        if one.partition == 0 and one.offset == 40:
            raise RuntimeError("no")

    threads = ConsumerThreads(make, handle, 2)
    threads.start()
    with pytest.raises(RuntimeError, match="no"):
        threads.join(20)
    assert make.commits[PARTITION_0] == 40
    assert all(consumer.is_closed for consumer in make.made)


def test_stopping_ends_after_the_record_that_is_being_handled() -> None:
    make = Consumers(100, commits_automatically=True)
    begun, gate = threading.Event(), threading.Event()

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 10:
            begun.set()
            assert gate.wait(20)

    threads = ConsumerThreads(make, handle, 1)
    threads.start()
    assert begun.wait(20)
    threads.stop()
    assert not threads.join(0.01)
    gate.set()
    assert threads.join(20)
    assert make.commits == {PARTITION_0: 11}


def test_a_failed_thread_can_begin_anew() -> None:
    make = Consumers(3)
    calls: list[int] = []

    def handle(one: ConsumerRecord) -> None:
        calls.append(one.partition)
        if one.partition == 0:
            raise RuntimeError("no")

    threads = ConsumerThreads(make, handle, 1, restart_backoff_s=0.01)
    with threads:
        eventually(lambda: make.commits == {TopicPartition(TOPIC, 1): 3})
    assert calls == [0, 1, 1, 1]
    assert make.made[0].is_closed


def test_a_consumer_that_cannot_be_made_is_told() -> None:
    def make() -> FakeConsumer:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "no such setting")

    threads = ConsumerThreads(make, print, 2)
    threads.start()
    with pytest.raises(KafkaError, match="no such setting"):
        threads.join(20)


def test_stopping_interrupts_a_retry() -> None:
    make = Consumers(5)
    failed = threading.Event()

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 2:
            failed.set()
            raise RuntimeError("always")

    with ConsumerThreads(make, handle, 1, policy=FailurePolicy.retry(backoff_s=1000)):
        assert failed.wait(20)
    assert make.commits == {PARTITION_0: 2}


def test_there_is_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ConsumerThreads(Consumers(0), print, 0)
