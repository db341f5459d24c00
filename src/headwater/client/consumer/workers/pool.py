"""One poller, many workers: the second of the two ways to consume with several threads.

    consumer = Consumer(bootstrap_servers=..., group_id="billing", enable_auto_commit=False)
    pool = WorkerPool(consumer, charge, worker_count=16, ordering="key")
    pool.subscribe(["orders"])
    pool.run()                              # until another thread calls pool.stop()

The thread that calls `run` polls and commits, and is the only one to use the consumer; so a slow
handler costs no membership, and there may be more workers than partitions. What is hard about this
way is done here: order is kept per partition or per key (`lanes`), only what is done without a
gap is committed (`tracker`), a partition with too much under way is paused, and before a
partition goes to another member what is under way is waited for, as long as there is time.

A record may be handled twice (after a crash, or when it was abandoned in a rebalance), but none is
committed that was not handled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headwater.base.checks import check
from headwater.base.clocks import Clock, SystemClock
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.errors import WakeupError
from headwater.client.consumer.interface import ConsumerInterface
from headwater.client.consumer.listeners import RebalanceListener
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.failure_policy import FailurePolicy, Handle, Interrupted
from headwater.client.consumer.workers.lanes import Ordering, WorkLanes
from headwater.client.consumer.workers.windows import WorkWindows
from headwater.client.kafka_errors import InvalidConfigError

_logger = logging.getLogger("headwater.client")

_POLL_TIMEOUT_S: Final = 1.0

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class WorkerPool:
    """`max_in_flight` bounds how many records of a partition are handed out and not committable.

    A rebalance waits at most `revoke_timeout_s` for the records that are being handled, and so
    does the end; commits happen every `commit_interval_s` and at these occasions.
    """

    def __init__(
        self,
        consumer: ConsumerInterface,
        handle: Handle,
        worker_count: int,
        *,
        ordering: Ordering | str = Ordering.PARTITION,
        max_in_flight: int = 1000,
        policy: FailurePolicy | None = None,
        commit_interval_s: float = 1.0,
        revoke_timeout_s: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        if worker_count < 1 or max_in_flight < 2:
            raise ValueError(
                "A pool needs at least one worker, and at least two records under way."
            )
        if consumer.commits_automatically:
            raise InvalidConfigError(
                "A pool of workers needs enable.auto.commit=false: it commits what is done, while "
                "the consumer would commit what was handed out."
            )
        self._consumer = consumer
        self._handle = handle
        self._worker_count = worker_count
        self._policy = policy or FailurePolicy.stop()
        self._commit_interval_s = commit_interval_s
        self._revoke_timeout_s = revoke_timeout_s
        self._clock = clock or SystemClock()
        self._commit_at_s = 0.0
        #: Guards all that follows.
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._is_quieter = threading.Condition(self._lock)
        self._lanes = WorkLanes(Ordering(ordering))
        self._windows = WorkWindows(max_in_flight)
        self._is_stopping = False
        self._is_ended = False
        self._failure: BaseException | None = None

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """As the consumer's, which must not be subscribed otherwise: the pool listens along."""
        self._consumer.subscribe(topics, pattern=pattern, listener=_PoolListener(self, listener))

    def run(self) -> None:
        """Poll until `stop`; raises what a handler or the consumer failed with.

        The consumer is the caller's to close afterwards.
        """
        check(not self._is_ended, "a pool of workers runs once")
        workers = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True)
            for number in range(self._worker_count)
        ]
        for worker in workers:
            worker.start()
        try:
            while not self._is_stopping:
                self._resume()
                self._commit_if_due()
                try:
                    records = self._consumer.poll(
                        min(_POLL_TIMEOUT_S, self._commit_interval_s), self._windows.full_size
                    )
                except WakeupError:
                    continue
                if records:
                    self._begin(records)
        finally:
            self._end(workers)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Let `run` return once the records that are being handled are; from any thread."""
        self._is_stopping = True
        self._consumer.wakeup()

    # -- the poller ------------------------------------------------------------------------------

    def _begin(self, records: Sequence[ConsumerRecord]) -> None:
        """Hand the records to the workers."""
        with self._lock:
            for record in records:
                topic_partition = TopicPartition(record.topic, record.partition)
                if self._windows.is_sought_back(topic_partition, record.offset):
                    self._forget([topic_partition])
                self._lanes.add(self._windows.begin(topic_partition, record))
            full = self._windows.take_full()
            self._has_work.notify(len(records))
        if full:
            self._consumer.pause(full)

    def _resume(self) -> None:
        """Let those partitions go on whose window has room again."""
        with self._lock:
            resumable = self._windows.take_resumable()
        if resumable:
            self._consumer.resume(resumable)

    def _commit_if_due(self) -> None:
        now_s = self._clock.monotonic_ms() / 1000
        if now_s < self._commit_at_s:
            return
        self._commit_at_s = now_s + self._commit_interval_s
        with self._lock:
            offsets = self._windows.committable()
        if offsets:
            self._consumer.commit_async(offsets, self._on_commit)

    def _on_commit(self, offsets: Offsets, error: KafkaError | None) -> None:
        if error is not None:
            _logger.warning("Offsets could not be committed now, and will be later: %s", error)
            return
        with self._lock:
            self._windows.committed(offsets)

    # -- rebalances and the end ------------------------------------------------------------------

    def release(self, partitions: Iterable[TopicPartition], *, is_lost: bool) -> None:
        """Partitions go to others: wait for what is being handled, commit, and forget them."""
        with self._lock:
            gone = self._windows.known(partitions)
            self._lanes.drop(gone)
            self._windows.end(gone)
            if not is_lost:
                self._await_quiet(gone)
            offsets = {} if is_lost else self._windows.committable(gone)
        self._commit_done(offsets)
        with self._lock:
            self._forget(gone)

    def _commit_done(self, offsets: Offsets) -> None:
        """Commit, and wait for it."""
        if not offsets:
            return
        try:
            self._consumer.commit(offsets, self._revoke_timeout_s)
        except KafkaError as error:
            _logger.warning(
                "What was handled could not be committed, and will be handled again: %s", error
            )

    def _await_quiet(self, partitions: list[TopicPartition] | None) -> None:
        """Wait until nothing of these partitions, or of all, is being handled, or time is over."""
        is_quiet = self._is_quieter.wait_for(
            lambda: not self._lanes.running_count(partitions), self._revoke_timeout_s
        )
        if not is_quiet:
            _logger.warning(
                "After %g s there are records that are still being handled (%d): they are not "
                "waited for, and may be handled again.",
                self._revoke_timeout_s,
                self._lanes.running_count(partitions),
            )

    def _forget(self, partitions: list[TopicPartition]) -> None:
        self._lanes.drop(partitions)
        self._windows.forget(partitions)

    def _end(self, workers: list[threading.Thread]) -> None:
        with self._lock:
            self._is_ended = True
            self._lanes.drop()
            self._windows.end()
            self._has_work.notify_all()
            self._await_quiet(None)
            offsets = self._windows.committable()
            is_quiet = not self._lanes.running_count()
        self._commit_done(offsets)
        if is_quiet:
            for worker in workers:
                worker.join()

    # -- the workers -----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._lock:
                self._has_work.wait_for(lambda: self._lanes.is_ready or self._is_ended)
                if self._is_ended:
                    return
                turn = self._lanes.take()
            task = turn.task
            is_done = False
            try:
                self._policy.run(self._handle, task.record, task.ending)
                is_done = True
            except Interrupted:
                pass
            except BaseException as error:
                self._fail(error)
            with self._lock:
                self._lanes.finish(turn)
                if is_done:
                    task.tracker.finish(task.record.offset)
                self._is_quieter.notify_all()
                can_resume = self._windows.can_resume(task.topic_partition)
            if can_resume:
                self._consumer.wakeup()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failure = self._failure or error
        self.stop()


class _PoolListener(RebalanceListener):
    """Lets the pool act before the user's own listener does."""

    def __init__(self, pool: WorkerPool, inner: RebalanceListener | None) -> None:
        self._pool = pool
        self._inner = inner or RebalanceListener()

    def on_partitions_revoked(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self._pool.release(partitions, is_lost=False)
        self._inner.on_partitions_revoked(consumer, partitions)

    def on_partitions_assigned(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self._inner.on_partitions_assigned(consumer, partitions)

    def on_partitions_lost(self, consumer: Any, partitions: frozenset[TopicPartition]) -> None:
        self._pool.release(partitions, is_lost=True)
        self._inner.on_partitions_lost(consumer, partitions)
