"""What `headwater doctor` asks a cluster: addresses, controller, ZooKeeper, disks, durability.

Everything is asked the way any client asks, so it works against every Kafka-compatible cluster;
what only Headwater tells is left out where there is no answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping

from headwater.base.errors import KafkaError
from headwater.cli.doctor.findings import Finding, Verdict, good, note, problem
from headwater.cli.doctor.machine_check import space_finding
from headwater.cli.doctor.zookeeper_check import check_zookeeper
from headwater.cli.serve.durability_promise import durability_promise
from headwater.client.admin import AdminOperations, ConfigResource, LogDirectory, ResourceType
from headwater.client.connection.bootstrap import Address, parse_bootstrap
from headwater.client.connection.cluster_metadata import BrokerNode, TopicInfo
from headwater.net.peer_channel import PeerChannel

CONNECT_TIMEOUT_S = 5.0
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_NOWHERE = frozenset({"", "0.0.0.0", "::"})
_MIN_ISR = "min.insync.replicas"
_ZOOKEEPER = "zookeeper.connect"
_SETTINGS = ("acks.all.flush", "log.flush.interval.messages", _MIN_ISR, _ZOOKEEPER)


async def check_bootstrap(servers: str) -> AsyncIterator[Finding]:
    """Whether each of the addresses that the user named answers."""
    for address in parse_bootstrap(servers):
        failure = await _why_unreachable(address)
        if failure is None:
            yield good("bootstrap", f"{address} answers.")
        else:
            yield problem("bootstrap", failure)


async def check_brokers(brokers: Collection[BrokerNode], servers: str) -> AsyncIterator[Finding]:
    """Whether brokers can be reached where they say they are, which is where clients will go."""
    dialled = {address.host for address in parse_bootstrap(servers)}
    for broker in sorted(brokers):
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


async def broker_values(
    admin: AdminOperations, brokers: Collection[int]
) -> dict[int, dict[str, str] | KafkaError]:
    """Of each broker the settings that are judged here, as far as it has and tells them."""
    resources = {
        broker_id: ConfigResource(ResourceType.BROKER, str(broker_id)) for broker_id in brokers
    }
    outcomes = await admin.describe_configs(list(resources.values()), names=_SETTINGS)
    values: dict[int, dict[str, str] | KafkaError] = {}
    for broker_id, resource in sorted(resources.items()):
        entries = outcomes[resource]
        values[broker_id] = (
            entries
            if isinstance(entries, KafkaError)
            else {entry.name: entry.value or "" for entry in entries}
        )
    return values


def check_durability(
    values: Mapping[int, Mapping[str, str] | KafkaError], topics: Collection[TopicInfo]
) -> Iterator[Finding]:
    """What acknowledgements are worth, by each broker's settings; those that agree say it once."""
    largest = max((len(p.replicas) for t in topics for p in t.partitions), default=1)
    is_alone = len(values) == 1 or largest == 1
    brokers_by_promise: dict[tuple[Verdict, str], list[int]] = {}
    for broker_id, told in values.items():
        if isinstance(told, KafkaError):
            yield problem("durability", f"Broker {broker_id} does not tell its settings: {told}")
            continue
        promise = _promise(told, is_alone=is_alone)
        brokers_by_promise.setdefault(promise, []).append(broker_id)
    for (verdict, sentence), broker_ids in brokers_by_promise.items():
        who = f"Broker {broker_ids[0]}"
        if len(broker_ids) > 1:
            who = f"Brokers {', '.join(map(str, broker_ids))}"
        yield Finding(verdict, "durability", f"{who}: {sentence}")


def _promise(values: Mapping[str, str], *, is_alone: bool) -> tuple[Verdict, str]:
    flush = values.get("acks.all.flush")
    messages = int(values.get("log.flush.interval.messages") or 2**63 - 1)
    if flush is None:
        if messages == 1:
            return Verdict.GOOD, "What is acknowledged is on disk."
        return Verdict.NOTE, (
            "This is not Headwater, and acknowledges from memory: what survives a power failure "
            "depends on its replicas."
        )
    promise = durability_promise(
        flush, messages, is_alone=is_alone, min_insync_replicas=int(values.get(_MIN_ISR) or 1)
    )
    return Verdict.GOOD if promise.survives_power_loss else Verdict.PROBLEM, promise.sentence


async def check_coordination(
    values: Mapping[int, Mapping[str, str] | KafkaError], timeout_s: float = CONNECT_TIMEOUT_S
) -> AsyncIterator[Finding]:
    """The ZooKeeper that brokers were told of; nothing where they have none."""
    told = [each for each in values.values() if not isinstance(each, KafkaError)]
    connects = sorted({each[_ZOOKEEPER] for each in told if each.get(_ZOOKEEPER)})
    if len(connects) > 1:
        yield note("zookeeper", f"Brokers name it differently: {' and '.join(connects)}.")
    for connect in connects:
        for finding in await check_zookeeper(connect, timeout_s):
            yield finding


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
