"""A seeded campaign of workers on three brokers in a simulated world.

Producers fill a topic, one of them in transactions. The workers of a group handle it with handlers
that fail by chance; beside them another group does without workers, with a loop of its own. The
brokers are in trouble as in `retries`; besides, programs are killed, stopped, started anew and
added. Then the world is healed, and when nothing waits and no group lags behind:

- each record has one outcome in each group: it was handled, or it is a dead letter. Of programs
  that use no transactions, one may be doubled that ended between their produce and their commit;
- a worker's handler ran again only after a crash or a rebalance, and never after the commit;
- attempts and delays are as the policy says, and nothing came early;
- records of a key were handled in order, and where order is kept waited for one that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.consumer.record import ConsumerRecord
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.worker.policy import RetryPolicy
from headwater.sim.campaigns import cluster
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
)
from headwater.sim.campaigns.delay_bounds import small_bounds
from headwater.sim.campaigns.delays.trouble import DelayTrouble
from headwater.sim.clients.group_offsets import fetch_committed
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.handling.ledger import HandlingLedger
from headwater.sim.handling.outcomes import (
    Outcomes,
    check_attempts,
    check_bodies,
    check_one_outcome,
    not_committed,
)
from headwater.sim.handling.promises import (
    check_committed_stays,
    check_key_order,
    check_never_early,
    check_no_strays,
    check_run_again,
)
from headwater.sim.handling.source_writer import SourceWriter
from headwater.sim.handling.stock_program import StockProgram
from headwater.sim.handling.worker_program import WorkerProgram
from headwater.sim.histories.group_history import GroupHistory, Offsets
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.process import SimulatedProcess

SOURCE = "orders"
#: The group with workers, and the one without.
WORKERS = "billing"
STOCK = "shipping"
DELAYS_S = (0.3, 2.0)
ATTEMPTS_MAX = len(DELAYS_S)

_CLOCK_ERROR_MS = 1_500
_PROGRAMS_MAX = 4
#: Longer than any trouble lasts, so that what is given up was given up wrongly.
_PATIENCE_MS = 10 * 60_000
#: So often, a second apart, nothing is seen before all is over: that is longer than any delay.
_QUIET_LOOKS = 6


@dataclass
class Running:
    """A program, as a process of its own."""

    process: SimulatedProcess
    task: asyncio.Task[Any]
    program: WorkerProgram | StockProgram


class WorkerCampaign(ClusterCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = Random(f"workers {seed}")
        self.keeps_order = rng.random() < 0.3
        self.ledgers = {group: HandlingLedger(group) for group in (WORKERS, STOCK)}
        self.groups = GroupHistory()
        self.outcomes: dict[str, Outcomes] = {}
        self.program_kill_count = 0
        #: By group, what its members have in common.
        self._protocols = {
            group: (
                rng.choice(("classic", "classic", "consumer")),
                rng.choice(("range", "sticky", "cooperative-sticky")),
            )
            for group in (WORKERS, STOCK)
        }
        self._concurrency = rng.choice((1, 1, 3))
        self._has_small_bounds = rng.random() < 0.6
        self._writers: list[SourceWriter] = []
        self._running: list[Running] = []
        self._returning: list[asyncio.Task[None]] = []

    def run(self, event_count: int = 8) -> str:
        with small_bounds() if self._has_small_bounds else nullcontext():
            return super().run(event_count)

    def make_world(self, seed: int) -> ClusterWorld:
        choices, rng = ClusterChoices(seed), Random(f"groups {seed}")
        choices.settings |= {
            "offsets.topic.replication.factor": str(REPLICATION_FACTOR),
            "offsets.topic.num.partitions": rng.choice(("1", "2")),
            "transaction.state.log.replication.factor": str(REPLICATION_FACTOR),
            "transaction.state.log.num.partitions": rng.choice(("1", "2")),
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": rng.choice(("0", "300")),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
        return choices.world(seed)

    def make_trouble(self) -> ClusterTrouble:
        trouble = DelayTrouble(self.world, self.random, self._set_back)
        trouble.clock_error_ms = self._clock_error_ms = self.random.choice((0, _CLOCK_ERROR_MS))
        return trouble

    # -- programs --------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        random = self.random
        topics: dict[str, dict[str, str]] = {SOURCE: {}}
        for group in (WORKERS, STOCK):
            topics[f"dlq.{group}"] = {"errors.deadletterqueue.group.enable": "true"}
            topics[f"retry.{group}"] = {
                "delay.mode": "retry",
                "retry.delays": ",".join(f"{delay_s * 1000:.0f}ms" for delay_s in DELAYS_S),
                "retry.dead.letter.topic": f"dlq.{group}",
            }
        process, link = self.world.start_client("admin")
        admin = TopicClient(link, self.world.history, replication_factor=REPLICATION_FACTOR)
        for name, configs in topics.items():
            async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
                self.partitions += await process.run(
                    self.world.loop.create_task,
                    admin.create(name, random.randint(1, 2), configs),
                )
        for number in range(2):
            self._start_writer(is_transactional=number == 1)
        for _ in range(random.randint(2, 3)):
            self._start_worker(None)
        self._start_stock()
        process, link = self.world.start_client("watcher")
        self._start_task(process.run, self._watch(link), self._endless)

    def _environment(self) -> ClientEnvironment:
        return ClientEnvironment(clock=self.world.clock, generator=Random(self.random.random()))

    def _settings(self, name: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": ",".join(f"{host}:{port}" for host, port in self.world.addresses),
            "client_id": name,
            "request_timeout_ms": self.random.choice((2_000, 10_000)),
        }

    def _producer_settings(self, name: str) -> dict[str, Any]:
        return {
            **self._settings(name),
            "delivery_timeout_ms": _PATIENCE_MS,
            "max_block_ms": _PATIENCE_MS,
        }

    def _member_settings(self, name: str, group: str) -> dict[str, Any]:
        protocol, assignor = self._protocols[group]
        settings = self._settings(name) | {
            "group_protocol": protocol,
            "max_poll_records": self.random.choice((1, 5, 500)),
            "max_poll_interval_ms": self.random.choice((3_500, 300_000)),
        }
        if protocol == "classic":
            settings |= {
                "partition_assignment_strategy": assignor,
                "session_timeout_ms": self.random.choice((3_000, 6_000)),
                "heartbeat_interval_ms": 500,
            }
        return settings

    def _start_writer(self, *, is_transactional: bool) -> None:
        process, link = self.world.start_client("writer")
        environment = self._environment()
        settings = self._producer_settings(link.name)
        if is_transactional:
            settings |= {"transactional_id": link.name, "transaction_timeout_ms": 60_000}
        writer = SourceWriter(
            link.name,
            SOURCE,
            link.random,
            lambda: in_environment(AsyncProducer, environment)(**settings),
        )
        self._writers.append(writer)
        work = writer.run_transactions() if is_transactional else writer.run()
        self._start_task(process.run, work, self._working)

    def _start_worker(self, instance: str | None) -> None:
        random = self.random
        process, link = self.world.start_client("worker")
        if instance is None and random.random() < 0.5:
            instance = link.name
        settings = self._member_settings(link.name, WORKERS) | {
            "retry": RetryPolicy(delays=DELAYS_S),
            "keep_order": self.keeps_order,
            "concurrency": self._concurrency,
            "max_in_flight": random.choice((4, 1000)),
            "commit_interval": random.choice((0.1, 0.5)),
            "drain_timeout": random.choice((1, 30)),
            "instance": instance,
        }
        program = WorkerProgram(
            link.name,
            SOURCE,
            self.ledgers[WORKERS],
            self._environment(),
            settings,
            now_s=self.world.loop.time,
            note=lambda text: self.world.trace.note("worker", text),
        )
        self._start_program(process, program)

    def _start_stock(self) -> None:
        process, link = self.world.start_client("stock")
        settings = self._member_settings(link.name, STOCK) | {
            "group_id": STOCK,
            "isolation_level": "read_committed",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        program = StockProgram(
            link.name,
            [SOURCE, f"retry.{STOCK}"],
            self.ledgers[STOCK],
            self._environment(),
            settings,
            self._producer_settings(link.name),
            now_s=self.world.loop.time,
        )
        self._start_program(process, program)

    def _start_program(
        self, process: SimulatedProcess, program: WorkerProgram | StockProgram
    ) -> None:
        task = process.run(self.world.loop.create_task, program.run())
        self._running.append(Running(process, task, program))

    async def _watch(self, link: Any) -> None:
        """See which offsets are committed, again and again."""
        while True:
            for group in (WORKERS, STOCK):
                found = await fetch_committed(link, self.groups, group, self._read_by(group))
                self.ledgers[group].saw_committed(found, self.world.loop.time())
            await asyncio.sleep(self.random.random())

    def _read_by(self, group: str) -> list[TopicPartition]:
        return [each for each in self.partitions if each.topic in (SOURCE, f"retry.{group}")]

    # -- what happens ----------------------------------------------------------------------------

    async def _let_things_happen(self, count: int) -> None:
        for _ in range(count):
            await super()._let_things_happen(1)
            event = self.random.choices(
                (self.kill_program, self.stop_worker, self.add_worker, None), (5, 2, 1, 3)
            )[0]
            if event is not None:
                event()

    def _check_tasks(self) -> None:
        super()._check_tasks()
        for task in (*self._returning, *(each.task for each in self._running)):
            if task.done():
                task.result()

    def kill_program(self) -> None:
        """A process ends; later another takes its place, with its name or with a new one."""
        if not self._running:
            return
        running = self.random.choice(self._running)
        self._running.remove(running)
        self.program_kill_count += 1
        self.world.trace.note("campaign", f"kill {running.program.name}")
        running.process.kill()
        self._return_later(running.program)

    def stop_worker(self) -> None:
        """A worker ends in order, and another comes."""
        workers = [each for each in self._running if isinstance(each.program, WorkerProgram)]
        if not workers:
            return
        running = self.random.choice(workers)
        assert isinstance(running.program, WorkerProgram)
        self._running.remove(running)
        self._endless.append(running.task)
        self.world.trace.note("campaign", f"stop {running.program.name}")
        running.process.run(running.program.stop)
        self._return_later(running.program)

    def _return_later(self, program: WorkerProgram | StockProgram) -> None:
        self._returning.append(self.world.loop.create_task(self._return(program)))

    async def _return(self, program: WorkerProgram | StockProgram) -> None:
        await asyncio.sleep(self.random.random() * 3)
        if isinstance(program, WorkerProgram):
            self._start_worker(program.instance)
        else:
            self._start_stock()

    def add_worker(self) -> None:
        if len(self._running) < _PROGRAMS_MAX:
            self._start_worker(None)

    # -- the end ---------------------------------------------------------------------------------

    async def _finish_clients(self) -> None:
        for writer in self._writers:
            writer.is_finishing = True
        await super()._finish_clients()
        if self._returning:
            await asyncio.wait(self._returning)

    async def _check_end(self) -> None:
        process, link = self.world.start_client("reader")
        records = await process.run(self.world.loop.create_task, self._read_to_end(link))
        for running in self._running:
            running.task.cancel()
        for task in self._endless:
            task.cancel()
        await asyncio.wait([*self._endless, *(each.task for each in self._running)])
        self._check_source(records)
        for group, ledger in self.ledgers.items():
            self._check_group(group, ledger, records)
        self._check_workers(self.ledgers[WORKERS])
        self.world.observer.look()
        self.world.observer.compare_logs()

    async def _read_to_end(self, link: Any) -> list[ConsumerRecord]:
        """All that is committed, once nothing waits, nobody lags and nothing comes any more."""
        loop = self.world.loop
        consumer = in_environment(AsyncConsumer, self._environment())(
            **self._settings(link.name),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        consumer.assign(self.partitions)
        records: list[ConsumerRecord] = []
        end_s, quiet_count = loop.time() + cluster.HEALED_TIME_MAX_S, 0
        while quiet_count < _QUIET_LOOKS:
            found = await consumer.poll(1.0)
            records += found
            self._check_tasks()
            behind = await self._behind(link, records)
            is_at_end = await self._is_at_end(consumer)
            waiting = self._waiting_count()
            is_quiet = not found and not behind and is_at_end and waiting == 0
            quiet_count = quiet_count + 1 if is_quiet else 0
            if loop.time() > end_s:
                raise PropertyViolated(
                    f"nothing waits in the end, and no group lags behind: {waiting} wait, and "
                    f"{behind[:3]} of {len(behind)} are not committed"
                )
        await consumer.close(0.0)
        return records

    async def _is_at_end(self, consumer: AsyncConsumer) -> bool:
        ends = await consumer.end_offsets(self.partitions)
        return all([await consumer.position(each) >= end for each, end in ends.items()])

    async def _behind(self, link: Any, records: Sequence[ConsumerRecord]) -> list[str]:
        """What a group has not committed."""
        found: list[str] = []
        for group in (WORKERS, STOCK):
            committed: Offsets = await fetch_committed(
                link, self.groups, group, self._read_by(group)
            )
            found += [f"{each} of {group}" for each in not_committed(records, committed)]
        return found

    def _waiting_count(self) -> int | None:
        """What waits in all partitions, as their leaders know; None while one does not."""
        count = 0
        for partition in self.partitions:
            if not partition.topic.startswith("retry."):
                continue
            known = [
                delays.known_state
                for host in self.world.hosts
                if host.serves
                for led, delays in host.server.context.delays
                if led.topic_partition == partition and delays.known_state is not None
            ]
            if len(known) != 1 or known[0] is None:
                return None
            count += known[0].waiting.count
        return count

    def _check_source(self, records: Sequence[ConsumerRecord]) -> None:
        values = [record.value for record in records if record.topic == SOURCE]
        for writer in self._writers:
            writer.check(values)

    def _check_group(
        self, group: str, ledger: HandlingLedger, records: Sequence[ConsumerRecord]
    ) -> None:
        has_deserializer = group == WORKERS
        keeps_order = self.keeps_order and group == WORKERS
        outcomes = Outcomes.of(
            records, SOURCE, f"retry.{group}", f"dlq.{group}", keeps_order=keeps_order
        )
        self.outcomes[group] = outcomes
        check_bodies(outcomes)
        check_one_outcome(outcomes, ledger, ATTEMPTS_MAX, has_deserializer=has_deserializer)
        check_attempts(outcomes, ledger, ATTEMPTS_MAX, has_deserializer=has_deserializer)
        check_never_early(ledger, DELAYS_S, 2 * self._clock_error_ms / 1000)

    def _check_workers(self, ledger: HandlingLedger) -> None:
        check_no_strays(ledger)
        check_run_again(ledger, ATTEMPTS_MAX + 1 if self.keeps_order else 1)
        check_committed_stays(ledger)
        check_key_order(ledger, ATTEMPTS_MAX if self.keeps_order else None)
