"""Clients that speak as if they were brokers: all are refused, and nothing changes."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.access.broker_proof import _INITIATOR, NONCE_BYTES, BrokerProof, Challenge
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import PeerUnavailableError
from headwater.wire.api_keys import INTER_BROKER_APIS, PRIVATE_APIS, ApiKey
from headwater.wire.cluster_messages.prove_broker import ProveBrokerRequest, ProveBrokerResponse
from headwater.wire.cluster_messages.publish_audit import PublishAuditRequest, PublishAuditSource
from headwater.wire.cluster_messages.set_configs import ConfigEntry, SetConfigsRequest
from headwater.wire.cluster_messages.update_image import UpdateImageRequest
from headwater.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headwater.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from headwater.wire.messages.fetch import FetchRequest, ReplicaState
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.schema import Message
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.broker_peers import proof_of
from tests.support.brokers.running_broker import batch_of, produce_request
from tests.support.other_clients.raw import fetch_topic
from tests.support.traffic.transactional_client import (
    TransactionalProducer,
    marker_codes,
    marker_request,
    read_committed,
)

LEADER, FOLLOWER = 1, 2
TOPIC = "orders"
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
#: Larger than any version that a controller would get to.
HUGE = 2**62
TIMEOUT_S = 30.0
#: A follower that fetches no more stays in sync for as long as a test takes.
SETTINGS = {
    "replica.lag.time.max.ms": "600000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "min.insync.replicas": "1",
}


def run(tmp_path: Path, scenario: Callable[[BrokerCluster], Awaitable[None]]) -> None:
    """With two brokers, of which `LEADER` leads the topic and rules, and `FOLLOWER` follows."""

    async def begin(cluster: BrokerCluster) -> None:
        await cluster.create_topic(TOPIC, [[LEADER, FOLLOWER]])
        await scenario(cluster)

    run_cluster_scenario(tmp_path, begin, SETTINGS, broker_ids=(LEADER, FOLLOWER))


def requests_for(cluster: BrokerCluster, broker_id: int) -> list[Message]:
    """What each API for brokers would do most harm with, spoken for a broker that is there."""
    image = cluster.image
    broker = image.brokers[broker_id]
    shrunk = RequestPartitionData(
        leader_epoch=image.topics[TOPIC].partitions[0].leader_epoch,
        partition_epoch=image.topics[TOPIC].partitions[0].partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=LEADER, broker_epoch=broker.broker_epoch)],
    )
    topics = [RequestTopicData(topic_id=image.topics[TOPIC].topic_id, partitions=[shrunk])]
    return [
        UpdateImageRequest(
            cluster_id=image.cluster_id or "",
            controller_id=broker_id,
            controller_epoch=image.controller_epoch + 1,
            is_snapshot=True,
            to_version=HUGE,
        ),
        SetConfigsRequest(
            kind=2, resource_name=TOPIC, entries=[ConfigEntry(name="retention.ms", value="1")]
        ),
        AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker.broker_epoch, topics=topics),
        AlterPartitionRequest(broker_id=broker_id, broker_epoch=-1, topics=topics),
        BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=broker.broker_epoch, want_shut_down=True
        ),
        AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker.broker_epoch),
        PublishAuditRequest(sources=[PublishAuditSource(source="orders/0/0")]),
    ]


def state_of(cluster: BrokerCluster) -> tuple[Any, ...]:
    """What all of that would change."""
    return tuple(
        (
            server.context.image.version,
            server.context.image.controller_epoch,
            sorted(server.context.image.topics.items()),
            sorted(server.context.image.configs.items()),
        )
        for _, server in sorted(cluster.servers.items())
    )


async def ask(channel: PeerChannel, request: Message, version: int | None = None) -> Any:
    return await channel.send(request, version=version, timeout_s=TIMEOUT_S)


async def check_polite(channel: PeerChannel) -> None:
    """A client that is none of this is answered."""
    answer = await ask(channel, MetadataRequest(topics=None))
    assert TOPIC in {topic.name for topic in answer.topics}


@pytest.mark.parametrize("name", ["raw", "broker-2"])
def test_clients_cannot_ask_what_brokers_ask(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        polite = await cluster.connect(LEADER)
        before = state_of(cluster)
        requests = requests_for(cluster, FOLLOWER)
        asked = {ApiKey(request.API_KEY) for request in requests}
        assert asked == INTER_BROKER_APIS - {ApiKey.PROVE_BROKER}
        for broker_id in (LEADER, FOLLOWER):
            endpoint = cluster.servers[broker_id].listeners.endpoints[0]
            for request in requests:
                channel = await PeerChannel.connect(endpoint.host, endpoint.port, client_id=name)
                caplog.clear()
                if request.API_KEY in PRIVATE_APIS:
                    with pytest.raises(PeerUnavailableError):
                        await ask(channel, request)
                    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
                    assert len(warnings) == 1
                    assert "for brokers of this cluster alone" in warnings[0].getMessage()
                else:
                    assert (await ask(channel, request)).error_code == REFUSED
                    await check_polite(channel)
                await channel.close()
        listed = {each.api_key for each in (await ask(polite, ApiVersionsRequest(), 0)).api_keys}
        assert listed.isdisjoint(INTER_BROKER_APIS)
        await check_polite(polite)
        await polite.close()
        assert state_of(cluster) == before

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", [12, 17])
def test_clients_cannot_fetch_as_followers(tmp_path: Path, version: int) -> None:
    """Or a record would count as replicated that nobody else has."""

    async def scenario(cluster: BrokerCluster) -> None:
        polite = await cluster.connect(LEADER)
        await cluster.context(FOLLOWER).replication.fetchers.close()
        batch = batch_of([b"not replicated"], 1_700_000_000_000)
        await ask(polite, produce_request(TOPIC, batch, acks=1), 12)
        partition = cluster.context(LEADER).partitions.get(TOPIC, 0)
        assert (partition.high_watermark, partition.log_end_offset) == (0, 1)
        assert partition.leadership is not None
        remote = partition.leadership.remote(FOLLOWER)
        assert remote is not None
        sessions = cluster.context(LEADER).fetch_sessions
        before = remote.log_end_offset, len(sessions), state_of(cluster)
        topic_id = cluster.image.topics[TOPIC].topic_id
        epoch = cluster.image.brokers[FOLLOWER].broker_epoch
        request = FetchRequest(
            topics=[fetch_topic(TOPIC, 1, topic_id=topic_id)],
            session_epoch=0,
            replica_id=FOLLOWER,
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=epoch),
        )
        stranger = await cluster.connect(LEADER)
        # A broker speaks for itself alone.
        another = await cluster.connect_as(LEADER, LEADER)
        for channel in (stranger, another):
            answer = await ask(channel, request, version)
            assert (answer.error_code, answer.session_id, answer.responses) == (REFUSED, 0, [])
            await check_polite(channel)
            await channel.close()
        assert (remote.log_end_offset, len(sessions), state_of(cluster)) == before
        assert partition.high_watermark == 0
        # The follower itself is believed.
        follower = await cluster.connect_as(FOLLOWER, LEADER)
        request.session_epoch = -1
        assert (await ask(follower, request, version)).error_code == ErrorCode.NONE
        assert partition.high_watermark == 1
        await follower.close()
        await polite.close()

    run(tmp_path, scenario)


def test_brokers_speak_for_themselves_alone(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        before = state_of(cluster)
        rules = cluster.controller_id
        speaker, other = cluster.others(rules)[0], rules
        channel = await cluster.connect_as(speaker, rules)
        for request in requests_for(cluster, other):
            # These two name no broker whose word they would be.
            if not isinstance(request, SetConfigsRequest | PublishAuditRequest):
                assert (await ask(channel, request)).error_code == REFUSED
        for request in requests_for(cluster, speaker):
            if isinstance(request, AlterPartitionRequest) and request.broker_epoch == -1:
                assert (await ask(channel, request)).error_code == ErrorCode.STALE_BROKER_EPOCH
        await channel.close()
        assert state_of(cluster) == before

    run(tmp_path, scenario)


def test_clients_cannot_fence_a_coordinator(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        partition = (TOPIC, 0)
        coordinator = await cluster.connect(LEADER)
        producer = TransactionalProducer(coordinator, "pay", version=1)
        # The coordinator may be the other broker, which then says so.
        if await _is_elsewhere(cluster, producer):
            await coordinator.close()
            coordinator = await cluster.connect(FOLLOWER)
        leader = await cluster.connect(LEADER)
        producer.channel = coordinator
        await producer.init()
        assert await producer.add(partition) == [ErrorCode.NONE]
        batch = producer.batch(partition, [b"paid"], 1_700_000_000_000)
        answer = await ask(leader, producer.request({partition: batch}), 11)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        for commit in (True, False):
            markers = marker_request(
                producer.producer_id,
                producer.epoch,
                partition,
                commit=commit,
                coordinator_epoch=2**31 - 1,
            )
            assert marker_codes(await ask(leader, markers)) == [REFUSED]
        assert await producer.end(commit=True) is ErrorCode.NONE
        log = cluster.context(LEADER).partitions.get(*partition)
        await cluster.until(lambda: log.last_stable_offset == 2)
        assert await read_committed(leader, partition) == [b"paid"]
        await leader.close()
        await coordinator.close()

    run(tmp_path, scenario)


async def _is_elsewhere(cluster: BrokerCluster, producer: TransactionalProducer) -> bool:
    request = FindCoordinatorRequest(key=producer.transactional_id, key_type=1)
    while True:
        answer = await cluster.send(LEADER, request, 3)
        if answer.error_code == ErrorCode.NONE:
            return bool(answer.node_id != LEADER)
        await asyncio.sleep(0.01)


# -- the proof -----------------------------------------------------------------------------------


class _Recorded:
    """A channel that keeps what an honest broker says on it."""

    def __init__(self, channel: PeerChannel) -> None:
        self.peer = channel.peer
        self.said: list[tuple[int, bytes, bytes]] = []
        self._channel = channel
        self.learn_inter_broker_versions = channel.learn_inter_broker_versions

    async def send(self, request: ProveBrokerRequest, *, timeout_s: float) -> Any:
        self.said.append((request.broker_id, bytes(request.nonce), bytes(request.proof)))
        return await self._channel.send(request, timeout_s=timeout_s)


async def challenged(channel: PeerChannel, broker_id: int, nonce: bytes) -> ProveBrokerResponse:
    response: ProveBrokerResponse = await ask(
        channel, ProveBrokerRequest(broker_id=broker_id, nonce=nonce)
    )
    assert (response.broker_id, len(response.nonce)) == (LEADER, NONCE_BYTES)
    return response


async def check_not_believed(
    channel: PeerChannel, broker_id: int, nonce: bytes, proof: bytes
) -> None:
    request = ProveBrokerRequest(broker_id=broker_id, nonce=nonce, proof=proof)
    with pytest.raises(PeerUnavailableError):
        await ask(channel, request)
    await channel.close()


def test_a_recorded_proof_is_worth_nothing_on_another_connection(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        channel = await cluster.connect(LEADER)
        recorded = _Recorded(channel)
        proof = proof_of(cluster.context(LEADER), FOLLOWER)
        await proof.exchange(cast(PeerChannel, recorded), LEADER, TIMEOUT_S)
        (_, nonce, _), (_, _, proven) = recorded.said
        # Not while the connection that it is from lives, nor when it is gone.
        for _ in range(2):
            replay = await cluster.connect(LEADER)
            await challenged(replay, FOLLOWER, nonce)
            await check_not_believed(replay, FOLLOWER, nonce, proven)
            if not channel.is_closed:
                await check_polite(channel)
                await channel.close()
        # Nor without a challenge.
        await check_not_believed(await cluster.connect(LEADER), FOLLOWER, nonce, proven)

    run(tmp_path, scenario)


def test_a_broker_cannot_be_had_to_answer_its_own_challenge(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        # Its proof to a stranger, sent back to it.
        channel = await cluster.connect(LEADER)
        nonce = secrets.token_bytes(NONCE_BYTES)
        response = await challenged(channel, FOLLOWER, nonce)
        await check_not_believed(channel, FOLLOWER, nonce, bytes(response.proof))
        # Its challenge on one connection, given to it on another as a stranger's nonce.
        for claimed in (FOLLOWER, LEADER):
            first, second = await cluster.connect(LEADER), await cluster.connect(LEADER)
            challenge = await challenged(first, claimed, nonce)
            reflected = await challenged(second, claimed, bytes(challenge.nonce))
            await check_not_believed(first, claimed, nonce, bytes(reflected.proof))
            await second.close()

    run(tmp_path, scenario)


def test_who_does_not_know_the_secret_or_tells_another_id_proves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        context = cluster.context(LEADER)
        polite = await cluster.connect(LEADER)
        before = state_of(cluster)
        nonce = secrets.token_bytes(NONCE_BYTES)
        stranger = BrokerProof(b"x" * 32, context.cluster_id, FOLLOWER, secrets.token_bytes)
        knowing = proof_of(context, FOLLOWER)
        for proof, claimed_id, acceptor_id in (
            (stranger, FOLLOWER, LEADER),
            (knowing, 3, LEADER),
            (knowing, FOLLOWER, 3),
        ):
            channel = await cluster.connect(LEADER)
            response = await challenged(channel, FOLLOWER, nonce)
            challenge = Challenge(claimed_id, acceptor_id, nonce, bytes(response.nonce))
            caplog.clear()
            sealed = proof._sealed(_INITIATOR, challenge)
            await check_not_believed(channel, claimed_id, nonce, sealed)
            warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
            assert len(warnings) == 1
            assert "has not proven to be a broker" in warnings[0].getMessage()
        for broker_id, size, proof_bytes in (
            (-1, NONCE_BYTES, b""),
            (FOLLOWER, NONCE_BYTES - 1, b""),
            (FOLLOWER, 1 << 20, b""),
            (FOLLOWER, NONCE_BYTES, b"x" * 32),
        ):
            channel = await cluster.connect(LEADER)
            await check_not_believed(channel, broker_id, bytes(size), proof_bytes)
        # Whoever has proven is what it is for as long as the connection lasts.
        proven = await cluster.connect_as(FOLLOWER, LEADER)
        await check_polite(proven)
        await check_not_believed(proven, LEADER, nonce, b"")
        await check_polite(polite)
        await polite.close()
        assert state_of(cluster) == before

    run(tmp_path, scenario)
