"""The campaign of `broker` with groups and transactions: copies that must come out once.

Producers fill a topic, copiers copy it in transactions, members of a plain group read it, somebody
watches what is committed. Besides all that befalls the broker, copiers and members are killed, come
back, leave, and are replaced while they still run. Then the world is healed, and when every group
is at the end and no transaction is open:

- the copy holds every record once, in the order of the source;
- nothing of an aborted transaction is seen, of a committed one everything, now and before;
- committed offsets never went back;
- every partition had one owner in each generation, and the plain group got every record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from headwater.base.ids import TopicPartition
from headwater.sim.campaigns import broker as broker_campaign
from headwater.sim.campaigns.broker import BrokerCampaign, BrokerWorldChoices
from headwater.sim.checkers.duplicate import check_stored_once
from headwater.sim.checkers.lost_write import check_nothing_lost
from headwater.sim.checkers.record_order import check_order
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clients.committed_reader import CommittedReader, Visible
from headwater.sim.clients.group_member import GroupMember
from headwater.sim.clients.group_offsets import fetch_committed
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.clients.transactional_copier import TransactionalCopier
from headwater.sim.histories.group_history import GroupHistory, Offsets
from headwater.sim.histories.history import Contents, PropertyViolated
from headwater.sim.histories.transaction_history import TransactionHistory, check_copied_once
from headwater.sim.network.channel_trouble import make_unreliable
from headwater.sim.process import SimulatedProcess

SOURCE = "source"
TARGET = "target"
COPIERS = "copiers"
READERS = "readers"
_MEMBERS_MAX = 6


class Member(Protocol):
    group_id: str
    instance_id: str | None

    async def leave(self) -> None: ...


class Copier(Protocol):
    transactional_id: str
    #: Set when another one has started with the same id: this one is to end.
    has_successor: bool


@dataclass
class Running:
    """A member of a group that runs as a process of its own."""

    process: SimulatedProcess
    task: asyncio.Task[Any]
    member: Member
    #: None for a member of the plain group.
    copier: Copier | None


class ExactlyOnceCampaign(BrokerCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.groups = GroupHistory()
        self.transactions = TransactionHistory()
        self.client_crash_count = 0
        self._running: list[Running] = []
        self._partition_count = 0
        self._is_healed = False

    def choose(self, seed: int) -> BrokerWorldChoices:
        choices = super().choose(seed)
        rng = Random(f"groups {seed}")
        choices.settings |= {
            "offsets.topic.num.partitions": rng.choice(("1", "3")),
            "transaction.state.log.num.partitions": rng.choice(("1", "3")),
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": rng.choice(("0", "300")),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
        return choices

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        world, random = self.world, self.random
        process, link = world.start_client("admin")
        admin = TopicClient(link, world.history)
        self._partition_count = random.randint(1, 3)
        for topic in (SOURCE, TARGET):
            creation = process.run(
                world.loop.create_task, admin.create(topic, self._partition_count)
            )
            self.partitions = await self._while_crashing(creation)
        for number in range(self._partition_count):
            # One for each partition, so that a record that is lost and comes again finds its place.
            self._start_producer(TopicPartition(SOURCE, number), random.randint(4, 16))
        for number in range(random.randint(1, 3)):
            self._start_copier(f"copier-{number}")
        for _ in range(random.randint(1, 2)):
            self._start_member(READERS, None)
        process, link = world.start_client("watcher")
        watcher = CommittedReader(link, world.history)
        watcher.positions = dict.fromkeys(self._numbered(TARGET), 0)
        self._start_task(process.run, self._watch(watcher), self._endless)

    def _start_producer(self, partition: TopicPartition, count: int) -> None:
        process, link = self.world.start_client("producer")
        producer = ProducingClient(link, self.world.history, partition, is_idempotent=True)
        self._start_task(process.run, producer.run(count), self._working)

    def _numbered(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self._partition_count)]

    def _start_copier(self, transactional_id: str) -> None:
        self._start_member(COPIERS, transactional_id)

    def _start_member(
        self, group_id: str, transactional_id: str | None, instance_id: str | None = None
    ) -> None:
        world = self.world
        process, link = world.start_client(transactional_id or "member")
        if instance_id is None and self.random.random() < 0.3:
            instance_id = link.name
        member = GroupMember(
            link,
            world.history,
            self.groups,
            group_id,
            {SOURCE: self._partition_count},
            instance_id=instance_id,
        )
        copier = None
        if transactional_id is not None:
            copier = TransactionalCopier(
                link,
                world.history,
                self.groups,
                self.transactions,
                member,
                transactional_id=transactional_id,
                target_topic=TARGET,
                is_version_2=self.random.random() < 0.6,
            )
        work = member.consume() if copier is None else copier.run()
        self._start_task(process.run, work, self._endless)
        self._running.append(Running(process, self._endless[-1], member, copier))

    async def _watch(self, reader: CommittedReader) -> None:
        """Look at what is committed, again and again."""
        while True:
            self.transactions.see(await reader.fetch())
            for partition in reader.cut_off:
                reader.positions[partition] = 0
            reader.cut_off.clear()
            await asyncio.sleep(self.random.random())

    async def _finish_clients(self) -> None:
        limit_s = broker_campaign.HEALED_TIME_MAX_S
        _, late = await asyncio.wait(self._working, timeout=limit_s)
        for task in self._working:
            if task.done():
                task.result()
        if late:
            raise PropertyViolated(f"in a healed world everybody gets done: {len(late)} do not")
        process, link = self.world.start_client("watcher")
        history = self.world.history
        ends = {each: history.acknowledged_end(each) for each in self._numbered(SOURCE)}
        for group_id in (COPIERS, READERS):
            waiting = process.run(
                self.world.loop.create_task, self._wait_committed(link, group_id, ends)
            )
            try:
                async with asyncio.timeout(limit_s):
                    await waiting
            except TimeoutError as error:
                raise PropertyViolated(
                    f"in a healed world everybody gets done: {group_id} does not get to {ends}, "
                    f"but to {self.groups.known(group_id)}"
                ) from error
        self.groups.check_all_delivered(READERS, ends)
        for task in self._endless:
            task.cancel()
        await asyncio.wait(self._endless)

    async def _wait_committed(self, link: BrokerLink, group_id: str, ends: Offsets) -> None:
        while await fetch_committed(link, self.groups, group_id, list(ends)) != ends:
            await self._check_clients()
            await asyncio.sleep(0.2)

    async def _check_end(self) -> None:
        world = self.world
        try:
            async with asyncio.timeout(broker_campaign.HEALED_TIME_MAX_S):
                source, visible = await self._read_both()
        except TimeoutError as error:
            raise PropertyViolated("in the end no transaction is open") from error
        check_nothing_lost(world.history, source)
        check_stored_once(world.history, source)
        check_order(world.history, source)
        self.transactions.check_all(visible)
        target_of = dict(zip(self._numbered(SOURCE), self._numbered(TARGET), strict=True))
        check_copied_once(source, visible, target_of)

    async def _read_both(self) -> tuple[Contents, list[Visible]]:
        """All that is in the source, and what is committed in the copy."""
        world = self.world
        process, link = world.start_client("reader")
        reader = ReadingClient(link, world.history, self._numbered(SOURCE))
        reading = process.run(world.loop.create_task, reader.read_all())
        looking = process.run(
            world.loop.create_task, self._read_committed(link, self._numbered(TARGET))
        )
        return await reading, await looking

    async def _read_committed(
        self, link: BrokerLink, partitions: list[TopicPartition]
    ) -> list[Visible]:
        """All that is committed, once nothing is open that was left behind."""
        reader = CommittedReader(link, self.world.history)
        reader.positions = dict.fromkeys(partitions, 0)
        visible: list[Visible] = []
        while not reader.is_at_end:
            visible += await reader.fetch()
        return visible

    # -- what happens ----------------------------------------------------------------------------

    async def _start(self) -> None:
        await super()._start()
        if not self._is_healed:
            make_unreliable(
                self.world.server.context.channels,
                self.random,
                delay_ms_max=self.random.choice((0.0, 5.0, 60.0)),
                loss_probability=self.random.choice((0.0, 0.05)),
            )

    async def _heal(self) -> None:
        self._is_healed = True
        await super()._heal()

    def events(self) -> list[tuple[Callable[[], Coroutine[Any, Any, None]], int]]:
        return [
            *super().events(),
            (self.kill_member, 6),
            (self.replace_copier, 4),
            (self.add_member, 3),
            (self.leave_group, 3),
        ]

    def _choose(self, *, is_copier: bool | None = None) -> Running | None:
        chosen = [
            each
            for each in self._running
            if not each.task.done()
            and (is_copier is None or (each.copier is not None) is is_copier)
        ]
        return self.random.choice(chosen) if chosen else None

    async def kill_member(self) -> None:
        """A process ends; later another takes its place, with its names or with new ones."""
        running = self._choose()
        if running is None:
            return
        self.client_crash_count += 1
        running.process.kill()
        self._running.remove(running)
        self._endless.remove(running.task)
        await asyncio.sleep(self.random.random() * 3)
        self._start_again(running, instance_id=running.member.instance_id)

    def _start_again(self, running: Running, instance_id: str | None) -> None:
        copier = running.copier
        transactional_id = None if copier is None else copier.transactional_id
        if transactional_id is not None and self.random.random() < 0.3:
            transactional_id = f"copier-{self.random.randrange(10**6)}"
        self._start_member(running.member.group_id, transactional_id, instance_id)

    async def replace_copier(self) -> None:
        """Another one starts with the same names while the first still runs."""
        running = self._choose(is_copier=True)
        if running is None or running.copier is None:
            return
        running.copier.has_successor = True
        self._running.remove(running)
        self._start_member(COPIERS, running.copier.transactional_id, running.member.instance_id)

    async def add_member(self) -> None:
        if len(self._running) >= _MEMBERS_MAX:
            return
        if self.random.random() < 0.5:
            self._start_member(READERS, None)
        else:
            self._start_copier(f"copier-{self.random.randrange(10**6)}")

    async def leave_group(self) -> None:
        """A plain member leaves in order, and another comes."""
        running = self._choose(is_copier=False)
        if running is None:
            return
        self._running.remove(running)
        self._endless.remove(running.task)
        running.task.cancel()
        await asyncio.wait((running.task,))
        self._start_task(running.process.run, running.member.leave(), [])
        await asyncio.sleep(self.random.random())
        self._start_again(running, instance_id=None)
