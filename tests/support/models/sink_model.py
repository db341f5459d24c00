"""A model of a cluster and of Spark, on which the sink's protocol is played out.

The cluster knows tasks' transactional ids with their epochs, what is committed, and the query's
decisions. Spark runs batches: each with some tasks, whose attempts may die, be tried again, or be
given up and live on; a driver may die, or be thought dead and live on beside the next one. All of
them are generators of effects, and one seed says who takes the next step and who dies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field
from typing import Any

from headwater.client.producer.idempotence.identity import PreparedTransactionState
from headwater.pipeline.sink.exactly_once.decision import Decision, Pointer
from headwater.pipeline.sink.exactly_once.driver_steps import abort_steps, commit_steps
from headwater.pipeline.sink.exactly_once.effects import (
    AbortOwn,
    Decide,
    End,
    ListOpen,
    ReadEntries,
    ReadPointer,
    SkipRows,
    TakeOver,
    TakeQuery,
    WriteRows,
)
from headwater.pipeline.sink.exactly_once.task_name import Prepared, QueryName, TaskName
from headwater.pipeline.sink.exactly_once.task_steps import Written, task_steps

QUERY = QueryName("query")
_TROUBLE = ["task", "driver", "zombie", "speculation", "commit"]

TaskSteps = Callable[[int], Generator[Any, Any, Written | None]]
CommitSteps = Callable[[int, str, Collection[Written]], Generator[Any, Any, None]]
AbortSteps = Callable[[int, str], Generator[Any, Any, None]]


class FencedError(Exception):
    """What the cluster answers to who was replaced."""


@dataclass
class Protocol:
    """What is played out; tests put a faulty part into it."""

    task: TaskSteps = task_steps
    commit: CommitSteps = commit_steps
    abort: AbortSteps = abort_steps
    #: Whether a decision is refused if another driver has taken the query.
    fences_drivers: bool = True
    #: Whether an id that is taken over keeps its open transaction.
    keeps_prepared: bool = True


@dataclass
class Transaction:
    state: PreparedTransactionState
    rows: list[tuple[int, int, int]]


@dataclass
class TransactionalId:
    epoch: int = 0
    open: Transaction | None = None


@dataclass
class Cluster:
    protocol: Protocol
    ids: dict[TaskName, TransactionalId] = field(default_factory=dict)
    committed: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    decisions: list[Decision] = field(default_factory=list)
    driver_epoch: int = 0
    #: A decision that is being made, and the epoch of its driver.
    under_way: tuple[int, Decision] | None = None

    def take_over(self, name: TaskName) -> tuple[int, bool]:
        found = self.ids.setdefault(name, TransactionalId())
        found.epoch += 1
        if found.open is not None and not self.protocol.keeps_prepared:
            found.open = None
        return found.epoch, found.open is None

    def end(self, name: TaskName, is_commit: bool) -> None:
        transaction = self.ids[name].open
        assert transaction is not None
        if is_commit:
            self.committed.update(transaction.rows)
        self.ids[name].open = None
        self.ids[name].epoch += 1

    def open_transactions(self) -> frozenset[Prepared]:
        return frozenset(
            Prepared(name, found.open.state)
            for name, found in self.ids.items()
            if found.open is not None
        )

    @property
    def pointer(self) -> Pointer:
        if not self.decisions:
            return Pointer()
        return Pointer(self.decisions[-1].batch, len(self.decisions) - 1)

    def entries(self, pointer: Pointer) -> frozenset[Prepared]:
        return self.decisions[pointer.version].entries if pointer.version >= 0 else frozenset()


class Actor:
    """A task or a driver between two effects. `step` does one thing, `is_over` afterwards."""

    def __init__(self, cluster: Cluster, steps: Generator[Any, Any, Any]) -> None:
        self.cluster = cluster
        self.steps = steps
        self.result: Any = None
        self.error: Exception | None = None
        self.is_over = False
        self._answer: Any = None
        self._effect: Any = None
        self._stage = 0
        self._advance(None)

    def step(self) -> None:
        try:
            is_done, answer = self.apply(self._effect, self._stage)
        except FencedError:
            self._finish(lambda: self.steps.throw(FencedError()))
            return
        if is_done:
            self._advance(answer)
        else:
            self._stage += 1

    def apply(self, effect: Any, stage: int) -> tuple[bool, Any]:
        """Whether the effect is complete, and its result. Reading waits for a decision."""
        cluster = self.cluster
        match effect:
            case ReadPointer():
                if cluster.under_way is not None:
                    return False, None
                return True, cluster.pointer
            case ReadEntries(pointer):
                return True, cluster.entries(pointer)
        raise AssertionError(effect)

    def _advance(self, answer: Any) -> None:
        self._stage = 0
        self._finish(lambda: self.steps.send(answer))

    def _finish(self, go_on: Callable[[], Any]) -> None:
        try:
            self._effect = go_on()
        except StopIteration as end:
            self.result, self.is_over = end.value, True
        except Exception as error:
            self.error, self.is_over = error, True


class TaskActor(Actor):
    def __init__(self, cluster: Cluster, batch: int, partition: int, name: TaskName) -> None:
        self.name = name
        self.batch = batch
        self.partition = partition
        self.epoch = 0
        #: How often it is its turn.
        self.weight = 1.0
        super().__init__(cluster, cluster.protocol.task(batch))

    def apply(self, effect: Any, stage: int) -> tuple[bool, Any]:
        cluster = self.cluster
        match effect:
            case TakeOver(slot):
                partition, _, attempt = self.name.attempt.split(".")
                self.name = self.name._replace(attempt=f"{partition}.{slot}.{attempt}")
                self.epoch, is_free = cluster.take_over(self.name)
                return True, is_free
            case AbortOwn():
                self._check()
                cluster.end(self.name, is_commit=False)
                return True, None
            case SkipRows():
                return True, None
            case WriteRows():
                # Two rows, one after the other: somebody may come in between.
                self._check()
                found = cluster.ids[self.name]
                if found.open is None:
                    assert stage == 0
                    found.open = Transaction(PreparedTransactionState(1, self.epoch), [])
                found.open.rows.append((self.batch, self.partition, stage))
                return stage == 1, Prepared(self.name, found.open.state)
        return super().apply(effect, stage)

    def _check(self) -> None:
        if self.cluster.ids[self.name].epoch != self.epoch:
            raise FencedError


class DriverActor(Actor):
    def __init__(self, cluster: Cluster, steps: Generator[Any, Any, None]) -> None:
        self.epoch = 0
        super().__init__(cluster, steps)

    def apply(self, effect: Any, stage: int) -> tuple[bool, Any]:
        cluster = self.cluster
        match effect:
            case TakeQuery():
                cluster.driver_epoch += 1
                self.epoch = cluster.driver_epoch
                cluster.under_way = None
                return True, None
            case ListOpen():
                return True, cluster.open_transactions()
            case Decide(decision):
                return self._decide(decision, stage)
            case End(prepared, is_commit):
                one = prepared[stage]
                found = cluster.ids.get(one.task)
                if found is not None and found.open and found.open.state == one.state:
                    cluster.end(one.task, is_commit)
                return stage == len(prepared) - 1, None
        return super().apply(effect, stage)

    def _decide(self, decision: Decision, stage: int) -> tuple[bool, Any]:
        cluster = self.cluster
        if cluster.protocol.fences_drivers and self.epoch != cluster.driver_epoch:
            raise FencedError
        if stage == 0:
            cluster.under_way = (self.epoch, decision)
            return False, None
        # The transaction timed out meanwhile, or another driver ended it.
        if cluster.under_way is None and cluster.protocol.fences_drivers:
            raise FencedError
        cluster.under_way = None
        cluster.decisions.append(decision)
        return True, None


class Run:
    """One start of the query: a driver that does one batch after the other."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"{number:08d}-0000-4000-8000-000000000000"
        self.batch = world.checkpoint + 1
        self.is_over = False
        self.attempts: dict[int, list[TaskActor]] = {}
        self.driver: DriverActor | None = None
        self.is_aborting = False
        self._begin_batch()

    def _begin_batch(self) -> None:
        self.driver = None
        self.is_aborting = False
        self.attempts = {partition: [] for partition in range(self.world.task_count)}
        for partition in self.attempts:
            self.start_attempt(partition)

    def start_attempt(self, partition: int, *, is_new_stage: bool = False) -> None:
        """A new attempt of the stage counts attempts of tasks from 0 again."""
        attempts = self.attempts[partition]
        number = 0 if is_new_stage else len(attempts)
        name = TaskName(QUERY, self.name, f"{partition}.0.{number}")
        task = TaskActor(self.world.cluster, self.batch, partition, name)
        if self.world.generator.random() < 0.2:
            task.weight = 0.02
        attempts.append(task)
        self.world.tasks.append(task)

    def step(self) -> None:
        """See whether the tasks are done, or let the driver do something."""
        if self.driver is None:
            self._watch_tasks()
            return
        self.driver.step()
        if not self.driver.is_over:
            return
        if self.driver.error is not None and not self.is_aborting:
            self._abort()
        elif self.is_aborting:
            self.is_over = True
            if self.driver.error is None:
                self.world.finished_runs.add(self.name)
        else:
            self._committed()

    def _watch_tasks(self) -> None:
        results = []
        for partition, attempts in self.attempts.items():
            done = [task for task in attempts if task.is_over and task.error is None]
            if done:
                # Which of several attempts counts is the first that Spark heard of.
                results.append(done[0].result)
            elif all(task.is_over or task not in self.world.tasks for task in attempts):
                if len(attempts) >= self.world.attempts_max:
                    self._abort()
                    return
                self.start_attempt(partition)
        if len(results) == len(self.attempts):
            written = [result for result in results if result is not None]
            steps = self.world.cluster.protocol.commit(self.batch, self.name, written)
            self.driver = DriverActor(self.world.cluster, steps)

    def lose_commit(self, *, is_dead: bool) -> None:
        """The process that commits is gone, or is only thought to be; the run is told so."""
        if self.driver is not None and not self.is_aborting:
            if not is_dead:
                self.world.strays.append(self.driver)
            self._abort()

    def _abort(self) -> None:
        self.is_aborting = True
        steps = self.world.cluster.protocol.abort(self.batch, self.name)
        self.driver = DriverActor(self.world.cluster, steps)

    def _committed(self) -> None:
        # Spark's own log of commits, which takes each batch once.
        if self.world.checkpoint != self.batch - 1:
            self.is_over = True
            return
        self.world.checkpoint = self.batch
        self.batch += 1
        if self.batch == self.world.batch_count:
            self.is_over = True
            self.world.finished_runs.add(self.name)
        else:
            self._begin_batch()


class World:
    def __init__(self, seed: int, protocol: Protocol, *, batch_count: int = 3) -> None:
        self.generator = random.Random(seed)
        self.cluster = Cluster(protocol)
        self.batch_count = batch_count
        self.task_count = 2
        self.attempts_max = 4
        self.checkpoint = -1
        self.tasks: list[TaskActor] = []
        self.runs: list[Run] = []
        # Each world has some kinds of trouble only: what takes much of one is seldom seen with all.
        self.kinds = self.generator.sample(_TROUBLE, self.generator.randint(1, len(_TROUBLE)))
        self.disturbances_per_step = self.generator.choice([0.02, 0.08])
        #: Processes of drivers that live on although their runs are told that they are dead.
        self.strays: list[DriverActor] = []
        self.run_count = 0
        self.crashes = 0
        #: Runs that committed the last batch or aborted a failed one, and what they left open.
        self.finished_runs: set[str] = set()
        self.left_by_finished: list[str] = []

    def play(self, step_count: int = 150) -> None:
        """Trouble for a while; then the query is started again and left in peace."""
        self._start_run()
        for _ in range(step_count):
            self._move()
            if self.generator.random() < self.disturbances_per_step:
                self._disturb()
        self.runs.clear()
        self._finish_batches()
        self._finish_tasks()
        self.left_by_finished = [
            prepared.task.transactional_id
            for prepared in self.cluster.open_transactions()
            if prepared.task.run in self.finished_runs
        ]
        # What dead drivers left behind is seen to by the next batch that there is.
        self.batch_count += 1
        self._finish_batches()
        self._finish_tasks()

    def _finish_batches(self) -> None:
        while self.checkpoint < self.batch_count - 1:
            self._start_run()
            while not self.runs[-1].is_over:
                self._move(only_newest=True)

    def _finish_tasks(self) -> None:
        """Those whose drivers have gone on without them come to their end as well."""
        for _ in range(20):
            self._settle_decision()
            for actor in [*self.tasks, *self.strays]:
                if not actor.is_over:
                    actor.step()

    def _start_run(self) -> None:
        self.runs.append(Run(self, self.run_count))
        self.run_count += 1

    def _move(self, *, only_newest: bool = False) -> None:
        """One step of somebody, chosen at random."""
        runs = [run for run in self.runs[-1:] if only_newest or not run.is_over]
        if not only_newest:
            runs = [run for run in self.runs if not run.is_over]
        tasks = [task for task in self.tasks if not task.is_over]
        if self.generator.random() < 0.05:
            self._settle_decision()
        strays = [driver for driver in self.strays if not driver.is_over]
        chance = self.generator.random()
        if tasks and chance < 0.6:
            weights = [task.weight for task in tasks]
            self.generator.choices(tasks, weights)[0].step()
        elif strays and chance < 0.7:
            self.generator.choice(strays).step()
        elif runs:
            self.generator.choice(runs).step()

    def _settle_decision(self) -> None:
        """What takes too long is aborted by the cluster."""
        self.cluster.under_way = None

    def _disturb(self) -> None:
        self.crashes += 1
        kind = self.generator.choice(self.kinds)
        tasks = [task for task in self.tasks if not task.is_over]
        runs = [run for run in self.runs if not run.is_over]
        if kind == "task" and tasks:
            self.tasks.remove(self.generator.choice(tasks))
        elif kind == "driver" and runs:
            self.runs.remove(self.generator.choice(runs))
            self._start_run_if_needed()
        elif kind == "zombie":
            self._start_run_if_needed()
        elif kind == "speculation" and runs:
            run = self.generator.choice(runs)
            if run.driver is None:
                run.start_attempt(
                    self.generator.randrange(self.task_count),
                    is_new_stage=self.generator.random() < 0.5,
                )
        elif kind == "commit" and runs:
            self.generator.choice(runs).lose_commit(is_dead=self.generator.random() < 0.5)
            self._start_run_if_needed()

    def _start_run_if_needed(self) -> None:
        if self.checkpoint < self.batch_count - 1:
            self._start_run()

    # -- what must hold ------------------------------------------------------------------------

    def problems(self) -> list[str]:
        expected = {
            (batch, partition, row)
            for batch in range(self.batch_count)
            for partition in range(self.task_count)
            for row in range(2)
        }
        committed = self.cluster.committed
        found = [f"{row} is there {count} times" for row, count in committed.items() if count > 1]
        found += [f"{row} is missing" for row in sorted(expected - set(committed))]
        found += [
            f"{name} was left open by a run that had finished" for name in self.left_by_finished
        ]
        found += [
            f"{task.transactional_id} is open" for task, _ in self.cluster.open_transactions()
        ]
        return found
