"""The whole of what `headwater doctor` does, in the order in which trouble is best understood."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.python_build import python_build
from headwater.cli.cluster.partition_health import find_topics, without_added
from headwater.cli.doctor.cluster_check import (
    broker_values,
    check_bootstrap,
    check_brokers,
    check_controller,
    check_coordination,
    check_durability,
    check_log_directories,
)
from headwater.cli.doctor.findings import Finding, Verdict, problem
from headwater.cli.doctor.machine_check import (
    check_data_directory,
    check_limits,
    check_python,
)
from headwater.cli.doctor.metrics_check import Reading, check_metrics, no_metrics
from headwater.cli.doctor.moving_replicas import MovingReplicas
from headwater.cli.doctor.replica_check import check_min_isr, check_missing_brokers, check_replicas
from headwater.cli.doctor.replica_progress import ReplicaSizes
from headwater.cli.doctor.under_replication import LateReplicas
from headwater.cli.metrics.page import MetricsPage
from headwater.cli.metrics.source import MetricsAddress, NoMetricsError, fetch_page, find_addresses
from headwater.client.admin import AdminOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo

#: Whether a replica gets nearer to its leader shows after a while.
LOOK_AGAIN_S: Final = 2.0


def examine_machine(data_dirs: Sequence[str]) -> Iterator[Finding]:
    """This machine as a place for a broker."""
    yield check_python(python_build())
    yield from check_limits()
    for path in data_dirs:
        yield from check_data_directory(path)


async def examine_cluster(
    servers: str, metrics: Sequence[MetricsAddress], timeout_s: float
) -> AsyncIterator[Finding]:
    """A cluster from where this runs; what cannot be asked is itself a finding."""
    is_reached = False
    async for finding in check_bootstrap(servers):
        is_reached |= finding.verdict is Verdict.GOOD
        yield finding
    if not is_reached:
        return
    try:
        async with ClusterConnection(servers, timeout_s=timeout_s) as connection:
            async for finding in _examine(connection, servers, metrics):
                yield finding
    except KafkaError as error:
        yield problem("cluster", f"The cluster stopped answering: {error}")


async def _examine(
    connection: ClusterConnection, servers: str, metrics: Sequence[MetricsAddress]
) -> AsyncIterator[Finding]:
    admin = AdminOperations(connection)
    # Metadata may still name a broker that has just gone.
    nodes = (await admin.describe_cluster()).brokers
    brokers = [node.broker_id for node in nodes]
    is_reachable = True
    async for finding in check_brokers(nodes, servers):
        is_reachable &= finding.verdict is Verdict.GOOD
        yield finding
    yield await check_controller(admin)
    told, moves = await find_topics(connection)
    topics = without_added(told, moves)
    for finding in check_missing_brokers(topics, brokers):
        yield finding
    for finding in check_replicas(topics):
        yield finding
    for finding in await check_min_isr(connection, topics):
        yield finding
    if not is_reachable:
        return  # The rest must be asked of each broker, and not all can be.
    values = await broker_values(admin, brokers)
    async for finding in check_coordination(values):
        yield finding
    for finding in check_durability(values, topics):
        yield finding
    for broker_id, directories in sorted((await admin.describe_log_dirs(brokers)).items()):
        if isinstance(directories, KafkaError):
            yield problem("disk", f"Broker {broker_id} does not tell its disks: {directories}")
        else:
            for finding in check_log_directories(broker_id, directories):
                yield finding
    readings: list[Reading] = []
    async for finding in _examine_metrics(connection, brokers, metrics, readings):
        yield finding
    moving = MovingReplicas(moves, topics, brokers)
    async for finding in _examine_late_replicas(admin, topics, brokers, readings, moving):
        yield finding


async def _examine_late_replicas(
    admin: AdminOperations,
    topics: Collection[TopicInfo],
    brokers: Sequence[int],
    readings: Sequence[Reading],
    moving: MovingReplicas,
) -> AsyncIterator[Finding]:
    late = LateReplicas(topics, brokers)
    before = after = ReplicaSizes({})
    if late.late_brokers or moving.may_grow:
        before = ReplicaSizes.of_directories(await admin.describe_log_dirs(brokers))
        await asyncio.sleep(LOOK_AGAIN_S)
        after = ReplicaSizes.of_directories(await admin.describe_log_dirs(brokers))
    for finding in late.diagnose(before, after, LOOK_AGAIN_S, readings):
        yield finding
    for finding in moving.diagnose(before, after, LOOK_AGAIN_S):
        yield finding


async def _examine_metrics(
    connection: ClusterConnection,
    brokers: Sequence[int],
    given: Sequence[MetricsAddress],
    readings: list[Reading],
) -> AsyncIterator[Finding]:
    """What pages tell; they are left in `readings`."""
    addresses: list[MetricsAddress] = list(given)
    if not given:
        try:
            for broker_id, address in sorted((await find_addresses(connection, brokers)).items()):
                if address is None:
                    yield no_metrics(f"Broker {broker_id} serves none (metrics.listen).")
                else:
                    addresses.append(address)
        except KafkaError as error:
            yield no_metrics(str(error))
    for address in addresses:
        asked_s = time.time()
        try:
            page = MetricsPage(fetch_page(address))
        except NoMetricsError as error:
            yield no_metrics(str(error))
            continue
        readings.append(Reading(page, asked_s, time.time()))
    for finding in check_metrics(readings, len(brokers)):
        yield finding
