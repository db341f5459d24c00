import asyncio
from collections.abc import Iterator

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.broker_world import BrokerWorld
from headwater.sim.checkers.every_promise import check_every_promise
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient


@pytest.fixture
def world() -> Iterator[BrokerWorld]:
    made = BrokerWorld(1)
    yield made
    made.check_no_failure()
    made.close()


async def create_topic(world: BrokerWorld, name: str, partitions: int) -> list[TopicPartition]:
    process, link = world.start_client("admin")
    return await process.run(
        world.loop.create_task, TopicClient(link, world.history).create(name, partitions)
    )


async def produce(world: BrokerWorld, partition: TopicPartition, batches: int) -> None:
    process, link = world.start_client("producer")
    client = ProducingClient(link, world.history, partition, is_idempotent=True)
    await process.run(world.loop.create_task, client.run(batches))


async def check(world: BrokerWorld, partitions: list[TopicPartition]) -> None:
    process, link = world.start_client("reader")
    reader = ReadingClient(link, world.history, partitions)
    contents = await process.run(world.loop.create_task, reader.read_all())
    process, link = world.start_client("admin")
    topics = await process.run(world.loop.create_task, TopicClient(link, world.history).topics())
    check_every_promise(world.history, contents, topics)


def test_a_broker_serves_clients(world: BrokerWorld) -> None:
    async def run() -> None:
        assert await world.start_broker()
        partitions = await create_topic(world, "orders", 2)
        await asyncio.gather(*(produce(world, each, 10) for each in partitions))
        assert world.history.acknowledged_count >= 20
        await check(world, partitions)
        assert await world.stop_broker()

    world.run(run())


@pytest.mark.parametrize("end", ["stop", "kill", "power loss"])
def test_a_broker_comes_back_with_what_it_acknowledged(world: BrokerWorld, end: str) -> None:
    async def run() -> None:
        assert await world.start_broker()
        partitions = await create_topic(world, "orders", 2)
        await asyncio.gather(*(produce(world, each, 10) for each in partitions))
        if end == "stop":
            assert await world.stop_broker()
        elif end == "kill":
            world.kill_broker()
        else:
            world.lose_power()
        assert not world.is_up
        assert await world.start_broker()
        await check(world, partitions)

    world.run(run())


def test_the_power_can_go_in_the_middle_of_anything(world: BrokerWorld) -> None:
    async def run() -> None:
        for count in range(0, 60, 3):
            world.cut_power_at(count)
            if await world.start_broker():
                assert await world.wait_down(0) is False
                world.cut_power_at(0)
                assert await world.wait_down(3600)
            world.lose_power()
        assert await world.start_broker()
        await create_topic(world, "orders", 1)
        assert world.crash_count >= 20

    world.run(run())
