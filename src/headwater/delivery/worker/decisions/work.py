"""What a worker has under way, and what becomes of it: all decisions, and no client.

There are two ways to handle records. *Directly*: whoever polls handles what it got, one record
after the other, so that between two polls nothing is under way and the consumer's own positions
say what is done. Or *in lanes*: several at a time, those of a key in order, with a window for each
partition that says up to where all is done.

Threads may share it: each method holds `lock`, which is theirs to wait with.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.consumer.workers.windows import WorkWindows
from headwater.client.failures.failed_record import dead_record, retry_record
from headwater.client.failures.refused_record import reduced
from headwater.client.failures.verdicts import DeadLetter, Retry
from headwater.delivery.worker.decisions.asked_times import AskedTimes
from headwater.delivery.worker.decisions.circuit import Circuit
from headwater.delivery.worker.decisions.crash_notes import DiedError
from headwater.delivery.worker.decisions.lanes import KeyLanes, Turn
from headwater.delivery.worker.decisions.unsettled import Letter, Settlement, Unsettled
from headwater.delivery.worker.metrics import Figures, WorkerMetrics
from headwater.delivery.worker.options import WorkerOptions

_place = itemgetter(0, 1)


class Work:
    def __init__(self, options: WorkerOptions) -> None:
        self.lock = threading.RLock()
        self.circuit = Circuit(options.circuit_failure_ratio, options.circuit_pause_s)
        self._options = options
        #: By attempt, the delays of a group with a queue for each; empty for one retry topic.
        self.queues_ms: tuple[int, ...] = ()
        self.asked_times = AskedTimes(options.group)
        self._figures = Figures()
        self._lanes = KeyLanes()
        self._windows = WorkWindows(options.max_in_flight)
        self._unsettled = Unsettled()
        self._assigned: set[TopicPartition] = set()
        #: Partitions that are not read on before some of them is done.
        self._full: set[TopicPartition] = set()
        #: Directly handled, while failures wait: up to where, for each partition.
        self._handled: dict[TopicPartition, OffsetAndMetadata] = {}
        #: Whether anything was handled directly since the positions were committed.
        self._has_moved = False

    # -- what becomes of a record that failed ----------------------------------------------------

    def decide(self, record: ConsumerRecord, error: BaseException, attempt: int) -> float | Letter:
        """The seconds after which it is tried again here, or what is sent on of it."""
        options = self._options
        with self.lock:
            self._figures.failed_count += 1
        # What comes first, in the process, is one attempt for the policy.
        kept_count = attempt - options.in_process_attempts + 1
        failure_count = max(1, kept_count) if options.keep_order else 1
        if isinstance(error, (DeadLetter, *options.hopeless)):
            return self._dead(record, error, failure_count)
        asked_ms = error.after_ms if isinstance(error, Retry) else None
        if attempt < options.in_process_attempts and asked_ms is None:
            # As often as is asked for, but no power of two that is longer than any handler waits.
            return self._again_s(options.in_process_backoff_s * 2 ** min(attempt - 1, 10))
        if not options.keep_order:
            produced = retry_record(
                record,
                error,
                group=options.group,
                after=self.asked_times.instead_of(asked_ms),
                queues_ms=self.queues_ms,
                failure_count=error.count if isinstance(error, DiedError) else 1,
            )
            return Letter(record.topic_partition, record.offset, produced, is_dead=False)
        if failure_count > options.policy.attempts_max:
            return self._dead(record, error, failure_count, f"It failed {attempt} times: {error}")
        policy = options.policy
        if asked_ms is not None:
            return self._again_s(policy.capped_ms(asked_ms) / 1000)
        return self._again_s(policy.delay_s(failure_count))

    def _again_s(self, delay_s: float) -> float:
        with self.lock:
            self._figures.in_process_retry_count += 1
        return delay_s

    def _dead(
        self, record: ConsumerRecord, error: BaseException, count: int, reason: str | None = None
    ) -> Letter:
        group, queues_ms = self._options.group, self.queues_ms
        produced = dead_record(
            record, error, group=group, reason=reason, queues_ms=queues_ms, failure_count=count
        )
        return Letter(record.topic_partition, record.offset, produced, is_dead=True)

    def send_on(self, letter: Letter) -> None:
        with self.lock:
            self._unsettled.add(letter)

    def refused(self, letter: Letter, error: KafkaError) -> str | None:
        """The retry topic does not take it: less of it goes, and this tells without what.

        None if nothing can be taken away from it.
        """
        less = reduced(letter.produced, error.code, f"The retry topic refused it: {error}")
        if less is None:
            return None
        with self.lock:
            self._unsettled.add(letter._replace(produced=less.produced, is_dead=less.is_dead))
        return less.without

    # -- directly --------------------------------------------------------------------------------

    def handled(self, records: Sequence[ConsumerRecord], failed_count: int, now_s: float) -> bool:
        """These are done, or sent on; tells whether the circuit has opened."""
        with self.lock:
            good_count = len(records) - failed_count
            self._figures.handled_count += good_count
            self._has_moved = True
            if self._unsettled or self._handled:
                for place, record in dict(zip(map(_place, records), records, strict=True)).items():
                    self._handled[TopicPartition(*place)] = OffsetAndMetadata(
                        record.offset + 1, "", record.leader_epoch
                    )
            return self.circuit.add(good_count, failed_count, now_s)

    # -- in lanes --------------------------------------------------------------------------------

    def begin(self, records: Sequence[ConsumerRecord]) -> None:
        with self.lock:
            for record in records:
                partition = record.topic_partition
                if self._windows.is_sought_back(partition, record.offset):
                    self._lanes.drop([partition])
                    self._windows.forget([partition])
                    self._unsettled.drop([partition])
                self._lanes.add(self._windows.begin(partition, record))
            self._full.update(self._windows.take_full())

    def take(self, now_s: float) -> Turn | None:
        """The next record to be handled."""
        with self.lock:
            return self._lanes.take(now_s)

    def finish(self, turn: Turn, error: BaseException | None, now_s: float) -> bool:
        """The record was handled, or failed; tells whether the circuit has opened."""
        task = turn.task
        is_ours = not task.ending.is_set()
        decided = None if error is None else self.decide(task.record, error, turn.attempt)
        with self.lock:
            if isinstance(decided, float | int) and is_ours:
                self._lanes.put_back(turn, now_s + decided)
            else:
                self._lanes.finish(turn)
                if decided is None:
                    self._figures.handled_count += 1
                if isinstance(decided, Letter) and is_ours:
                    self._unsettled.add(decided)
                if not isinstance(decided, float | int):
                    task.tracker.finish(task.record.offset)
            is_good = error is None
            return self.circuit.add(int(is_good), int(not is_good), now_s)

    def give_up(self, turn: Turn) -> None:
        """Nobody knows what became of the record: it will be handled again."""
        with self.lock:
            self._lanes.finish(turn)

    @property
    def next_s(self) -> float | None:
        """When the next record is to be tried again; None if none is."""
        with self.lock:
            return self._lanes.next_s

    def unfinished_count(self, partitions: Collection[TopicPartition] | None = None) -> int:
        """How many records are being handled, or will be before these partitions can go."""
        with self.lock:
            return self._lanes.unfinished_count(partitions)

    def can_go_on(self) -> bool:
        """Whether a partition that is full has room again."""
        with self.lock:
            return any(map(self._windows.can_resume, self._full))

    def drop_waiting(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Begin nothing more of these partitions, or of all, but what others have overtaken."""
        with self.lock:
            self._lanes.drop_behind(partitions)
            self.circuit.dropped()

    # -- settling --------------------------------------------------------------------------------

    @property
    def unsettled_count(self) -> int:
        with self.lock:
            return len(self._unsettled)

    def unsettled_partitions(self) -> set[TopicPartition]:
        with self.lock:
            return self._unsettled.partitions()

    def settlement(self, *, is_alone: bool = False) -> Settlement | None:
        """What is to be committed next; None if that is nothing.

        `is_alone` has a failed record go by itself, to see whether it is the one that is refused.
        """
        with self.lock:
            is_direct = self._options.is_direct
            if is_direct and not self._unsettled:
                return Settlement(None, []) if self._has_moved else None
            offsets = dict(self._handled) if is_direct else self._windows.committable()
            letters = self._unsettled.covered_by(offsets)
            if is_alone and letters:
                first = letters[0]
                return Settlement(
                    {first.topic_partition: OffsetAndMetadata(first.offset + 1)}, [first]
                )
            return Settlement(offsets, letters) if offsets else None

    def settled(self, settlement: Settlement) -> None:
        with self.lock:
            self._unsettled.remove(settlement.letters)
            if settlement.offsets is None:
                self._has_moved = False
            elif self._options.is_direct:
                # What else was handled before is committed with the positions, the next time.
                if not self._unsettled:
                    self._handled = {}
            else:
                self._windows.committed(settlement.offsets)
            if settlement.letters:
                self._figures.transaction_count += 1
                dead_count = sum(letter.is_dead for letter in settlement.letters)
                self._figures.dead_count += dead_count
                self._figures.retried_count += len(settlement.letters) - dead_count
            else:
                self._figures.commit_count += 1

    def found_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """After a doubtful transaction this is what is committed."""
        with self.lock:
            self._unsettled.forget_committed(offsets)
            if not self._unsettled:
                self._handled = {}

    # -- partitions ------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            self._assigned.update(partitions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They are not ours any more; what is still being handled of them counts for nothing."""
        with self.lock:
            gone = list(partitions)
            self._lanes.drop(gone)
            self._windows.forget(self._windows.known(gone))
            self._unsettled.drop(gone)
            self._assigned.difference_update(gone)
            self._full.difference_update(gone)
            for partition in gone:
                self._handled.pop(partition, None)
            self.circuit.dropped()

    def paused(self, now_s: float, *, is_held: bool) -> frozenset[TopicPartition]:
        """The partitions that are not to be read now."""
        with self.lock:
            self._full.difference_update(self._windows.take_resumable())
            is_all = self.circuit.holds(now_s) or is_held
            return frozenset(self._assigned if is_all else self._full)

    # -- figures ---------------------------------------------------------------------------------

    def metrics(self) -> WorkerMetrics:
        with self.lock:
            figures = self._figures
            return WorkerMetrics(
                figures.handled_count,
                figures.failed_count,
                figures.retried_count,
                figures.dead_count,
                figures.in_process_retry_count,
                self._lanes.running_count + self._lanes.waiting_count,
                len(self._unsettled),
                len(self._full),
                self.circuit.state.value,
                self.circuit.opened_count,
                figures.commit_count,
                figures.transaction_count,
            )
