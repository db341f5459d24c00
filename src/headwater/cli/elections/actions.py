"""What `headwater elect-leaders` does on a cluster, and the table that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.options.topic_partitions import TopicScope, find_scoped
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.client.admin import ElectionOperations, ElectionType
from headwater.client.connection.cluster_connection import ClusterConnection

_COLUMNS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("OUTCOME", "outcome"),
    Column("REASON", "reason"),
)


async def elect(
    connection: ClusterConnection,
    scopes: Sequence[TopicScope] | None,
    election_type: str,
    *,
    as_json: bool,
) -> bool:
    """Hold elections and print what came of each; whether one has failed."""
    partitions = None if scopes is None else await find_scoped(connection, scopes)
    outcomes = await ElectionOperations(connection).elect_leaders(
        partitions, election_type=ElectionType[election_type], raise_errors=False
    )
    if outcomes or as_json:
        rows = [_row(partition, outcome) for partition, outcome in sorted(outcomes.items())]
        print_rows(_COLUMNS, rows, as_json=as_json)
    else:
        print("No partition needs an election.")
    return any(isinstance(outcome, KafkaError) for outcome in outcomes.values())


def _row(partition: TopicPartition, outcome: bool | KafkaError) -> Row:
    if isinstance(outcome, KafkaError):
        told, reason = "failed", f"{outcome.code.name}: {outcome}"
    else:
        told, reason = "elected" if outcome else "not needed", None
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "outcome": told,
        "reason": reason,
    }
