"""A message in the page cache survives its broker, and not its broker's machine: simulated power.

A lone broker writes to the page cache and answers. With acks=1 that is all; with acks=all it first
waits for an fsync that many writers share (unless `acks.all.flush` is off).
"""

from random import Random
from typing import Literal

from headwater import AsyncConsumer, AsyncProducer, TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.sim.broker_world import HOST, PORT, BrokerWorld
from headwater.sim.clients.topic_client import TopicClient

_COUNT = 20
_TOPIC = "orders"


def _survivors(seed: int, acks: Literal["1", "all"]) -> list[bytes]:
    """What is left of messages that were acknowledged just before the power went."""
    world = BrokerWorld(seed)
    bootstrap = f"{HOST}:{PORT}"

    def environment() -> ClientEnvironment:
        return ClientEnvironment(world.clock, generator=Random(seed))

    async def send() -> None:
        async with in_environment(AsyncProducer, environment())(
            bootstrap_servers=bootstrap,
            acks=acks,
            enable_idempotence=acks == "all",
            linger_ms=0,
        ) as producer:
            for number in range(_COUNT):
                written = await producer.send_and_wait(_TOPIC, b"%d" % number, partition=0)
                assert written.offset == number
            world.lose_power()

    async def read() -> list[bytes]:
        partition = TopicPartition(_TOPIC, 0)
        found: list[bytes] = []
        async with in_environment(AsyncConsumer, environment())(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([partition])
            end = (await consumer.end_offsets([partition]))[partition]
            while len(found) < end:
                found += [record.value for record in await consumer.poll(1.0)]
        return found

    async def run() -> list[bytes]:
        assert await world.start_broker()
        process, link = world.start_client("admin")
        topics = TopicClient(link, world.history)
        await process.run(world.loop.create_task, topics.create(_TOPIC, 1))
        process, _ = world.start_client("producer")
        await process.run(world.loop.create_task, send())
        assert await world.start_broker()
        process, _ = world.start_client("reader")
        return await process.run(world.loop.create_task, read())

    try:
        return world.run(run())
    finally:
        world.close()


def test_acks_1_loses_what_was_not_on_disk_yet() -> None:
    assert any(len(_survivors(seed, acks="1")) < _COUNT for seed in range(30))


def test_acks_all_on_a_lone_broker_is_on_disk() -> None:
    for seed in range(4):
        assert _survivors(seed, acks="all") == [b"%d" % number for number in range(_COUNT)]
