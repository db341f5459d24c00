"""A seeded campaign of retries and dead letters on three brokers in a simulated world.

Programs send records on to a retry topic, in transactions or not; some are to be shown again, the
others are dead letters. The brokers are in trouble as in `delays`, the moves of dead letters among
all else. Then the world is healed, and each record that was sent on has come to one end:

- one with attempts left was shown again once, in the retry topic, and nowhere else;
- a dead letter is in the dead-letter topic once, for those who read what is committed, and was
  never shown in the retry topic;
- nothing of an aborted transaction is anywhere, and nothing waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import nullcontext
from random import Random
from typing import Any

from headwater.base.ids import TopicPartition
from headwater.client.environment import ClientEnvironment, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.sim.campaigns import cluster
from headwater.sim.campaigns.cluster import ClusterCampaign
from headwater.sim.campaigns.cluster_trouble import (
    REPLICATION_FACTOR,
    ClusterChoices,
    ClusterTrouble,
)
from headwater.sim.campaigns.delay_bounds import small_bounds
from headwater.sim.campaigns.delays.trouble import DelayTrouble
from headwater.sim.clients.failing_client import FailingClient, Failure
from headwater.sim.clients.topic_client import TopicClient
from headwater.sim.clients.visible_reader import VisibleReader
from headwater.sim.cluster_world import ClusterWorld
from headwater.sim.histories.history import PropertyViolated
from headwater.sim.histories.transaction_history import Ending

_RETRY_TOPIC = "retry.billing"
_DEAD_TOPIC = "dlq.billing"
_ATTEMPTS_MAX = 2
#: Longer than any trouble lasts, so that what is given up was given up wrongly.
_PATIENCE_MS = 10 * 60_000
#: Virtual seconds within which nothing waits any more in a healed world.
_MOVED_S_MAX = 200.0


class RetryCampaign(ClusterCampaign):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.clients: list[FailingClient] = []
        self._has_small_bounds = self.random.random() < 0.6

    def run(self, event_count: int = 6) -> str:
        with small_bounds() if self._has_small_bounds else nullcontext():
            return super().run(event_count)

    def make_world(self, seed: int) -> ClusterWorld:
        choices = ClusterChoices(seed)
        choices.settings |= {
            "transaction.state.log.replication.factor": str(REPLICATION_FACTOR),
            "transaction.state.log.num.partitions": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
        return choices.world(seed)

    def make_trouble(self) -> ClusterTrouble:
        return DelayTrouble(self.world, self.random, self._set_back)

    @property
    def failures(self) -> list[Failure]:
        return [failure for client in self.clients for failure in client.failures]

    @property
    def moved_count(self) -> int:
        return sum(
            failure.is_dead and failure.ending is Ending.COMMITTED for failure in self.failures
        )

    # -- clients ---------------------------------------------------------------------------------

    async def _start_clients(self) -> None:
        random = self.random
        topics: dict[str, dict[str, str]] = {
            _DEAD_TOPIC: {"errors.deadletterqueue.group.enable": "true"},
            _RETRY_TOPIC: {
                "delay.mode": "retry",
                "retry.delays": "300ms,2s",
                "retry.dead.letter.topic": _DEAD_TOPIC,
            },
        }
        process, link = self.world.start_client("admin")
        admin = TopicClient(link, self.world.history, replication_factor=REPLICATION_FACTOR)
        for name, configs in topics.items():
            async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
                self.partitions += await process.run(
                    self.world.loop.create_task,
                    admin.create(name, random.randint(1, 2), configs),
                )
        for number in range(random.randint(2, 3)):
            self._start_failing(is_transactional=number == 1)

    def _start_failing(self, *, is_transactional: bool) -> None:
        process, link = self.world.start_client("failing")
        environment = ClientEnvironment(
            clock=self.world.clock, generator=Random(self.random.random())
        )
        settings: dict[str, Any] = {
            "bootstrap_servers": ",".join(f"{host}:{port}" for host, port in self.world.addresses),
            "client_id": link.name,
            "request_timeout_ms": self.random.choice((2_000, 10_000)),
            "delivery_timeout_ms": _PATIENCE_MS,
            "max_block_ms": _PATIENCE_MS,
        }
        if is_transactional:
            settings |= {"transactional_id": link.name, "transaction_timeout_ms": 60_000}
        client = FailingClient(
            link.name,
            _RETRY_TOPIC,
            _ATTEMPTS_MAX,
            link.random,
            lambda: in_environment(AsyncProducer, environment)(**settings),
        )
        self.clients.append(client)
        work = client.run_transactions() if is_transactional else client.run()
        self._start_task(process.run, work, self._working)

    # -- the end ---------------------------------------------------------------------------------

    async def _finish_clients(self) -> None:
        for client in self.clients:
            client.is_finishing = True
        await super()._finish_clients()
        await self._wait_moved()

    async def _wait_moved(self) -> None:
        end_s = self.world.loop.time() + _MOVED_S_MAX
        while (waiting := self._waiting_count()) != 0:
            if self.world.loop.time() > end_s:
                raise PropertyViolated(
                    f"what is given up leaves, and what is due comes: {waiting} still wait after "
                    f"{_MOVED_S_MAX:g} s"
                )
            await asyncio.sleep(0.5)

    def _waiting_count(self) -> int | None:
        """What waits in all partitions, as their leaders know; None while one does not."""
        count = 0
        for partition in self.partitions:
            if partition.topic != _RETRY_TOPIC:
                continue
            known = [
                delays.known_state
                for host in self.world.hosts
                if host.serves
                for led, delays in host.server.context.delays
                if led.topic_partition == partition and delays.known_state is not None
            ]
            if len(known) != 1 or known[0] is None:
                return None
            count += known[0].waiting.count
        return count

    async def _check_end(self) -> None:
        shown = await self._read(_RETRY_TOPIC)
        dead = await self._read(_DEAD_TOPIC)
        for failure in self.failures:
            here, elsewhere = (dead, shown) if failure.is_dead else (shown, dead)
            counts = here[failure.value], elsewhere[failure.value]
            allowed = {
                Ending.COMMITTED: {(1, 0)},
                Ending.ABORTED: {(0, 0)},
            }.get(failure.ending, {(0, 0), (1, 0)})
            if counts not in allowed:
                raise PropertyViolated(
                    f"each record comes to one end: {failure} is {counts[0]} times where it "
                    f"belongs and {counts[1]} times where it does not"
                )
        self.world.observer.look()
        self.world.observer.compare_logs()

    async def _read(self, topic: str) -> Counter[bytes]:
        """How often each value is there, for a reader of what is committed."""
        found: Counter[bytes] = Counter()

        def see(_: TopicPartition, value: bytes) -> None:
            found[value] += 1

        for partition in self.partitions:
            if partition.topic == topic:
                process, link = self.world.start_client("reader", partition)
                reader = VisibleReader(
                    link, self.world.history, partition, see, committed_only=True
                )
                async with asyncio.timeout(cluster.HEALED_TIME_MAX_S):
                    await process.run(self.world.loop.create_task, reader.read_to_end())
        return found
