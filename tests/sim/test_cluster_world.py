import asyncio
from collections.abc import Iterator

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld

SETTINGS = {
    "min.insync.replicas": "2",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "2000",
}
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    made = ClusterWorld(1, SETTINGS)
    yield made
    made.check_no_failure()
    made.close()


async def start(world: ClusterWorld) -> None:
    await asyncio.gather(*(host.start() for host in world.hosts))
    process, link = world.start_client("admin")
    admin = TopicClient(link, world.history, replication_factor=3)
    await process.run(world.loop.create_task, admin.create("orders", 1))


async def produce(world: ClusterWorld, batches: int) -> None:
    process, link = world.start_client("producer", ORDERS)
    client = ProducingClient(link, world.history, ORDERS, is_idempotent=True)
    await process.run(world.loop.create_task, client.run(batches))


async def check(world: ClusterWorld) -> None:
    """All replicas get in sync, and hold what was promised."""
    async with asyncio.timeout(60):
        while not world.observer.is_whole(ORDERS):
            await asyncio.sleep(0.1)
    process, link = world.start_client("reader", ORDERS)
    reader = ReadingClient(link, world.history, [ORDERS])
    contents = await process.run(world.loop.create_task, reader.read_all())
    check_every_promise(world.history, contents, dict(world.history.topics))
    world.observer.look()
    world.observer.compare_logs()


def test_a_cluster_serves_clients_and_stops(world: ClusterWorld) -> None:
    async def run() -> None:
        await start(world)
        await produce(world, 10)
        assert world.history.acknowledged_count >= 10
        await check(world)
        for host in world.hosts:
            assert await host.stop()

    world.run(run())


@pytest.mark.parametrize("end", ["stop", "kill", "power loss", "pause", "cut off", "session"])
def test_a_cluster_goes_on_without_its_leader(world: ClusterWorld, end: str) -> None:
    async def run() -> None:
        await start(world)
        await produce(world, 10)
        state = world.observer.states[ORDERS]
        leader = world.hosts[state.leader]
        cuts: list[tuple[str, str]] = []
        if end == "stop":
            assert await leader.stop()
        elif end == "kill":
            leader.kill()
        elif end == "power loss":
            assert world.observer.may_lose_power(state.leader)
            assert world.observer.power_lost(state.leader) == []
            leader.lose_power()
        elif end == "pause":
            leader.pause()
        elif end == "cut off":
            cuts = world.cut_off(leader, [*world.other_brokers(leader), world.store_host])
        else:
            world.expire_session(leader)
        async with asyncio.timeout(60):
            await produce(world, 10)
        now = world.observer.states[ORDERS]
        assert now.leader_epoch > state.leader_epoch
        world.mend(cuts)
        leader.resume()
        if not leader.is_up:
            assert await leader.start()
        await check(world)

    world.run(run())


def test_two_members_of_an_isr_of_two_may_not_lose_power_together(world: ClusterWorld) -> None:
    async def run() -> None:
        await start(world)
        observer = world.observer
        world.hosts[2].kill()
        async with asyncio.timeout(60):
            while set(observer.states[ORDERS].isr) != {0, 1}:
                await asyncio.sleep(0.1)
        assert observer.may_lose_power(0)
        observer.power_lost(0)
        world.hosts[0].lose_power()
        assert not observer.may_lose_power(1)
        async with asyncio.timeout(60):
            while observer.states[ORDERS].isr != (1,):
                await asyncio.sleep(0.1)
        # One that is alone has everything on its disk.
        assert observer.may_lose_power(1)
        assert observer.power_lost(1) == [ORDERS]

    world.run(run())


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("last", [0, 1, 2])
def test_the_last_copy_counts_though_its_broker_goes_before_the_others_are_missed(
    world: ClusterWorld, end: str, last: int
) -> None:
    """Two lose power, and with it what they had; the third one goes while they are taken for alive.

    It is the only one that must not leave the ISR.
    """

    async def run() -> None:
        await start(world)
        await produce(world, 10)
        observer, hosts = world.observer, world.hosts
        others = [broker_id for broker_id in range(3) if broker_id != last]
        for broker_id in others:
            assert observer.may_lose_power(broker_id)
            assert observer.power_lost(broker_id) == []
            hosts[broker_id].lose_power()
        if end == "stop":
            assert await hosts[last].stop()
        else:
            hosts[last].kill()
        for broker_id in (*others, last):
            async with asyncio.timeout(60):
                while not await hosts[broker_id].start():
                    await asyncio.sleep(0.5)
        await check(world)

    world.run(run())


@pytest.mark.parametrize("trouble", ["cut off", "pause"])
def test_a_broker_knows_when_it_may_have_been_replaced(world: ClusterWorld, trouble: str) -> None:
    async def run() -> None:
        await start(world)
        first, *others = world.hosts
        member = first.server.context.member
        assert all(host.server.context.member.is_up_to_date for host in world.hosts)
        if trouble == "pause":
            first.pause()
            await asyncio.sleep(3.0)
            first.resume()
            assert not member.is_up_to_date
        else:
            cuts = world.cut_off(first, [world.store_host])
            await asyncio.sleep(1.0)
            assert member.is_up_to_date and first.server.health.obstacles() == []
            await asyncio.sleep(2.0)
            # The store has not ended the session yet, perhaps.
            assert not member.is_up_to_date
            await asyncio.sleep(10.0)
            assert not member.is_up_to_date
            assert all(host.server.context.member.is_up_to_date for host in others)
            assert first.server.health.obstacles() == [
                "The broker has no session with the metadata store."
            ]
            assert first.server.health.faults() == []
            world.mend(cuts)
        async with asyncio.timeout(30):
            while not member.is_up_to_date:
                await asyncio.sleep(0.1)
        assert first.server.health.obstacles() == []
        await check(world)

    world.run(run())


def test_a_broker_that_is_paused_is_found_where_it_was(world: ClusterWorld) -> None:
    async def run() -> None:
        await start(world)
        host = world.hosts[0]
        host.pause()
        assert host.is_paused and host.serves
        await asyncio.sleep(1.0)
        host.resume()
        await produce(world, 3)
        assert host.life_count == 1 and not host.is_paused
        await check(world)

    world.run(run())
