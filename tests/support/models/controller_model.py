"""A cluster of registrations that is driven at random, and what must hold of it at every moment.

Who has everything. For each partition the model knows the brokers whose copy holds all that was
acknowledged. A record is acknowledged when all of the ISR are alive and have it; of an ISR of one
it is on disk as well, as is what the only member had before. A broker that comes back unclean has
lost what it had not on disk. Whoever is elected, unless uncleanly, must have everything, as long as
fewer than two brokers have lost it at once: that is the promise.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from headwater.base.clocks import ManualClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cluster.controller.controller import Controller
from headwater.cluster.image.image import NO_LEADER, ClusterImage, PartitionImage
from headwater.cluster.image.rules import check_partition
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.reassignment.requests import Reassignment
from headwater.cluster.reassignment.steps import next_state
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.topics.new_topic import NewPartitions, NewTopic
from tests.support.fakes.peers.doubtful_store import DoubtfulWorld, FencedJournal
from tests.support.models.broker_crowd import BrokerCrowd, describe, fresh_image

BROKERS = range(5)


@dataclass
class Copies:
    """Who has everything of a partition, and who of them on disk."""

    complete: set[int] = field(default_factory=set)
    on_disk: set[int] = field(default_factory=set)
    #: How many lost it since the last record was acknowledged.
    loss_count: int = 0
    #: The ISR that the leader has asked for, as long as it does not know what came of it.
    asked: set[int] = field(default_factory=set)

    def ask(self, leader: int, isr: set[int]) -> None:
        """The leader asks for an ISR: whoever shall join has caught up."""
        if leader not in isr:
            return
        self.asked = set(isr)
        if leader in self.complete:
            self.complete |= isr
            if len(isr) == 1:
                self.on_disk.add(leader)

    def lose(self, broker_id: int) -> None:
        self.loss_count += broker_id in self.complete
        if broker_id not in self.on_disk:
            self.complete.discard(broker_id)
        if self.loss_count >= 2:
            self.complete.clear()


class ControllerModel:
    """Each method is one thing that happens; `check` looks at what the controllers made of it."""

    def __init__(self, crowd: BrokerCrowd, world: DoubtfulWorld) -> None:
        self.crowd = crowd
        self._world = world
        self.copies: dict[tuple[object, int], Copies] = {}
        self._checked: dict[int, int] = {}
        self._last: dict[tuple[object, int], PartitionImage] = {}
        #: By partition and leader epoch, the life of the leader that had it first.
        self._lives: dict[tuple[object, int, int], int] = {}
        #: The lives of brokers whose last one did not end in order.
        self._not_in_order: set[int] = set()
        #: By partition, a leader whose log is gone, and that has asked to be replaced.
        self._resigning: dict[tuple[object, int], int] = {}
        self._controller_epoch = 0
        self._names = 0
        self._unclean_wanted = False

    @classmethod
    async def begin(cls) -> ControllerModel:
        store = await EmbeddedStore.open(FencedJournal(), ManualClock())
        world = DoubtfulWorld(store)
        return cls(await BrokerCrowd.on(world, BROKERS), world)

    # -- what happens ----------------------------------------------------------------------------

    async def fail(self, chance: random.Random) -> None:
        """Some brokers go; if the controller's was among them, another is elected."""
        present = sorted(self.crowd.brokers)
        gone = chance.sample(present, min(chance.choice([1, 1, 2, 5]), len(present)))
        await self.crowd.fail(*gone)
        await self.see_to_controller(chance)

    async def come_back(self, chance: random.Random, *, is_unclean: bool) -> None:
        absent = sorted(set(BROKERS) - self.crowd.brokers.keys())
        for broker_id in absent[: chance.choice([1, 1, 5])]:
            is_restarted = chance.random() < 0.5
            await self._register(broker_id, is_unclean=is_unclean, is_restarted=is_restarted)
        await self.see_to_controller(chance)

    async def restart(self, chance: random.Random) -> None:
        """A broker goes and comes back before anybody has looked."""
        if self.crowd.brokers:
            broker_id = chance.choice(sorted(self.crowd.brokers))
            await self.crowd.fail(broker_id)
            is_unclean, is_restarted = chance.random() < 0.3, chance.random() < 0.5
            await self._register(broker_id, is_unclean=is_unclean, is_restarted=is_restarted)
        await self.see_to_controller(chance)

    async def doubt(self, chance: random.Random) -> None:
        """The answers to the next writes are lost, and some of the writes too."""
        self._world.fates += [chance.random() < 0.5 for _ in range(chance.choice([1, 1, 2, 3]))]

    async def replace_controller(self, chance: random.Random) -> None:
        """Another takes over; the old one still tries to change something."""
        if not self.crowd.brokers:
            return
        old = self.crowd.seat
        self._world.fates.clear()
        await self.crowd.replace_controller(chance.choice(sorted(self.crowd.brokers)))
        told = len(old.publisher.changes)
        answer = (await old.controller.create_topics([NewTopic("zombie")]))["zombie"]
        assert isinstance(answer, KafkaError)
        await old.controller.close()
        for change in old.publisher.changes[told:]:
            # Which brokers live it has only read; to announce anything else it must write first.
            assert not change.changed_topics and not change.changed_partitions
            assert not change.changed_configs and not change.deleted_topics

    async def create(self, chance: random.Random) -> None:
        self._names += 1
        count = min(chance.randint(1, 4), len(self.crowd.image.brokers))
        if count:
            topic = NewTopic(f"t{self._names}", chance.randint(1, 3), count)
            await self._controller().create_topics([topic])

    async def grow(self, chance: random.Random) -> None:
        topic = self._any_topic(chance)
        if topic is not None:
            count = len(self.crowd.image.topics[topic].partitions)
            await self._controller().create_partitions([NewPartitions(topic, count + 1)])

    async def delete(self, chance: random.Random) -> None:
        topic = self._any_topic(chance)
        if topic is not None:
            await self._controller().delete_topics([topic])

    async def alter(self, chance: random.Random) -> None:
        """A leader changes the ISR, or resigns, as it was when it looked."""
        name = self._any_partition(chance)
        if name is None:
            return
        partition = self.crowd.partition(*name)
        if partition.leader not in self.crowd.brokers:
            return
        isr = {each for each in partition.replicas if chance.random() < 0.6} | {partition.leader}
        if chance.random() < 0.1:
            isr = set(partition.isr) - {partition.leader}
        key = (self.crowd.image.topics[name.topic].topic_id, name.partition)
        copies = self.copies.setdefault(key, Copies())
        copies.ask(partition.leader, isr)
        if partition.leader not in isr:
            self._resigning[key] = partition.leader
        answer = await self.crowd.alter(sorted(isr), *name)
        self.check()
        copies.asked.clear()
        if answer.error_code == ErrorCode.NONE:
            # Whoever leaves is no longer waited for.
            copies.complete &= set(answer.isr)

    async def acknowledge(self, chance: random.Random) -> None:
        """Partitions whose ISR is alive acknowledge a record.

        A broker follows nobody before the controller has told it whom.
        """
        known = self.crowd.image.brokers.items()
        following = {each for each, broker in known if self.crowd.brokers.get(each) == broker}
        for topic in self.crowd.image.topics.values():
            for number, partition in enumerate(topic.partitions):
                copies = self.copies.setdefault((topic.topic_id, number), Copies())
                # A leader that has asked for another ISR waits for both.
                isr = copies.asked.union(partition.isr)
                if partition.leader != NO_LEADER and isr <= following:
                    copies.complete = isr
                    copies.on_disk = {partition.leader} if len(partition.isr) == 1 else set()
                    copies.loss_count = 0

    async def shut_down(self, chance: random.Random) -> None:
        image = self.crowd.image
        if image.brokers:
            broker = image.brokers[chance.choice(sorted(image.brokers))]
            await self._controller().shut_down_broker(broker.broker_id, broker.broker_epoch)

    async def elect(self, chance: random.Random) -> None:
        kind = chance.choice([ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN])
        self._unclean_wanted = kind is ElectionType.UNCLEAN
        name = self._any_partition(chance)
        chosen: list[TopicPartition] | None = [name] if name and chance.random() < 0.5 else None
        outcome = await self._controller().elect_leaders(kind, chosen)
        self.check()
        self._unclean_wanted = False
        for topic, number in outcome if kind is ElectionType.UNCLEAN else ():
            # Whatever the answer says: it may be done, and what others had is then lost.
            if topic in self.crowd.image.topics:
                key = (self.crowd.image.topics[topic].topic_id, number)
                self.copies.setdefault(key, Copies()).complete.clear()

    async def reassign(self, chance: random.Random) -> None:
        """Partitions shall be elsewhere, or where they were; also while they are on their way."""
        names = {self._any_partition(chance) for _ in range(chance.choice([1, 1, 3]))}
        wanted = [
            Reassignment(
                name,
                None
                if chance.random() < 0.3
                else tuple(chance.sample(BROKERS, chance.choice([1, 1, 2, 3, 4]))),
            )
            for name in sorted(filter(None, names))
        ]
        outcome = await self._controller().reassign_partitions(wanted)
        assert outcome.keys() == {each.partition for each in wanted}
        self.check()

    # -- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        """Look at every image that was announced since the last time."""
        for index, seat in enumerate(self.crowd.seats):
            changes = seat.publisher.changes
            for change in changes[self._checked.get(index, 0) :]:
                self._check_image(change.image)
            self._checked[index] = len(changes)

    async def check_store(self) -> None:
        """When all is quiet, the image is what the store holds, and who can lead does."""
        self._world.fates.clear()
        await self.see_to_controller(random.Random(0))
        await self.crowd.settle()
        # A move that can go on does so, right behind the change that it waited for.
        async with asyncio.timeout(20):
            while self._is_any_move_able_to_go_on():
                await asyncio.sleep(0)
        self.check()
        assert describe(self.crowd.image) == describe(await fresh_image(self.crowd))
        leaders = {
            partition.leader
            for topic in self.crowd.image.topics.values()
            for partition in topic.partitions
        }
        assert leaders <= {NO_LEADER, *self.crowd.brokers}

    def _is_any_move_able_to_go_on(self) -> bool:
        image, seat = self.crowd.image, self.crowd.seat
        live = image.brokers.keys()
        electable = live - seat.controller.shutting_down
        return any(
            next_state(partition, live, electable, 1) is not None
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def _check_image(self, image: ClusterImage) -> None:
        if image.controller_epoch < self._controller_epoch:
            # Brokers have heard of a later controller, and do not listen to this one.
            return
        self._controller_epoch = image.controller_epoch
        for topic in image.topics.values():
            for number, partition in enumerate(topic.partitions):
                key = (topic.topic_id, number)
                before = self._last.get(key)
                if before != partition:
                    self._check_partition(key, before, partition)
                    self._last[key] = partition
                    self._check_leader(key, before, partition, image)
                self._check_life(key, partition, image)

    def _check_life(
        self, key: tuple[object, int], partition: PartitionImage, image: ClusterImage
    ) -> None:
        """Whoever did not stop in order leads in another epoch than before, or not at all."""
        leader = image.brokers.get(partition.leader)
        if leader is not None:
            life = self._lives.setdefault((*key, partition.leader_epoch), leader.broker_epoch)
            assert life == leader.broker_epoch or leader.broker_epoch not in self._not_in_order

    def _check_partition(
        self, key: tuple[object, int], before: PartitionImage | None, after: PartitionImage
    ) -> None:
        assert after.isr and set(after.isr) <= set(after.replicas)
        assert len(set(after.isr)) == len(after.isr)
        assert after.leader in (NO_LEADER, *after.isr)
        if before is None:
            self.copies.setdefault(key, Copies(set(after.isr), set(after.isr)))
            return
        self.copies[key].asked.clear()
        resigned = self._resigning.pop(key, None)
        if resigned is not None and resigned not in after.isr:
            # Its log was gone, whether or not it heard that another leads.
            self.copies[key].on_disk.discard(resigned)
            self.copies[key].lose(resigned)
        self._check_move(self.copies[key], before, after)
        assert after.partition_epoch > before.partition_epoch
        assert after.leader_epoch >= before.leader_epoch
        assert after.leader_epoch > before.leader_epoch or after.leader == before.leader

    def _check_move(self, copies: Copies, before: PartitionImage, after: PartitionImage) -> None:
        """Replicas come and go, and never the last that has everything."""
        check_partition(after)
        assert after.target or not after.is_moving
        gone = set(before.replicas).difference(after.replicas)
        staying = copies.complete - gone
        assert staying or not copies.complete, f"{after} has nothing of what {copies} has"
        copies.complete, copies.on_disk = staying, copies.on_disk - gone
        if after.partition_epoch > before.partition_epoch + 1:
            return  # A step between them was written, and its controller gone before it told.
        if gone:
            assert before.is_moving and gone <= set(before.removing)
            # One that is left alone has asked for it, and has all of it on its disk.
            assert len(after.isr) > 1 or before.isr == after.isr
            if not gone <= set(before.adding):
                assert set(after.replicas) == set(after.isr), "not all of the target is in sync"
        if not before.is_moving and not after.is_moving:
            assert set(after.replicas) == set(before.replicas)

    def _check_leader(
        self,
        key: tuple[object, int],
        before: PartitionImage | None,
        after: PartitionImage,
        image: ClusterImage,
    ) -> None:
        if before is None or after.leader_epoch == before.leader_epoch:
            return
        leader = image.brokers.get(after.leader)
        if leader is None or self.crowd.brokers.get(after.leader) != leader:
            # Nobody leads, or one who is gone and whose next life will not listen to this.
            return
        copies = self.copies.setdefault(key, Copies())
        if after.leader not in copies.complete:
            assert self._unclean_wanted or not copies.complete, f"{after} lacks what {copies} has"
            # What was lost is lost; the next record that is acknowledged is a new beginning.
            copies.complete, copies.on_disk = set(), set()

    # -- helpers ---------------------------------------------------------------------------------

    async def _register(
        self, broker_id: int, *, is_unclean: bool, is_restarted: bool = False
    ) -> None:
        # Whatever was decided until now was decided before the loss.
        self.check()
        if is_unclean:
            for copies in self.copies.values():
                copies.lose(broker_id)
        await self.crowd.register(broker_id, is_unclean=is_unclean, is_restarted=is_restarted)
        if is_unclean or is_restarted:
            self._not_in_order.add(self.crowd.brokers[broker_id].broker_epoch)

    async def see_to_controller(self, chance: random.Random) -> None:
        """Have another one elected if there is none, or if the one there is has given up."""
        observer = self.crowd.observer
        if self.crowd.seat.depositions and await observer.exists("/controller"):
            self._world.fates.clear()
            await observer.delete("/controller")
        for _ in range(10):
            if await observer.exists("/controller") or not self.crowd.brokers:
                return
            try:
                await self.crowd.elect(chance.choice(sorted(self.crowd.brokers)))
            except KafkaError as error:
                assert error.code == ErrorCode.NOT_CONTROLLER
                self._world.fates.clear()
                await observer.delete("/controller")

    def _controller(self) -> Controller:
        return self.crowd.seat.controller

    def _any_topic(self, chance: random.Random) -> str | None:
        names = sorted(self.crowd.image.topics)
        return chance.choice(names) if names else None

    def _any_partition(self, chance: random.Random) -> TopicPartition | None:
        topic = self._any_topic(chance)
        if topic is None:
            return None
        count = len(self.crowd.image.topics[topic].partitions)
        return TopicPartition(topic, chance.randrange(count))
