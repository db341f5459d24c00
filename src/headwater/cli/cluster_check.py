"""What `headwater doctor` asks a cluster: addresses, controller, replicas, disks, durability.

Everything is asked the way any client asks, so it works against every Kafka-compatible cluster;
what only Headwater tells is left out where there is no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping

from headwater.base.errors import KafkaError
from headwater.cli.durability_promise import durability_promise
from headwater.cli.findings import Finding, good, note, problem
from headwater.cli.machine_check import space_finding
from headwater.client.admin import AdminOperations, ConfigResource, LogDirectory, ResourceType
from headwater.client.bootstrap import Address, parse_bootstrap
from headwater.client.cluster_connection import ClusterConnection
from headwater.client.cluster_metadata import BrokerNode, TopicInfo
from headwater.net.peer_channel import PeerChannel

CONNECT_TIMEOUT_S = 5.0
_NAMED_MAX = 5
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_NOWHERE = frozenset({"", "0.0.0.0", "::"})
_SETTINGS = ("acks.all.flush", "log.flush.interval.messages", "min.insync.replicas")


async def check_bootstrap(servers: str) -> AsyncIterator[Finding]:
    """Whether each of the addresses that the user named answers."""
    for address in parse_bootstrap(servers):
        failure = await _why_unreachable(address)
        if failure is None:
            yield good("bootstrap", f"{address} answers.")
        else:
            yield problem("bootstrap", failure)


async def check_brokers(connection: ClusterConnection, servers: str) -> AsyncIterator[Finding]:
    """Whether brokers can be reached where they say they are, which is where clients will go."""
    dialled = {address.host for address in parse_bootstrap(servers)}
    for broker in sorted(connection.metadata.brokers.values()):
        failure = await _why_unreachable(broker.address)
        if failure is None:
            yield good("listeners", f"Broker {broker.broker_id} is reached at {broker.address}.")
        else:
            yield problem("listeners", _unreachable_broker(broker, dialled, failure))


def _unreachable_broker(broker: BrokerNode, dialled: set[str], failure: str) -> str:
    host = broker.address.host
    advice = "check its advertised.listeners, and what is between you and it"
    if host in _NOWHERE or (host in _THIS_MACHINE and not dialled & _THIS_MACHINE):
        advice = f"{host or 'no host'} means nothing here, so set its advertised.listeners"
    return (
        f"Broker {broker.broker_id} tells clients to come to {broker.address}, and that fails from "
        f"here: {failure} {advice[0].upper()}{advice[1:]}."
    )


async def _why_unreachable(address: Address) -> str | None:
    try:
        channel = await PeerChannel.connect(
            address.host, address.port, client_id="headwater-doctor", timeout_s=CONNECT_TIMEOUT_S
        )
    except KafkaError as error:
        return str(error)
    await channel.close()
    return None


async def check_controller(admin: AdminOperations) -> Finding:
    cluster = await admin.describe_cluster()
    known = {broker.broker_id for broker in cluster.brokers}
    if cluster.controller_id in known:
        return good("controller", f"Broker {cluster.controller_id} is the controller.")
    if cluster.controller_id < 0:
        return problem("controller", "The cluster has no controller: nothing can be changed in it.")
    return problem(
        "controller", f"The controller is broker {cluster.controller_id}, which is not there."
    )


def check_replicas(topics: Collection[TopicInfo]) -> Iterator[Finding]:
    """Partitions without a leader, and such whose replicas are not all in sync."""
    leaderless, behind, count = [], [], 0
    for topic in topics:
        for partition in topic.partitions:
            count += 1
            name = f"{topic.name}-{partition.partition}"
            if not partition.has_leader:
                leaderless.append(name)
            elif len(partition.isr) < len(partition.replicas):
                behind.append(name)
    if leaderless:
        yield problem("partitions", f"Without a leader, so not to be used: {_some(leaderless)}.")
    if behind:
        yield problem(
            "partitions", f"Under-replicated, so one failure nearer to a loss: {_some(behind)}."
        )
    if not leaderless and not behind:
        yield good("partitions", f"All {count:,} partitions have a leader and their replicas.")


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    return shown if len(names) <= _NAMED_MAX else f"{shown} and {len(names) - _NAMED_MAX} more"


async def check_durability(
    admin: AdminOperations, brokers: Collection[int], topics: Collection[TopicInfo]
) -> AsyncIterator[Finding]:
    """What acknowledgements are worth, by each broker's settings."""
    largest = max((len(p.replicas) for t in topics for p in t.partitions), default=1)
    resources = {
        broker_id: ConfigResource(ResourceType.BROKER, str(broker_id)) for broker_id in brokers
    }
    outcomes = await admin.describe_configs(list(resources.values()), names=_SETTINGS)
    for broker_id, resource in sorted(resources.items()):
        entries = outcomes[resource]
        if isinstance(entries, KafkaError):
            yield problem("durability", f"Broker {broker_id} does not tell its settings: {entries}")
            continue
        values = {entry.name: entry.value or "" for entry in entries}
        yield _durability(broker_id, values, is_alone=len(brokers) == 1 or largest == 1)


def _durability(broker_id: int, values: Mapping[str, str], *, is_alone: bool) -> Finding:
    flush = values.get("acks.all.flush")
    messages = int(values.get("log.flush.interval.messages") or 2**63 - 1)
    if flush is None:
        if messages == 1:
            return good("durability", f"Broker {broker_id} acknowledges what is on disk.")
        return note(
            "durability",
            f"Broker {broker_id} is not Headwater and acknowledges from memory: what survives a "
            "power failure depends on its replicas.",
        )
    promise = durability_promise(flush, messages, is_alone=is_alone)
    make = good if promise.survives_power_loss else problem
    return make("durability", f"Broker {broker_id}: {promise.sentence}")


def check_log_directories(broker_id: int, directories: Collection[LogDirectory]) -> list[Finding]:
    """The disks of a broker as it tells them."""
    findings = []
    for directory in directories:
        name = f"{directory.path} of broker {broker_id}"
        if directory.error_code:
            findings.append(problem("disk", f"{name} is offline, with all that is in it."))
        elif directory.total_bytes > 0:
            findings.append(space_finding(name, directory.usable_bytes, directory.total_bytes))
    return findings
