"""A game of clients, zombies and coordinators, in which anything happens in any order.

Requests lie in a bag, from which any one is delivered at any time, and as often as it pleases: so
there are retries, duplicates and requests that come late. Instances of a program are started while
others still believe that they are alive. Markers are written in any order, late, and for an old
coordinator. Records are safe at once, or after a while, or are lost when another coordinator takes
over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.coordinator.outcome import ProducerIdentity
from headwater.coordinator.txn.producer_initialization import InitialisedProducer
from headwater.coordinator.txn.transaction_metadata import (
    CLIENT_EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    PreparedTransaction,
    TransactionMetadata,
)
from headwater.coordinator.txn.transaction_shard import TransactionShard
from tests.support.worlds.shard_world import Answer
from tests.support.worlds.transaction_history import (
    ClientTransaction,
    Execution,
    History,
    Instance,
)
from tests.support.worlds.transaction_world import ID, TIMEOUT_MS, TransactionWorld

T = TypeVar("T")

#: What happens, and how often; transactions must get somewhere, or nothing would be tested.
_STEPS = {
    "add": 20,
    "commit": 12,
    "abort": 5,
    "start": 2,
    "keep": 1,
    "recover": 6,
    "deliver again": 12,
    "start again": 1,
    "write markers": 18,
    "wait": 5,
    "hold or release": 8,
    "replace coordinator": 3,
}

#: How far back to look for a request, an instance, or markers: mostly not at all.
_AGES = (0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 5, 8)


@dataclass(eq=False)
class Request:
    """What an instance once sent."""

    instance: Instance
    ask: Callable[[], Answer[Any]]
    #: Takes the answer, if it is the first that the client gets.
    succeeded: Callable[[Any], None]
    is_initialisation: bool = False
    is_answered: bool = False


@dataclass(eq=False)
class Pending:
    request: Request
    execution: Execution
    answer: Answer[Any]


def _aged(items: Sequence[T], age: int) -> T:
    return items[-1 - age % len(items)]


class Races(RuleBasedStateMachine):
    shard_class: ClassVar[type[TransactionShard]] = TransactionShard
    versions: ClassVar[tuple[int, ...]] = (EPOCH_PER_TRANSACTION,)

    def __init__(self) -> None:
        super().__init__()
        self.history = History(is_strict=0 not in self.versions)
        self.instances: list[Instance] = []
        self.requests: list[Request] = []
        self.pending: list[Pending] = []
        self.seed = 0
        self.step_count = 0
        self.execution_count = 0
        self.partition_count = 0
        self.world = TransactionWorld()

    @initialize(epoch=st.sampled_from([0, CLIENT_EPOCH_MAX - 2]), seed=st.integers(0, 2**32))
    def begin(self, epoch: int, seed: int) -> None:
        self.seed = seed
        stored = TransactionMetadata(
            transactional_id=ID,
            producer=ProducerIdentity(7, epoch),
            timeout_ms=TIMEOUT_MS,
            last_update_ms=0,
        )
        self.world = TransactionWorld(self.shard_class, {ID: stored})
        self.world.on_markers = self._handed_out
        self._start(keep=False, delivered=True)

    def _handed_out(self, prepared: PreparedTransaction) -> None:
        # Whoever releases records has lifted the hold before: all are safe.
        self.history.handed_out(prepared, self.world.safe_records)

    # -- what clients do -------------------------------------------------------------------------

    def _send(self, request: Request, delivered: bool) -> None:
        self.requests.append(request)
        if delivered:
            self._execute(request)

    @rule(salt=st.integers(0, 2**16))
    def step(self, salt: int) -> None:
        """Hypothesis chooses how many, and the dice what: it would not roll them evenly."""
        self.step_count += 1
        dice = random.Random(f"{self.seed} {self.step_count} {salt}")
        (name,) = dice.choices(list(_STEPS), list(_STEPS.values()))
        age = dice.choice(_AGES)
        if name in ("deliver again", "start again"):
            self._deliver(age, is_initialisation=name == "start again")
        elif name == "write markers":
            if self.world.prepared:
                self._write_markers(_aged(self.world.prepared, age))
        elif name == "wait":
            self.world.world.advance(dice.choice([0, 1, 1000, TIMEOUT_MS, 2 * TIMEOUT_MS]))
        elif name == "hold or release":
            if self.world.world.hold:
                self.world.release()
            else:
                self.world.hold()
        elif name == "replace coordinator":
            self.world.replace_coordinator(loses_tail=dice.random() < 0.5)
        else:
            ready = [each for each in self.instances if each.producer is not None]
            self._act(name, _aged(ready or self.instances, age), dice.random() < 0.8)
        self._take_answers()

    def _act(self, name: str, instance: Instance, delivered: bool) -> None:
        if name in ("start", "keep"):
            self._start(keep=name == "keep", delivered=delivered)
        elif instance.producer is None:
            return
        elif name == "recover":
            self._recover(instance, instance.producer, delivered)
        elif name == "add":
            self._add(instance, instance.producer, delivered)
        else:
            self._end(instance, instance.producer, name == "commit", delivered)

    def _start(self, *, keep: bool, delivered: bool) -> None:
        count = len(self.instances)
        instance = Instance(ID, self.versions[count % len(self.versions)])
        self.instances.append(instance)

        def succeeded(answer: InitialisedProducer) -> None:
            instance.producer = answer.producer
            if answer.ongoing is not None:
                instance.transaction = self.history.transaction_of(answer.ongoing)

        self._send(
            Request(
                instance,
                lambda: self.world.ask_init(keep=keep, two_phase=count % 3 == 0),
                succeeded,
                is_initialisation=True,
            ),
            delivered,
        )

    def _recover(self, instance: Instance, producer: ProducerIdentity, delivered: bool) -> None:
        def succeeded(answer: InitialisedProducer) -> None:
            if instance.producer == producer:
                instance.producer = answer.producer
                instance.transaction = None

        # Not an initialisation: it fences nobody, so it must not succeed for one who is fenced.
        self._send(
            Request(instance, lambda: self.world.ask_init(expected=producer), succeeded),
            delivered,
        )

    def _add(self, instance: Instance, producer: ProducerIdentity, delivered: bool) -> None:
        transaction = instance.transaction
        if transaction is None:
            transaction = instance.transaction = ClientTransaction(instance, producer)
            self.history.begun(transaction)
        if transaction.wanted:
            return  # It is about to end.
        self.partition_count += 1
        partition = TopicPartition("orders", self.partition_count)
        self.history.transactions[partition] = transaction
        added = transaction

        def succeeded(_: object) -> None:
            added.acknowledged.add(partition)

        self._send(
            Request(
                instance,
                lambda: self.world.ask_add(producer, frozenset({partition}), instance.version),
                succeeded,
            ),
            delivered,
        )

    def _end(
        self, instance: Instance, producer: ProducerIdentity, commit: bool, delivered: bool
    ) -> None:
        transaction = instance.transaction
        if transaction is None:
            if commit:
                return  # There is nothing; but it may abort to be sure.
        else:
            if transaction.wanted and transaction.owner is instance:
                commit = next(iter(transaction.wanted))  # It does not change its mind.
            transaction.wanted.add(commit)

        def succeeded(answer: ProducerIdentity) -> None:
            if transaction is not None:
                self.history.ended(transaction, commit=commit, safe=self.world.safe_records)
            if instance.producer == producer:
                instance.transaction = None
                if instance.version >= EPOCH_PER_TRANSACTION:
                    instance.producer = answer

        self._send(
            Request(
                instance,
                lambda: self.world.ask_end(producer, commit=commit, version=instance.version),
                succeeded,
            ),
            delivered,
        )

    # -- what becomes of it ----------------------------------------------------------------------

    def _deliver(self, age: int, *, is_initialisation: bool) -> None:
        requests = [each for each in self.requests if each.is_initialisation is is_initialisation]
        if requests:
            self._execute(_aged(requests, age))

    def _execute(self, request: Request) -> None:
        self.execution_count += 1
        execution = Execution(self.execution_count, request.instance, request.is_initialisation)
        self.pending.append(Pending(request, execution, request.ask()))
        self._take_answers()

    def _write_markers(self, prepared: PreparedTransaction) -> None:
        self.world.world.write(lambda shard, now_ms: shard.markers_written(prepared, now_ms))

    def _take_answers(self) -> None:
        for pending in [each for each in self.pending if each.answer.is_given]:
            self.pending.remove(pending)
            if pending.answer.error is not None:
                continue
            self.history.succeeded(pending.execution)
            if not pending.request.is_answered:
                pending.request.is_answered = True
                pending.request.succeeded(pending.answer.get())

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def the_topic_is_sound(self) -> None:
        records = [written.record for written in self.world.world.topic]
        self.history.check_topic(record for record in records if record is not None)

    @invariant()
    def another_coordinator_would_know_the_same(self) -> None:
        self.world.world.check_replay()

    def teardown(self) -> None:
        """When all is well again, what was decided completes, and a new instance begins."""
        self.world.replace_coordinator()
        for _ in range(10):
            for prepared in list(self.world.prepared):
                self._write_markers(prepared)
            answer = self.world.ask_init()
            if answer.error is None:
                self.world.add(answer.get().producer, 0)
                return
            assert answer.error.code is ErrorCode.CONCURRENT_TRANSACTIONS
        raise AssertionError("no instance can begin any more")
