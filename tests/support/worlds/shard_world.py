"""Drives one shard of a coordinator as the runtime does, in virtual time and without a broker.

Operations run at once; their records go to a list that stands for the topic, are encoded and
decoded on the way as they would be, and are replayed. `hold` lets answers wait as if replicas were
slow; `fail_next` makes an append fail. `replayed` is the second coordinator that takes over.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from headwater.base.errors import KafkaError
from headwater.coordinator.outcome import Change, Outcome, ProducerIdentity, Reply
from headwater.coordinator.shard import Shard
from headwater.coordinator.stored_record import StoredRecord
from headwater.coordinator.timers import TimedOperation, Timers

S = TypeVar("S", bound=Shard)
R = TypeVar("R")

START_MS = 1_700_000_000_000


class Written(NamedTuple):
    """One entry of the topic: a record, or the end of a producer's transaction."""

    record: StoredRecord | None
    producer: ProducerIdentity | None
    is_committed: bool
    written_ms: int


class Answer(Generic[R]):
    """What an operation was answered, if it was by now."""

    def __init__(self) -> None:
        self.value: R | None = None
        self.error: KafkaError | None = None

    @property
    def is_given(self) -> bool:
        return self.value is not None or self.error is not None

    def get(self) -> R:
        """The answer; raises the error, and fails if there is none yet."""
        if self.error is not None:
            raise self.error
        assert self.value is not None, "there is no answer yet"
        return self.value

    def take(self, answer: Any) -> None:
        if isinstance(answer, KafkaError):
            self.error = answer
        else:
            self.value = answer


class ManualTimers:
    """Timers that fire when the world's time is moved."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Hashable]] = []
        self._operations: dict[Hashable, tuple[int, TimedOperation]] = {}
        self._numbers = count()
        self.now_ms = START_MS

    def schedule(self, key: Hashable, delay_ms: int, operation: TimedOperation) -> None:
        number = next(self._numbers)
        self._operations[key] = (number, operation)
        heapq.heappush(self._due, (self.now_ms + max(delay_ms, 0), number, key))

    def cancel(self, key: Hashable) -> None:
        self._operations.pop(key, None)

    def is_scheduled(self, key: Hashable) -> bool:
        return key in self._operations

    def keys(self) -> list[Hashable]:
        return list(self._operations)

    def next_due(self, until_ms: int) -> TimedOperation | None:
        """The next operation up to that time, with the clock set to when it is due."""
        while self._due and self._due[0][0] <= until_ms:
            due_ms, number, key = heapq.heappop(self._due)
            entry = self._operations.get(key)
            if entry is not None and entry[0] == number:
                del self._operations[key]
                self.now_ms = max(self.now_ms, due_ms)
                return entry[1]
        return None


class ShardWorld(Generic[S]):
    def __init__(self, make_shard: Callable[[Timers], S]) -> None:
        self._make_shard = make_shard
        self.timers = ManualTimers()
        self.shard = make_shard(self.timers)
        self.topic: list[Written] = []
        #: While set, nothing becomes safe; `release` lets everything.
        self.hold = False
        #: The next append fails with this.
        self.fail_next: KafkaError | None = None
        self._waiting: list[Outcome] = []
        self.shard.on_loaded(self.now_ms)

    @property
    def now_ms(self) -> int:
        return self.timers.now_ms

    def ask(self, operation: Callable[[S, int, Reply[R]], Outcome]) -> Answer[R]:
        """As `CoordinatorRuntime.ask`; what the operation raises comes out as it is."""
        answer: Answer[R] = Answer()
        self._settle(operation(self.shard, self.now_ms, Reply(answer.take)))
        return answer

    def write(self, operation: Callable[[S, int], Change[R]]) -> Answer[R]:
        """As `CoordinatorRuntime.write`."""

        def run(shard: S, now_ms: int, reply: Reply[R]) -> Outcome:
            change = operation(shard, now_ms)
            return Outcome(
                change.records,
                lambda: reply.send(change.response),
                reply.fail,
                change.producer,
            )

        return self.ask(run)

    def settle(self, outcome: Outcome) -> None:
        """An outcome that nobody asked for, such as one of `on_image`."""
        self._settle(outcome)

    def end_transaction(self, producer: ProducerIdentity, *, is_committed: bool) -> None:
        self.topic.append(Written(None, producer, is_committed, self.now_ms))
        self.shard.replay_transaction_end(producer, is_committed=is_committed)

    def advance(self, ms: int) -> None:
        """Let time pass; timers that are due on the way fire in order."""
        until_ms = self.now_ms + ms
        while (operation := self.timers.next_due(until_ms)) is not None:
            self._settle(operation(self.now_ms))
        self.timers.now_ms = until_ms

    def release(self) -> None:
        """Everything that was written is safe."""
        waiting, self._waiting = self._waiting, []
        for outcome in waiting:
            outcome.on_safe()

    def lose(self, error: KafkaError) -> None:
        """What was held back never becomes safe."""
        waiting, self._waiting = self._waiting, []
        for outcome in waiting:
            outcome.on_failed(error)

    def replayed(self) -> S:
        """A second shard, made from the topic alone; its timers never fire."""
        shard = self._make_shard(ManualTimers())
        for offset, (record, producer, is_committed, written_ms) in enumerate(self.topic):
            if record is not None:
                shard.replay(record, offset, producer, written_ms)
            elif producer is not None:
                shard.replay_transaction_end(producer, is_committed=is_committed)
        return shard

    def check_replay(self) -> None:
        """The coordinator that would take over now knows what this one does."""
        assert self.replayed().stored_state() == self.shard.stored_state()

    def _settle(self, outcome: Outcome) -> None:
        if outcome.records:
            if self.fail_next is not None:
                error, self.fail_next = self.fail_next, None
                outcome.on_failed(error)
                return
            for record in outcome.records:
                offset = len(self.topic)
                self.topic.append(Written(record, outcome.producer, False, self.now_ms))
                self.shard.replay(record, offset, outcome.producer, self.now_ms)
        if self.hold and (outcome.records or outcome.follows_writes):
            self._waiting.append(outcome)
        else:
            outcome.on_safe()
