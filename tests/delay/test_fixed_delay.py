"""Fixed delays in a cluster: what consumers were shown is not taken back, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from copy import copy

import pytest

from headwater.base.ids import TopicPartition
from headwater.delay.shown_place import NAME
from headwater.replication.partition.partition import Partition
from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns.logs import DIRECTORY, NOW_MS, append, new_disk, open_log
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld
from headwater.storage.log_config import DelayMode
from headwater.storage.truncation import truncate_to
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

ORDERS = TopicPartition("orders", 0)
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
SECOND = {"delay.mode": "fixed", "delay.ms": "1000"}
DAY = {"delay.mode": "fixed", "delay.ms": "86400000"}
_TOPIC = 2
_BATCHES = 5


class FixedWorld(ClusterWorld):
    """Three brokers, and a topic that all of them have a replica of."""

    def __init__(self) -> None:
        super().__init__(1, {"zookeeper.session.timeout.ms": "3000"})

    async def begin(self, settings: Mapping[str, str]) -> None:
        await asyncio.gather(*(host.start() for host in self.hosts))
        process, link = self.start_client("admin")
        admin = TopicClient(link, self.history, replication_factor=3)
        await process.run(self.loop.create_task, admin.create(ORDERS.topic, 1, settings))
        await self.until(lambda: self.observer.is_whole(ORDERS))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():
                await asyncio.sleep(0.1)

    async def start(self, host: BrokerHost) -> None:
        """Start a broker; the session of one that was killed is not over at once."""
        while not await host.start():
            await asyncio.sleep(1)

    async def produce(self) -> None:
        process, link = self.start_client("producer", ORDERS)
        client = ProducingClient(link, self.history, ORDERS, is_idempotent=True)
        await process.run(self.loop.create_task, client.run(_BATCHES))

    async def alter(self, settings: Mapping[str, str]) -> None:
        """Give the topic other settings, and wait until all brokers that are up follow."""
        configs = [AlterableConfig(name=name, value=text) for name, text in settings.items()]
        resource = AlterConfigsResource(
            resource_type=_TOPIC, resource_name=ORDERS.topic, configs=configs
        )
        process, link = self.start_client("admin")
        request = IncrementalAlterConfigsRequest(resources=[resource])
        asked = link.ask(request, IncrementalAlterConfigsResponse)
        answer = await process.run(self.loop.create_task, asked)
        assert answer.responses[0].error_code == 0
        delay_ms = int(settings["delay.ms"])
        replicas = [self.replica(host) for host in self.hosts if host.serves]
        await self.until(lambda: all(delay_ms == it.log.config.delay.fixed_ms for it in replicas))

    def replica(self, host: BrokerHost) -> Partition:
        return host.server.context.partitions.get(*ORDERS)

    @property
    def leader(self) -> BrokerHost:
        return self.hosts[self.observer.states[ORDERS].leader]

    @property
    def followers(self) -> list[BrokerHost]:
        return [host for host in self.hosts if host is not self.leader]

    @property
    def shown_end(self) -> int:
        """What the leader tells consumers; -1 while there is none."""
        host = self.leader
        return self.replica(host).log.visible_high_watermark if host.serves else -1

    async def shows(self, end_offset: int) -> None:
        """The leader shows this much, and all that it has safely is more."""
        log = self.replica(self.leader).log
        await self.until(lambda: log.visible_high_watermark >= end_offset)
        await asyncio.sleep(5)
        assert log.visible_high_watermark == end_offset < log.high_watermark

    async def fail_over(self) -> None:
        """Another broker leads, and knows what is safe."""
        before = self.leader
        before.kill()
        await self.until(lambda: self.leader is not before and self.leader.serves)
        replica = self.replica(self.leader)
        await self.until(
            lambda: replica.is_leader and replica.high_watermark == replica.log_end_offset
        )


@pytest.fixture
def world() -> Iterator[FixedWorld]:
    made = FixedWorld()
    yield made
    made.check_no_failure()
    made.close()


async def raise_delay(world: FixedWorld) -> int:
    """Show some records, then raise the delay and write more; returns what was shown."""
    await world.begin(APPEND_TIME | SECOND)
    await world.produce()
    log = world.replica(world.leader).log
    await world.until(lambda: log.visible_high_watermark == log.log_end_offset > 0)
    shown = log.log_end_offset
    await world.alter(DAY)
    await world.produce()
    await world.shows(shown)
    return shown


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_takes_back_nothing_though_the_delay_was_raised(
    world: FixedWorld, end: str
) -> None:
    async def run() -> None:
        shown = await raise_delay(world)
        for host in world.hosts:
            if end == "stop":
                assert await host.stop()
            else:
                host.kill()
        await asyncio.gather(*map(world.start, world.hosts))
        await world.until(lambda: world.shown_end >= shown)
        await world.shows(shown)

    world.run(run())


def test_a_new_leader_takes_back_nothing_though_the_delay_was_raised(world: FixedWorld) -> None:
    """One that has lost its own place: it is told the leader's."""

    async def run() -> None:
        shown = await raise_delay(world)
        for host in world.followers:
            path = f"{world.replica(host).log.directory}/{NAME}"
            assert await host.stop()
            host.disk.remove(path)
            await world.start(host)
            await world.until(lambda: world.observer.is_whole(ORDERS))
        await world.until(
            lambda: all(world.replica(each).log.shown_end == shown for each in world.followers)
        )
        await world.fail_over()
        await world.shows(shown)

    world.run(run())


def test_what_was_shown_before_all_was_delayed_stays_shown(world: FixedWorld) -> None:
    async def run() -> None:
        await world.begin(APPEND_TIME)
        await world.produce()
        log = world.replica(world.leader).log
        shown = log.log_end_offset
        await world.alter(DAY)
        assert log.config.delay.mode is DelayMode.FIXED
        await world.produce()
        await world.shows(shown)
        await world.fail_over()
        await world.shows(shown)

    world.run(run())


def test_a_log_that_moves_to_another_directory_goes_on_where_it_was(world: FixedWorld) -> None:
    async def run() -> None:
        shown = await raise_delay(world)
        replica = world.replica(world.leader)
        moved = copy(replica.log)
        moved.shown_end = None
        replica.replace_log(moved)
        assert moved.shown_end == shown

    world.run(run())


def test_what_takes_the_place_of_records_that_are_cut_off_is_not_shown_with_them() -> None:
    log = open_log(new_disk(), DIRECTORY)
    append(log, b"one", b"two")
    log.raise_high_watermark(2)
    log.shown_end = 2
    truncate_to(log, 0, NOW_MS)
    append(log, b"three")
    log.raise_high_watermark(1)
    assert log.visible_high_watermark == 0
    # No more than there is counts as shown, whatever a leader says.
    assert log.raise_shown_end(5)
    append(log, b"four")
    log.raise_high_watermark(2)
    assert log.visible_high_watermark == 1
