"""What `headwater reassign` does on a cluster, and the tables that it prints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.cli.output.sizes import size_text
from headwater.client.admin import Outcomes, ReassignmentOperations
from headwater.client.connection.cluster_connection import ClusterConnection

_OUTCOME_COLUMNS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("OUTCOME", "outcome"),
    Column("REASON", "reason"),
)
_MOVE_COLUMNS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("REPLICAS", "replicas"),
    Column("ADDING", "adding"),
    Column("REMOVING", "removing"),
    Column("THROTTLE", "throttle"),
)


async def cancel(
    connection: ClusterConnection, partitions: Collection[TopicPartition] | None, *, as_json: bool
) -> bool:
    """Cancel the moves of partitions, or all there are; whether one could not be."""
    operations = ReassignmentOperations(connection)
    named = partitions
    if named is None:
        named = (await operations.list_partition_reassignments()).keys()
    outcomes = await operations.alter_partition_reassignments(
        dict.fromkeys(named), raise_errors=False
    )
    if partitions is None:
        # What has ended by itself meanwhile needs no cancelling.
        outcomes = {
            name: outcome
            for name, outcome in outcomes.items()
            if not isinstance(outcome, KafkaError)
            or outcome.code is not ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        }
    if not outcomes and not as_json:
        print("No partition is being reassigned.")
        return False
    return print_outcomes(outcomes, "cancelled", as_json=as_json)


async def throttle(connection: ClusterConnection, throttle_bytes: int, *, as_json: bool) -> bool:
    """Give all moves that are under way another throttle; whether one was refused."""
    outcomes = await ReassignmentOperations(connection).throttle_partition_reassignments(
        throttle_bytes, raise_errors=False
    )
    if not outcomes and not as_json:
        print("No partition is being reassigned.")
        return False
    return print_outcomes(outcomes, "throttled" if throttle_bytes else "freed", as_json=as_json)


async def print_status(
    connection: ClusterConnection, partitions: Collection[TopicPartition] | None, *, as_json: bool
) -> bool:
    """Print the moves that are under way; whether there are any."""
    moving = await ReassignmentOperations(connection).list_partition_reassignments(partitions)
    if not moving and not as_json:
        print("No partition is being reassigned.")
        return False
    rows: list[Row] = [
        {
            "topic": name.topic,
            "partition": name.partition,
            "replicas": _shown(move.replicas, as_json),
            "adding": _shown(move.adding_replicas, as_json),
            "removing": _shown(move.removing_replicas, as_json),
            "throttle": _shown_rate(move.throttle_bytes, as_json),
        }
        for name, move in sorted(moving.items())
    ]
    print_rows(_MOVE_COLUMNS, rows, as_json=as_json)
    return bool(moving)


def _shown(replicas: Sequence[int], as_json: bool) -> object:
    return list(replicas) if as_json else ",".join(map(str, replicas)) or None


def _shown_rate(throttle_bytes: int, as_json: bool) -> object:
    if as_json or not throttle_bytes:
        return throttle_bytes or None
    return f"{size_text(throttle_bytes)}/s"


def print_outcomes(outcomes: Outcomes[TopicPartition, None], done: str, *, as_json: bool) -> bool:
    """Print what came of each partition; whether one was refused."""
    rows: list[Row] = []
    for name, outcome in sorted(outcomes.items()):
        told, reason = done, None
        if isinstance(outcome, KafkaError):
            told, reason = "refused", f"{outcome.code.name}: {outcome}"
        rows.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "outcome": told,
                "reason": reason,
            }
        )
    print_rows(_OUTCOME_COLUMNS, rows, as_json=as_json)
    return any(isinstance(outcome, KafkaError) for outcome in outcomes.values())
