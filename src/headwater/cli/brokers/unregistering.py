"""Has a cluster forget a broker that was stopped for good, and warns if that is too early."""

from __future__ import annotations

import sys

import typer

from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.cluster.broker_status import HeldReplicas
from headwater.client.admin import BrokerOperations, TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection


async def unregister(connection: ClusterConnection, broker_id: int, *, is_sure: bool) -> None:
    """Kafka forgets a broker that runs or holds replicas as well, so both are asked about."""
    operations = BrokerOperations(connection)
    cluster = await operations.describe_cluster()
    held = HeldReplicas.by_broker(await TopicOperations(connection).list_topics()).get(broker_id)
    warnings = []
    if broker_id in {node.broker_id for node in cluster.brokers}:
        warnings.append(f"Broker {broker_id} is alive: stop it for good first.")
    if held is not None:
        count = counted(len(held.replicas), "partition")
        warnings.append(
            f"Broker {broker_id} is to hold replicas of {count}: move them first, with "
            f"`headwater brokers drain {broker_id}`."
        )
    if warnings and not is_sure:
        print("\n".join(warnings), file=sys.stderr)
        if not sys.stdin.isatty():
            raise typer.BadParameter("nobody can be asked here: give --yes.", param_hint="--yes")
        typer.confirm("Unregister it all the same?", abort=True)
    try:
        await operations.unregister_broker(broker_id)
    except KafkaError as error:
        if error.code is not ErrorCode.BROKER_ID_NOT_REGISTERED:
            raise
        print(f"Broker {broker_id} is not registered: nothing is kept about it.")
        return
    print(f"Broker {broker_id} is unregistered: the cluster keeps nothing more about it.")
