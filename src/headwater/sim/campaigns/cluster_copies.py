"""The exactly-once campaign with Headwater's own client, on a cluster of three brokers in trouble.

Clients and what must hold in the end are those of `client`; what befalls the brokers is
`cluster_trouble`. So group and transaction coordinators move from broker to broker while groups are
rebalanced and transactions are under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

from headwater.base.ids import TopicPartition
from headwater.sim.broker_world import BrokerWorld
from headwater.sim.campaigns import broker as broker_campaign
from headwater.sim.campaigns.client import ClientCampaign
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
)
from headwater.sim.campaigns.exactly_once import READERS, SOURCE, TARGET
from headwater.sim.clients.committed_reader import Visible
from headwater.sim.clients.reading_client import ReadingClient
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import Contents, Stored

_LOOK_INTERVAL_S = 0.05


class ClusterCopyCampaign(ClientCampaign):
    cluster: ClusterWorld

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.trouble = ClusterTrouble(self.cluster, self.random, lambda _partition: None)

    def make_world(self, seed: int) -> BrokerWorld:
        choices, rng = ClusterChoices(seed), Random(f"groups {seed}")
        choices.settings |= {
            "offsets.topic.replication.factor": str(REPLICATION_FACTOR),
            "offsets.topic.num.partitions": rng.choice(("1", "3")),
            "transaction.state.log.replication.factor": str(REPLICATION_FACTOR),
            "transaction.state.log.num.partitions": rng.choice(("1", "3")),
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": rng.choice(("0", "300")),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
        self.cluster = choices.world(seed)
        # It has all of the other that the clients of these campaigns use.
        return cast(BrokerWorld, self.cluster)

    # -- brokers ---------------------------------------------------------------------------------

    def _make_network_bad(self) -> None:
        self.trouble.make_network_bad()

    async def _start(self) -> None:
        await self.trouble.start_all()
        self._start_task(lambda start, work: start(work), self._look_at_brokers(), self._endless)

    async def _look_at_brokers(self) -> None:
        while True:
            self.cluster.observer.look()
            await asyncio.sleep(_LOOK_INTERVAL_S)

    def events(self) -> list[tuple[Callable[[], Coroutine[Any, Any, None]], int]]:
        return [
            (self.trouble_a_broker, 30),
            (self.kill_member, 6),
            (self.replace_copier, 4),
            (self.add_member, 3),
            (self.leave_group, 3),
        ]

    async def trouble_a_broker(self) -> None:
        self.trouble.happen()
        self.cluster.observer.compare_logs()

    async def _heal(self) -> None:
        partitions = list(self.cluster.observer.states)
        await self.trouble.heal(partitions, broker_campaign.HEALED_TIME_MAX_S)

    # -- clients ---------------------------------------------------------------------------------

    def _settings(self, name: str) -> dict[str, Any]:
        addresses = ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)
        return {
            **super()._settings(name),
            "bootstrap_servers": addresses,
        }

    async def _start_clients(self) -> None:
        cluster, random = self.cluster, self.random
        process, link = cluster.start_client("admin")
        admin = TopicClient(link, cluster.history, replication_factor=REPLICATION_FACTOR)
        self._partition_count = random.randint(1, 3)
        for topic in (SOURCE, TARGET):
            work = admin.create(topic, self._partition_count)
            async with asyncio.timeout(broker_campaign.HEALED_TIME_MAX_S):
                await process.run(cluster.loop.create_task, work)
        for number in range(self._partition_count):
            # One for each partition, so that a record that is lost and comes again finds its place.
            self._start_producer(TopicPartition(SOURCE, number), random.randint(10, 40))
        for number in range(random.randint(1, 3)):
            self._start_copier(f"copier-{number}")
        for _ in range(random.randint(1, 2)):
            self._start_member(READERS, None)
        process, link = cluster.start_client("watcher")
        self._start_task(process.run, self._watch_target(link.name), self._endless)

    async def _read_both(self) -> tuple[Contents, list[Visible]]:
        cluster = self.cluster
        source: dict[TopicPartition, list[Stored]] = {}
        visible: list[Visible] = []
        for partition in self._numbered(SOURCE):
            process, link = cluster.start_client("reader", partition)
            reader = ReadingClient(link, cluster.history, [partition])
            source |= await process.run(cluster.loop.create_task, reader.read_all())
        for partition in self._numbered(TARGET):
            process, link = cluster.start_client("reader", partition)
            reading = self._read_committed(link, [partition])
            visible += await process.run(cluster.loop.create_task, reading)
        self.cluster.observer.compare_logs()
        return source, visible
