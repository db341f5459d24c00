"""The simulated clients of groups and transactions speak Kafka's protocol, as Kafka itself tells.

What they find wrong in the campaign is then the broker's fault and not theirs.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from headwater.base.ids import TopicPartition
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clients.committed_reader import CommittedReader, Visible
from headwater.sim.clients.group_member import GroupMember
from headwater.sim.clients.group_offsets import fetch_committed
from headwater.sim.clients.producing_client import ProducingClient
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.clients.transactional_copier import TransactionalCopier
from headwater.sim.histories.group_history import GroupHistory
from headwater.sim.histories.history import History
from headwater.sim.histories.transaction_history import (
    Ending,
    TransactionHistory,
    check_copied_once,
)
from headwater.testing import broker
from tests.support.kafka.node import small_node

PARTITION_COUNT = 2
SOURCE = [TopicPartition("source", number) for number in range(PARTITION_COUNT)]
TARGET = [TopicPartition("target", number) for number in range(PARTITION_COUNT)]
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    # The clients' clock starts years ago.
    "log.retention.ms": "-1",
}


class World:
    def __init__(self, address: tuple[str, int], checks_stable_offset: bool) -> None:
        self.address = address
        self._checks_stable_offset = checks_stable_offset
        self.history = History()
        self.groups = GroupHistory()
        self.transactions = TransactionHistory()
        self._random = Random(1)
        self._links: list[BrokerLink] = []

    def link(self, name: str) -> BrokerLink:
        random = Random(self._random.random())
        self._links.append(BrokerLink(name, self.address, random, timeout_s=10.0))
        return self._links[-1]

    async def close(self) -> None:
        for link in self._links:
            await link.close()

    def member(self, group_id: str, name: str, instance_id: str | None = None) -> GroupMember:
        return self._member_on(self.link(name), group_id, instance_id)

    def _member_on(
        self, link: BrokerLink, group_id: str, instance_id: str | None = None
    ) -> GroupMember:
        member = GroupMember(
            link,
            self.history,
            self.groups,
            group_id,
            {"source": PARTITION_COUNT},
            instance_id=instance_id,
        )
        member.reader.checks_stable_offset = self._checks_stable_offset
        return member

    def copier(
        self, name: str, *, is_version_2: bool, transactional_id: str | None = None
    ) -> TransactionalCopier:
        link = self.link(name)
        member = self._member_on(link, "copiers")
        return TransactionalCopier(
            link,
            self.history,
            self.groups,
            self.transactions,
            member,
            transactional_id=transactional_id or name,
            target_topic="target",
            is_version_2=is_version_2,
        )


async def copy_through(address: tuple[str, int], *, checks_stable_offset: bool) -> None:
    world = World(address, checks_stable_offset)
    try:
        await asyncio.wait_for(copy_everything(world), 120)
    finally:
        await world.close()


async def copy_everything(world: World) -> None:
    admin = TopicClient(world.link("admin"), world.history)
    for topic in ("source", "target"):
        await admin.create(topic, PARTITION_COUNT)
    first = world.copier("first", is_version_2=True)
    tasks = [
        asyncio.create_task(first.run()),
        asyncio.create_task(world.copier("second", is_version_2=False).run()),
        asyncio.create_task(world.member("readers", "one").consume()),
        asyncio.create_task(world.member("readers", "two", "static").consume()),
    ]
    producing = [
        ProducingClient(world.link("producer"), world.history, each, is_idempotent=True).run(8)
        for each in SOURCE
    ]
    await asyncio.gather(*producing)
    # Somebody takes over while the first still runs: that one is fenced, and ends.
    first.has_successor = True
    successor = world.copier("successor", is_version_2=True, transactional_id="first")
    tasks.append(asyncio.create_task(successor.run()))
    ends = {each: world.history.acknowledged_end(each) for each in SOURCE}
    link = world.link("watcher")
    for group_id in ("copiers", "readers"):
        while await fetch_committed(link, world.groups, group_id, SOURCE) != ends:
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.05)
    world.groups.check_all_delivered("readers", ends)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    reader = CommittedReader(link, world.history)
    reader.positions = dict.fromkeys(TARGET, 0)
    visible: list[Visible] = []
    while not reader.is_at_end:
        visible += await reader.fetch()
    world.transactions.check_all(visible)
    source = await ReadingClient(link, world.history, SOURCE).read_all()
    check_copied_once(source, visible, dict(zip(SOURCE, TARGET, strict=True)))
    assert len(visible) == sum(ends.values()) > 10
    assert world.transactions.count(Ending.COMMITTED) > 0


@pytest.mark.kafka
def test_copies_through_apache_kafka(tmp_path: Path) -> None:
    with small_node(tmp_path, SETTINGS) as node:
        host, _, port = node.bootstrap.rpartition(":")
        asyncio.run(copy_through((host, int(port)), checks_stable_offset=False))


def test_copies_through_headwater() -> None:
    running = broker(settings=SETTINGS)
    try:
        asyncio.run(copy_through((running.host, running.port), checks_stable_offset=True))
    finally:
        running.close()
