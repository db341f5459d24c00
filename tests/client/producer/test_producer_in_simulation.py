"""`AsyncProducer` in the simulator: virtual time, a bad network, a broker that dies."""

import asyncio
import contextlib
import random
from collections.abc import Generator

import pytest

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.client.producer.intake.record_intake import ForTopic, ForTurn, Wait
from headwater.sim.broker_world import HOST, PORT, BrokerWorld
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from tests.support.tiers import rounds

RECORD_COUNT = 300


def simulated(world: BrokerWorld) -> type[AsyncProducer]:
    generator = random.Random(world.seed)
    return in_environment(AsyncProducer, ClientEnvironment(world.clock, generator=generator))


async def produce(world: BrokerWorld) -> list[int]:
    """Send numbers, one after the other, and return their offsets."""
    async with simulated(world)(bootstrap_servers=f"{HOST}:{PORT}", batch_size=300) as producer:
        futures = []
        for number in range(RECORD_COUNT):
            futures.append(await producer.send("orders", b"%d" % number))
            if number % 10 == 0:
                await asyncio.sleep(0.02)
        return [(await future).offset for future in futures]


async def trouble(world: BrokerWorld) -> None:
    """End the broker twice, each time in another way, and start it again."""
    await asyncio.sleep(0.2)
    world.kill_broker()
    await asyncio.sleep(1.0)
    assert await world.start_broker()
    await asyncio.sleep(0.3)
    world.lose_power()
    await asyncio.sleep(0.5)
    assert await world.start_broker()


def run_world(seed: int) -> tuple[list[int], list[bytes], str]:
    """The offsets that were told, the values that are stored, and the hash of the trace."""
    world = BrokerWorld(seed)

    async def story() -> tuple[list[int], list[bytes]]:
        assert await world.start_broker()
        admin, link = world.start_client("admin")
        await admin.run(
            world.loop.create_task, TopicClient(link, world.history).create("orders", 1)
        )
        client, _ = world.start_client("producer")
        producing = client.run(world.loop.create_task, produce(world))
        await trouble(world)
        offsets = await producing
        reading, link = world.start_client("reader")
        partition = TopicPartition("orders", 0)
        reader = ReadingClient(link, world.history, [partition])
        contents = await reading.run(world.loop.create_task, reader.read_all())
        return offsets, [stored.value for stored in contents[partition]]

    try:
        offsets, values = world.run(story())
        world.check_no_failure()
        return offsets, values, world.trace.hash
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(rounds(3, 30)))
def test_each_record_is_there_once_and_in_order(seed: int) -> None:
    offsets, values, _ = run_world(seed)
    assert values == [b"%d" % number for number in range(RECORD_COUNT)]
    assert offsets == list(range(RECORD_COUNT))


def test_two_runs_of_a_seed_are_the_same() -> None:
    assert run_world(5) == run_world(5)


def test_whoever_gets_on_may_wait_anew() -> None:
    """Rows for which there is no room count `max.block.ms` from the last ones that were taken."""
    world = BrokerWorld(5)
    waited_s: list[float] = []

    def take(waits: list[Wait]) -> Generator[Wait, None, None]:
        for wait in waits:
            began_s = world.loop.time()
            with contextlib.suppress(KafkaError):
                yield wait
            waited_s.append(round(world.loop.time() - began_s, 1))

    async def story() -> None:
        # There is no broker that could tell of the topic.
        async with simulated(world)(
            bootstrap_servers=f"{HOST}:{PORT}", max_block_ms=2_000
        ) as producer:
            topic = ForTopic("orders", is_known=False)
            await producer._running.drive(take([topic, topic, ForTurn(), topic]))

    try:
        client, _ = world.start_client("producer")

        async def on_client() -> None:
            await client.run(world.loop.create_task, story())

        world.run(on_client())
    finally:
        world.close()
    assert waited_s == [2.0, 0.0, 0.0, 2.0]
