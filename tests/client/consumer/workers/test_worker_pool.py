import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.failure_policy import FailurePolicy
from headwater.client.consumer.workers.lanes import Ordering
from headwater.client.consumer.workers.pool import WorkerPool
from tests.support.fakes.consumer import TOPIC, FakeConsumer, record
from tests.support.waiting import eventually

PARTITION_0 = TopicPartition(TOPIC, 0)
PARTITION_1 = TopicPartition(TOPIC, 1)


class Seen:
    """A handler that remembers, from many threads."""

    def __init__(self) -> None:
        self.records: list[ConsumerRecord] = []
        self.lock = threading.Lock()

    def __call__(self, one: ConsumerRecord) -> None:
        with self.lock:
            self.records.append(one)


@contextmanager
def running(pool: WorkerPool) -> Iterator[list[BaseException]]:
    """The pool on a thread of its own, stopped at the end; what it raised comes into the list."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            pool.run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield raised
    finally:
        pool.stop()
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("ordering", ["partition", "key", "none"])
def test_handles_everything_in_order_and_commits_it(ordering: str) -> None:
    keys = [b"a", b"b", b"c", None]
    logs = {
        number: [record(number, offset, keys[offset % 4]) for offset in range(300)]
        for number in range(3)
    }
    consumer = FakeConsumer(logs)
    seen = Seen()
    pool = WorkerPool(
        consumer, seen, 5, ordering=ordering, max_in_flight=40, commit_interval_s=0.01
    )
    with running(pool) as raised:
        eventually(lambda: len(seen.records) == 900)
    assert not raised
    assert set(consumer.commits.values()) == {300}
    assert consumer.pause_count > 0
    by_lane: dict[object, list[int]] = defaultdict(list)
    for one in seen.records:
        if ordering == "partition":
            by_lane[one.partition].append(one.offset)
        elif ordering == "key" and one.key is not None:
            by_lane[one.partition, one.key].append(one.offset)
    assert all(offsets == sorted(offsets) for offsets in by_lane.values())


def test_nothing_is_committed_behind_a_record_that_is_not_done() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(200)]})
    gate = threading.Event()
    seen = Seen()

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 7:
            assert gate.wait(20)
        seen(one)

    pool = WorkerPool(
        consumer, handle, 3, ordering="none", max_in_flight=50, commit_interval_s=0.01
    )
    with running(pool):
        # The window is full when half of what may be in flight is there, and a poll brings half.
        eventually(lambda: consumer.commits.get(PARTITION_0) == 7 and bool(consumer.paused))
        eventually(lambda: len(seen.records) >= 24)
        assert len(seen.records) <= 50
        assert consumer.commits[PARTITION_0] == 7
        gate.set()
        eventually(lambda: consumer.commits[PARTITION_0] == 200)
    assert sorted(one.offset for one in seen.records) == list(range(200))


def test_a_failing_handler_stops_the_pool_and_loses_nothing() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(50)]})

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 20:
            raise RuntimeError("no")

    pool = WorkerPool(consumer, handle, 4)
    with pytest.raises(RuntimeError, match="no"):
        pool.run()
    assert consumer.commits == {PARTITION_0: 20}


def test_a_handler_is_tried_again() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(5)]})
    seen = Seen()

    def handle(one: ConsumerRecord) -> None:
        seen(one)
        if one.offset == 2 and [r.offset for r in seen.records].count(2) < 4:
            raise RuntimeError("not yet")

    pool = WorkerPool(consumer, handle, 2, policy=FailurePolicy.retry(backoff_s=0.001))
    with running(pool) as raised:
        eventually(lambda: len(seen.records) == 8)
    assert not raised
    assert [one.offset for one in seen.records] == [0, 1, 2, 2, 2, 2, 3, 4]
    assert consumer.commits == {PARTITION_0: 5}


def test_a_record_that_cannot_be_handled_can_be_skipped() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(5)]})
    skipped: list[tuple[int, str, int]] = []
    attempts: list[int] = []

    def handle(one: ConsumerRecord) -> None:
        attempts.append(one.offset)
        if one.offset == 2:
            raise RuntimeError("never")

    policy = FailurePolicy.skip(
        lambda one, error: skipped.append((one.offset, str(error), len(attempts))),
        retry_count_max=2,
        backoff_s=0.001,
    )
    pool = WorkerPool(consumer, handle, 2, policy=policy, commit_interval_s=0.01)
    with running(pool):
        eventually(lambda: consumer.commits == {PARTITION_0: 5})
    assert skipped == [(2, "never", 5)]
    assert attempts == [0, 1, 2, 2, 2, 3, 4]


def test_a_rebalance_waits_for_what_is_being_handled_and_commits_it() -> None:
    consumer = FakeConsumer({n: [record(n, offset) for offset in range(30)] for n in (0, 1)})
    gate, begun = threading.Event(), threading.Event()
    seen = Seen()
    told: list[object] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(
            self, consumer: FakeConsumer, partitions: frozenset[TopicPartition]
        ) -> None:
            told.append((partitions, dict(consumer.commits)))

    def handle(one: ConsumerRecord) -> None:
        if one.partition == 0 and one.offset == 10:
            begun.set()
            assert gate.wait(20)
        seen(one)

    pool = WorkerPool(consumer, handle, 4, commit_interval_s=60)
    pool.subscribe([TOPIC], listener=Listener())
    with running(pool):
        assert begun.wait(20)
        consumer.rebalance("on_partitions_revoked", 0)
        eventually(lambda: len([one for one in seen.records if one.partition == 1]) == 30)
        assert consumer.telling.wait(20)
        assert not told
        gate.set()
        eventually(lambda: bool(told))
    # The record that was being handled counts, and what waited behind it is left to others.
    handled = [one.offset for one in seen.records if one.partition == 0]
    assert handled == list(range(len(handled)))
    assert len(handled) >= 11
    assert told == [({PARTITION_0}, {PARTITION_0: len(handled)})]
    assert consumer.commits == {PARTITION_0: len(handled), PARTITION_1: 30}


def test_a_rebalance_abandons_what_takes_too_long(caplog: pytest.LogCaptureFixture) -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(30)]})
    gate, begun = threading.Event(), threading.Event()
    seen = Seen()

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 10 and not begun.is_set():
            begun.set()
            assert gate.wait(20)
        seen(one)

    pool = WorkerPool(consumer, handle, 4, commit_interval_s=60, revoke_timeout_s=0.05)
    pool.subscribe([TOPIC])
    with running(pool):
        assert begun.wait(20)
        consumer.rebalance("on_partitions_revoked", 0)
        eventually(lambda: consumer.commits == {PARTITION_0: 10})
        consumer.rebalance("on_partitions_assigned", 0)
        gate.set()
        eventually(lambda: len(seen.records) == 31)
    assert "records that are still being handled (1)" in caplog.text
    assert sorted(one.offset for one in seen.records) == sorted([10, *range(30)])
    assert consumer.commits == {PARTITION_0: 30}


def test_lost_partitions_are_neither_waited_for_nor_committed() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(30)]})
    gate, begun = threading.Event(), threading.Event()
    told = threading.Event()

    class Listener(RebalanceListener):
        def on_partitions_lost(self, consumer: object, partitions: object) -> None:
            told.set()

    def handle(one: ConsumerRecord) -> None:
        if one.offset == 10:
            begun.set()
            assert gate.wait(20)

    pool = WorkerPool(consumer, handle, 2, commit_interval_s=60)
    pool.subscribe([TOPIC], listener=Listener())
    with running(pool):
        assert begun.wait(20)
        consumer.rebalance("on_partitions_lost", 0)
        assert told.wait(20)
        gate.set()
    assert consumer.commits == {}


def test_a_retry_does_not_hold_up_a_rebalance() -> None:
    consumer = FakeConsumer({0: [record(0, 0)]})
    failed = threading.Event()

    def handle(one: ConsumerRecord) -> None:
        failed.set()
        raise RuntimeError("always")

    pool = WorkerPool(consumer, handle, 1, policy=FailurePolicy.retry(backoff_s=1000))
    pool.subscribe([TOPIC])
    with running(pool) as raised:
        assert failed.wait(20)
        consumer.rebalance("on_partitions_revoked", 0)
        eventually(lambda: not consumer.positions)
    assert not raised
    assert consumer.commits == {PARTITION_0: 0}


def test_seeking_back_begins_anew() -> None:
    consumer = FakeConsumer({0: [record(0, offset) for offset in range(20)]})
    seen = Seen()
    pool = WorkerPool(consumer, seen, 2, commit_interval_s=0.01)
    with running(pool):
        eventually(lambda: consumer.commits == {PARTITION_0: 20})
        consumer.seek(PARTITION_0, 5)
        consumer.wakeup()
        eventually(lambda: len(seen.records) == 35)
    assert consumer.commits == {PARTITION_0: 20}


def test_a_failed_commit_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    consumer = FakeConsumer({0: [record(0, 0)]})
    consumer.commit_error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away")
    pool = WorkerPool(consumer, lambda one: None, 1, commit_interval_s=0.01)
    with running(pool):
        eventually(lambda: "away" in caplog.text)
        consumer.commit_error = None
        eventually(lambda: consumer.commits == {PARTITION_0: 1})


def test_a_consumer_that_commits_by_itself_is_refused() -> None:
    consumer = FakeConsumer({}, commits_automatically=True)
    with pytest.raises(KafkaError, match=r"enable\.auto\.commit=false"):
        WorkerPool(consumer, lambda one: None, 1)


@pytest.mark.parametrize(
    "make", [lambda c: WorkerPool(c, print, 0), lambda c: WorkerPool(c, print, 1, ordering="any")]
)
def test_senseless_arguments_are_refused(make: Callable[[FakeConsumer], WorkerPool]) -> None:
    with pytest.raises(ValueError, match=r"worker|any"):
        make(FakeConsumer({}))


def test_orderings_have_names() -> None:
    assert {one.value for one in Ordering} == {"partition", "key", "none"}
