"""Brokers that are no more than their registrations, and the controllers among them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.identity import prepare_store
from headwater.cluster.image.image import BrokerInfo, ClusterImage, PartitionImage
from headwater.cluster.image.loader import load_image
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.new_topic import ControllerOptions, ManualAssignment, NewTopic
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from tests.support.brokers.controllers import Seat, broker_info, take_seat
from tests.support.brokers.metadata_stores import EmbeddedWorld, StoreWorld, open_in_memory


class BrokerCrowd:
    """Register and expire brokers on one store; one of them is the controller."""

    def __init__(
        self, world: StoreWorld, observer: MetadataStore, options: ControllerOptions | None = None
    ) -> None:
        self.world = world
        self.options = options
        self.sessions: dict[int, MetadataStore] = {}
        self.brokers: dict[int, BrokerInfo] = {}
        #: All controllers there have been.
        self.seats: list[Seat] = []
        #: A session of nobody, to look into the store.
        self.observer = observer

    @property
    def seat(self) -> Seat:
        """The newest controller."""
        return self.seats[-1]

    @property
    def image(self) -> ClusterImage:
        return self.seat.controller.image

    @classmethod
    async def of(
        cls, broker_ids: Iterable[int], options: ControllerOptions | None = None
    ) -> BrokerCrowd:
        """Live brokers on a store in memory, the first of which is the controller."""
        return await cls.on(EmbeddedWorld(await open_in_memory()), broker_ids, options)

    @classmethod
    async def on(
        cls,
        world: StoreWorld,
        broker_ids: Iterable[int],
        options: ControllerOptions | None = None,
    ) -> BrokerCrowd:
        """The same on a store of the test's choice."""
        crowd = cls(world, await world.connect(), options)
        await prepare_store(crowd.observer)
        for broker_id in broker_ids:
            await crowd.register(broker_id)
        await crowd.elect(next(iter(crowd.brokers)))
        return crowd

    async def register(
        self, broker_id: int, *, is_unclean: bool = False, is_restarted: bool = False
    ) -> None:
        session = await self.world.connect()
        broker = broker_info(broker_id)
        self.brokers[broker_id] = await register_broker(
            session, broker, 0, is_unclean=is_unclean, is_restarted=is_restarted
        )
        self.sessions[broker_id] = session

    async def fail(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            del self.brokers[broker_id]
            await self.world.expire(self.sessions.pop(broker_id))

    async def elect(self, broker_id: int) -> Seat:
        """Make a broker the controller; there must be none."""
        broker = self.brokers[broker_id]
        seat = await take_seat(
            self.sessions[broker_id],
            self.options,
            broker=broker,
            is_registered=True,
            seed=len(self.seats),
        )
        self.seats.append(seat)
        return seat

    async def replace_controller(self, broker_id: int) -> Seat:
        """Let another broker take over while the old controller has not noticed."""
        await self.observer.delete("/controller")
        return await self.elect(broker_id)

    async def settle(self) -> None:
        """Wait until the controller knows who is there, and has dealt with the marks of those."""
        async with asyncio.timeout(20):
            while self.image.brokers != self.brokers or await self._marked():
                await asyncio.sleep(0)

    async def _marked(self) -> bool:
        marks = await self.observer.children("/brokers/unclean")
        return any(int(name) in self.brokers for name in marks)

    async def create(self, topic: str, *replicas: tuple[int, ...]) -> None:
        assignments = [ManualAssignment(*each) for each in enumerate(replicas)]
        new_topic = NewTopic(topic, assignments=assignments)
        answer = (await self.seat.controller.create_topics([new_topic]))[topic]
        if isinstance(answer, Exception):
            raise answer

    async def create_each(self, *replicas: tuple[int, ...]) -> None:
        """A topic for each assignment, called 0, 1, ..., with one partition."""
        for number, assignment in enumerate(replicas):
            await self.create(str(number), assignment)

    def led(self) -> list[tuple[int, tuple[int, ...]]]:
        """The leaders and ISRs of the topics that `create_each` has made."""
        return [
            (topic.partitions[0].leader, topic.partitions[0].isr)
            for name, topic in sorted(self.image.topics.items())
            if name.isdecimal()
        ]

    def partition(self, topic: str = "t", number: int = 0) -> PartitionImage:
        return self.image.topics[topic].partitions[number]

    async def alter(
        self, isr: Iterable[int], topic: str = "t", number: int = 0
    ) -> ResponsePartitionData:
        """Have the leader of a partition ask for an ISR."""
        partition = self.partition(topic, number)
        request = self.alteration(partition.leader, isr, topic, number)
        response = await self.seat.controller.alter_partitions(request)
        if response.error_code:
            raise KafkaError(ErrorCode.from_wire(response.error_code))
        return response.topics[0].partitions[0]

    def alteration(
        self, broker_id: int, isr: Iterable[int], topic: str = "t", number: int = 0
    ) -> AlterPartitionRequest:
        partition = self.partition(topic, number)
        members = [BrokerState(broker_id=each, broker_epoch=self._epoch(each)) for each in isr]
        data = RequestPartitionData(
            partition_index=number,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=partition.partition_epoch,
        )
        return AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=self._epoch(broker_id),
            topics=[
                RequestTopicData(topic_id=self.image.topics[topic].topic_id, partitions=[data])
            ],
        )

    async def close(self) -> None:
        """End the controllers; the store is whoever's who opened it."""
        for seat in self.seats:
            await seat.controller.close()

    def _epoch(self, broker_id: int) -> int:
        return self.brokers[broker_id].broker_epoch if broker_id in self.brokers else -1


async def fresh_image(crowd: BrokerCrowd) -> ClusterImage:
    """What the store holds, read anew."""
    return await load_image(crowd.observer)


def describe(image: ClusterImage) -> tuple[object, ...]:
    """An image without what tells one controller's version of it from another's."""
    return (
        image.cluster_id,
        dict(image.brokers),
        sorted(image.topics.items()),
        sorted((str(key), name) for key, name in image.topic_names.items()),
        sorted((key, dict(value.configs), value.version) for key, value in image.configs.items()),
    )
