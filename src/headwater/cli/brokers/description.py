"""One broker as `headwater brokers describe` shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cli.cluster.broker_status import BrokerStatus, HeldReplicas, Reading
from headwater.cli.cluster.document import broker_document
from headwater.cli.cluster.releases import Releases
from headwater.cli.cluster.told import log_directories
from headwater.cli.output.json_document import print_document
from headwater.cli.output.plain_table import Column, Row, print_table
from headwater.cli.output.sizes import size_text
from headwater.client.admin import BrokerOperations, LogDirectory, TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import TopicInfo

_NAMED_MAX: Final = 20

_FACTS: Final = (Column("BROKER", "fact"), Column("", "value"))
_DIRECTORIES: Final = (
    Column("DIRECTORY", "path"),
    Column("STATE", "state"),
    Column("REPLICAS", "replicas", is_number=True),
    Column("SIZE", "size", is_number=True),
    Column("FREE", "free", is_number=True),
    Column("DISK", "total", is_number=True),
)
_MISSING: Final = (
    Column("NOT IN SYNC", "partition"),
    Column("LEADER", "leader"),
    Column("IN SYNC", "isr"),
    Column("LAG", "lag", is_number=True),
)


class OutOfSync(NamedTuple):
    """A replica of the broker that its leader does not count on."""

    partition: TopicPartition
    leader_id: int
    isr: tuple[int, ...]
    #: How many records it lacks, as the broker says it; None if it does not.
    lag: int | None


async def describe(
    connection: ClusterConnection, broker_id: int, watch_s: float, *, as_json: bool
) -> None:
    """Address, release, leaders, replicas, disks, traffic of `watch_s` seconds, what is missing."""
    cluster = await BrokerOperations(connection).describe_cluster()
    topics = await TopicOperations(connection).list_topics()
    held = HeldReplicas.by_broker(topics)
    nodes = {node.broker_id: node for node in cluster.brokers}
    if broker_id not in nodes and broker_id not in held:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"There is no broker {broker_id}; the cluster has {listed(sorted(nodes))}.",
        )
    own = held.get(broker_id, HeldReplicas([], [], [], []))
    directories = bytes_in = release = None
    if broker_id in nodes:
        release = (await Releases().of(connection, [broker_id])).get(broker_id)
        directories = await log_directories(connection, broker_id)
        if directories is not None and watch_s > 0:
            before = Reading.of(directories)
            await asyncio.sleep(watch_s)
            again = await log_directories(connection, broker_id)
            if again is not None:
                bytes_in = Reading.of(again).bytes_in(before, own.leaders)
    broker = BrokerStatus(
        broker_id,
        nodes.get(broker_id),
        broker_id == cluster.controller_id,
        release,
        own,
        directories,
        bytes_in,
    )
    lacking = find_out_of_sync(topics, broker)
    if as_json:
        print_document(_document(broker, lacking))
    else:
        _print(broker, lacking)


def find_out_of_sync(topics: Sequence[TopicInfo], broker: BrokerStatus) -> list[OutOfSync]:
    """Its replicas that are not in sync, with what they lack."""
    lags = {
        key: replica.offset_lag
        for directory in broker.directories or ()
        for key, replica in directory.replicas.items()
        if not replica.is_future
    }
    return [
        OutOfSync(key, partition.leader_id, partition.isr, lags.get(key))
        for topic in topics
        for partition in topic.partitions
        if broker.broker_id in partition.replicas and broker.broker_id not in partition.isr
        for key in [TopicPartition(topic.name, partition.partition)]
    ]


def _print(broker: BrokerStatus, lacking: Sequence[OutOfSync]) -> None:
    node, held = broker.node, broker.held
    state = "missing" if node is None else "silent" if broker.directories is None else "up"
    facts: list[tuple[str, object]] = [
        ("address", None if node is None else node.address),
        ("state", f"{state}, cordoned" if broker.is_cordoned else state),
        ("controller", "yes" if broker.is_controller else "no"),
        ("rack", None if node is None else node.rack),
        ("version", broker.version),
        ("leaders", f"{len(held.leaders)} of {len(held.preferred)} that it is meant to lead"),
        ("replicas", f"{len(held.replicas)}, {len(held.replicas) - len(lacking)} in sync"),
        ("written", None if broker.bytes_in is None else f"{size_text(broker.bytes_in)}/s"),
    ]
    rows: list[Row] = [{"fact": fact, "value": value} for fact, value in facts]
    print_table(f"Broker {broker.broker_id}", _FACTS, rows)
    if broker.directories:
        shown = [_directory_row(each) for each in broker.directories]
        print_table("Directories", _DIRECTORIES, shown)
    if lacking:
        missing: list[Row] = [
            {
                "partition": str(each.partition),
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "isr": ",".join(map(str, each.isr)) or None,
                "lag": each.lag,
            }
            for each in lacking[:_NAMED_MAX]
        ]
        print_table("What is missing", _MISSING, missing)
        if len(lacking) > _NAMED_MAX:
            print(f"... and {len(lacking) - _NAMED_MAX:,} more.")
        print("`headwater doctor` says why.")


def _directory_row(directory: LogDirectory) -> Row:
    is_failed = bool(directory.error_code)
    return {
        "path": directory.path,
        "state": "failed" if is_failed else "cordoned" if directory.is_cordoned else "good",
        "replicas": len(directory.replicas),
        "size": size_text(_size(directory)),
        "free": None if directory.usable_bytes < 0 else size_text(directory.usable_bytes),
        "total": None if directory.total_bytes < 0 else size_text(directory.total_bytes),
    }


def _document(broker: BrokerStatus, lacking: Sequence[OutOfSync]) -> dict[str, object]:
    return broker_document(broker) | {
        "out_of_sync": [
            {
                "partition": str(each.partition),
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "isr": list(each.isr),
                "lag": each.lag,
            }
            for each in lacking
        ],
        "directories": [
            {
                "path": each.path,
                "is_failed": bool(each.error_code),
                "is_cordoned": each.is_cordoned,
                "replicas": len(each.replicas),
                "size_bytes": _size(each),
                "free_bytes": None if each.usable_bytes < 0 else each.usable_bytes,
                "total_bytes": None if each.total_bytes < 0 else each.total_bytes,
            }
            for each in broker.directories or ()
        ],
    }


def _size(directory: LogDirectory) -> int:
    return sum(replica.size_bytes for replica in directory.replicas.values())
