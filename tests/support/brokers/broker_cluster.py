"""Several brokers in this process: one event loop, one embedded store, real sockets on loopback.

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.stop(cluster.leader_of("orders"))
        await cluster.until(lambda: cluster.leader_of("orders") == 2)

    run_cluster_scenario(tmp_path, scenario)

Brokers are called 1, 2, 3. What the cluster looks like is read from the image of a running broker,
and all of them have one; `until` waits for what a cluster does a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.base.clocks import Clock, SystemClock
from headwater.base.threads import RunInThread
from headwater.broker.context import BrokerContext
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.server import BrokerServer
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.image.image import ClusterImage, PartitionImage
from headwater.cluster.partitions.elections import ElectionType
from headwater.cluster.store.embedded.journal import NullJournal
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore
from headwater.cluster.store.metadata_store import StoreConnector
from headwater.net.exchange import Exchange
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headwater.wire.schema import Message
from tests.support.brokers.broker_peers import prove

BROKER_IDS = (1, 2, 3)
LOOPBACK = "127.0.0.1"
_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.005

#: Small, so that a cluster is there in a moment; all are replicated as they would be for real.
SETTINGS = {
    "acks.all.flush": "off",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "0",
    "controlled.shutdown.retry.backoff.ms": "100",
}


class _Connector(EmbeddedConnector):
    """The way of one broker to the common store; it knows the session, to end it."""

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store, is_owner=False)
        self.session: EmbeddedSession | None = None
        self.may_connect = asyncio.Event()
        self.may_connect.set()

    async def connect(self) -> EmbeddedSession:
        await self.may_connect.wait()
        self.session = await super().connect()
        return self.session


class BrokerCluster:
    """Brokers that can be stopped and started one by one. See the module's text."""

    def __init__(
        self,
        directory: Path,
        store: EmbeddedStore,
        settings: Mapping[str, str],
        broker_ids: Sequence[int],
        listen_host: str = LOOPBACK,
        settings_of: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self._settings_of = settings_of or {}
        self.broker_ids = tuple(broker_ids)
        self._listen_host = listen_host
        self.servers: dict[int, BrokerServer] = {}
        self._directory = directory
        self._store = store
        self._settings = settings
        self._connectors: dict[int, _Connector] = {}
        self._channels: dict[int, PeerChannel] = {}
        #: What came to brokers that are silent.
        self._unanswered: dict[int, list[Exchange]] = {}
        #: Where each broker listens, also when it was stopped and started again.
        self._ports: dict[int, int] = {}

    # -- brokers ---------------------------------------------------------------------------------

    async def start(self, *broker_ids: int) -> None:
        """Start brokers, all of them if none are named, and return when every broker sees them."""
        started = broker_ids or self.broker_ids
        await asyncio.gather(*(self._start(broker_id) for broker_id in started))
        await self.until(
            lambda: all(
                broker_id in server.context.image.brokers
                for server in self.servers.values()
                for broker_id in started
            )
        )

    async def _start(self, broker_id: int) -> None:
        connector = self._connectors[broker_id] = _Connector(self._store)

        async def open_store(
            _settings: BrokerSettings, _path: str, _clock: Clock, _run: RunInThread
        ) -> StoreConnector:
            return connector

        texts = {
            **SETTINGS,
            **self._settings,
            "log.dirs": str(self.log_directory(broker_id)),
            **self._settings_of.get(broker_id, {}),
            "listeners": f"PLAINTEXT://{self._listen_host}:{self._ports.get(broker_id, 0)}",
            "broker.id": str(broker_id),
        }
        server = BrokerServer(static_of(texts), BrokerEnvironment(open_store=open_store))
        await server.start()
        self._ports[broker_id] = server.listeners.endpoints[0].port
        self.servers[broker_id] = server

    def log_directory(self, broker_id: int) -> Path:
        return self._directory / f"broker-{broker_id}"

    def move_away(self, broker_id: int) -> None:
        """Have a broker that is stopped come back at another address."""
        del self._ports[broker_id]

    async def stop(self, *broker_ids: int) -> None:
        """Stop brokers in order, one after the other."""
        for broker_id in broker_ids:
            channel = self._channels.pop(broker_id, None)
            if channel is not None:
                await channel.close()
            for exchange in self._unanswered.pop(broker_id, ()):
                exchange.disconnect("The broker was silent.")
            await self.servers.pop(broker_id).stop()

    def silence(self, broker_id: int) -> None:
        """Have a broker take requests and answer none, nor begin another session with the store."""
        self._connectors[broker_id].may_connect.clear()
        unanswered = self._unanswered[broker_id] = []
        self.servers[broker_id].listeners.open_gate(unanswered.append)

    async def expire(self, broker_id: int) -> None:
        """End a broker's session with the store; it goes on, and will register again."""
        session = self._connectors[broker_id].session
        assert session is not None
        await self._store.expire(session.session_id)

    def context(self, broker_id: int) -> BrokerContext:
        return self.servers[broker_id].context

    @property
    def bootstrap(self) -> str:
        return ",".join(server.addresses[0] for server in self.servers.values())

    # -- what it looks like ----------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """That of the controller's broker, or of any while there is none."""
        servers = list(self.servers.values())
        ruling = [server for server in servers if server.context.member.is_controller]
        return (ruling or servers)[0].context.image

    @property
    def controller_id(self) -> int:
        """The one broker that is the controller."""
        (controller_id,) = (
            broker_id
            for broker_id, server in self.servers.items()
            if server.context.member.is_controller
        )
        return controller_id

    def others(self, *broker_ids: int) -> list[int]:
        """The running brokers but these."""
        return [each for each in sorted(self.servers) if each not in broker_ids]

    def partition(self, topic: str, partition: int = 0) -> PartitionImage:
        return self.image.topics[topic].partitions[partition]

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return self.partition(topic, partition).leader

    async def until(self, condition: Callable[[], object], timeout_s: float = _TIMEOUT_S) -> None:
        """Wait for a condition; one that cannot be looked up yet does not hold."""
        async with asyncio.timeout(timeout_s):
            while not _holds(condition):
                await asyncio.sleep(_POLL_INTERVAL_S)

    async def until_in_sync(self, topic: str) -> None:
        """Wait until all replicas of a topic on running brokers are in sync, as all of them see."""

        def is_in_sync() -> bool:
            return all(
                set(partition.isr) == set(partition.replicas) & set(self.servers)
                and partition.leader in self.servers
                for server in self.servers.values()
                for partition in server.context.image.topics[topic].partitions
            )

        await self.until(is_in_sync)

    # -- asking ----------------------------------------------------------------------------------

    async def send(self, broker_id: int, request: Message, version: int | None = None) -> Any:
        """A broker's answer to a client."""
        channel = self._channels.get(broker_id)
        if channel is None or channel.is_closed:
            channel = self._channels[broker_id] = await self.connect(broker_id)
        return await channel.send(request, version=version, timeout_s=_TIMEOUT_S)

    async def connect(self, broker_id: int, host: str = LOOPBACK) -> PeerChannel:
        """A connection of one's own, to be closed by whoever asked for it."""
        port = self.servers[broker_id].listeners.endpoints[0].port
        return await PeerChannel.connect(host, port, client_id="test")

    async def connect_as(self, speaker_id: int, broker_id: int) -> PeerChannel:
        """The same, as the connection of another broker."""
        channel = await self.connect(broker_id)
        await prove(channel, self.context(broker_id), speaker_id)
        return channel

    async def create_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str] | None = None,
        *,
        at: int | None = None,
    ) -> None:
        """Create a topic with the brokers of each partition; the first of them is to lead it."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=number, broker_ids=list(broker_ids))
                for number, broker_ids in enumerate(replicas)
            ],
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        response = await self.send(self.controller_id if at is None else at, request)
        errors = [(each.error_code, each.error_message) for each in response.topics]
        assert errors == [(0, None)]

    async def elect_preferred(self, topic: str, partition: int = 0) -> None:
        """Have the first replica of a partition lead it, and wait until all brokers know."""
        preferred = self.partition(topic, partition).replicas[0]
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED,
            topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])],
        )
        response = await self.send(self.controller_id, request)
        assert response.error_code == 0
        await self.until(
            lambda: all(
                server.context.image.topics[topic].partitions[partition].leader == preferred
                for server in self.servers.values()
            )
        )

    async def close(self) -> None:
        await self.stop(*sorted(self.servers))


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except (LookupError, ValueError):
        return False


def run_cluster_scenario(
    directory: Path,
    scenario: Callable[[BrokerCluster], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
    broker_ids: Sequence[int] = BROKER_IDS,
    listen_host: str = LOOPBACK,
    settings_of: Mapping[int, Mapping[str, str]] | None = None,
) -> None:
    """Run a scenario with brokers that have started, and are stopped in the end.

    All have the `settings`, and each its own besides, if it is in `settings_of`.
    """

    async def run() -> None:
        store = await EmbeddedStore.open(NullJournal(), SystemClock())
        cluster = BrokerCluster(
            directory, store, settings or {}, broker_ids, listen_host, settings_of
        )
        try:
            await cluster.start()
            await scenario(cluster)
        finally:
            await cluster.close()
            await store.close()

    asyncio.run(run())
