"""Where clients are told to find the brokers: the same by all of them, in every API that tells."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.describe_cluster import DescribeClusterRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.metadata import MetadataRequest
from tests.support.brokers.broker_cluster import BROKER_IDS, BrokerCluster, run_cluster_scenario
from tests.support.brokers.running_broker import batch_of, produce_request

_TIMEOUT_S = 30.0
_NOW_MS = 1_700_000_000_000
#: As many as it takes until every broker coordinates one of them.
_GROUPS = [f"group-{number}" for number in range(12)]
#: The first version of Produce that names its topics by id is 13; this one tells of leaders too.
_PRODUCE_VERSION = 12

Hosts = dict[int, set[str]]


async def _hosts_told(channel: PeerChannel, *, is_leader: bool) -> Hosts:
    """All hosts that one broker tells one client of each broker, by its id."""
    told: Hosts = {broker_id: set() for broker_id in BROKER_IDS}
    metadata = await channel.send(MetadataRequest(topics=[]), timeout_s=_TIMEOUT_S)
    _add(told, ((each.node_id, each.host) for each in metadata.brokers))
    described = await channel.send(DescribeClusterRequest(), timeout_s=_TIMEOUT_S)
    _add(told, ((each.broker_id, each.host) for each in described.brokers))
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=_GROUPS)
    found = await channel.send(find, timeout_s=_TIMEOUT_S)
    assert {each.node_id for each in found.coordinators} == set(BROKER_IDS)
    _add(told, ((each.node_id, each.host) for each in found.coordinators))
    # Whoever does not lead the partition tells who does.
    produce = produce_request("orders", batch_of([b"one"], _NOW_MS), acks=1)
    refused = await channel.send(produce, version=_PRODUCE_VERSION, timeout_s=_TIMEOUT_S)
    assert [each.node_id for each in refused.node_endpoints] == ([] if is_leader else [1])
    _add(told, ((each.node_id, each.host) for each in refused.node_endpoints))
    return told


def _add(told: Hosts, hosts: Iterable[tuple[int, str]]) -> None:
    for broker_id, host in hosts:
        told[broker_id].add(host)


@pytest.mark.parametrize(
    ("listen_host", "dialled", "expected"),
    [
        ("127.0.0.1", ("127.0.0.1", "localhost"), "127.0.0.1"),
        ("localhost", ("127.0.0.1", "localhost"), "localhost"),
        ("0.0.0.0", ("127.0.0.1", "localhost"), "127.0.0.1"),
        ("", ("127.0.0.1", "localhost"), "127.0.0.1"),
        # The whole of 127.0.0.0/8 is this machine: another interface, as it were.
        ("0.0.0.0", ("127.0.0.2",), "127.0.0.1"),
    ],
)
def test_every_broker_tells_a_client_the_same_of_all_brokers(
    tmp_path: Path, listen_host: str, dialled: tuple[str, ...], expected: str
) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=_GROUPS)
        await cluster.send(1, find)
        await cluster.until_in_sync("__consumer_offsets")
        for host in dialled:
            for broker_id in BROKER_IDS:
                channel = await cluster.connect(broker_id, host)
                try:
                    told = await _hosts_told(channel, is_leader=broker_id == 1)
                finally:
                    await channel.close()
                assert told == {each: {expected} for each in BROKER_IDS}, (host, broker_id)

    run_cluster_scenario(tmp_path, scenario, listen_host=listen_host)
