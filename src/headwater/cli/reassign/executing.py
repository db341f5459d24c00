"""Carries out the moves of a file: in steps, as `headwater brokers` does, or all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.balance.plan import Plan, PlannedMove
from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.cli.brokers.moving import Mover, usable_pace
from headwater.cli.brokers.plan_output import cost_sentence, throttle_sentence
from headwater.cli.reassign.actions import print_outcomes
from headwater.client.admin import (
    BrokerOperations,
    Outcomes,
    PartitionReassignment,
    ReassignmentOperations,
    TopicOperations,
)
from headwater.client.connection.cluster_connection import ClusterConnection

#: What a broker is thought to receive in a second, where nothing throttles it.
_RATE_BYTES: Final = 50_000_000


class ExecuteOptions(NamedTuple):
    """How the moves of a file are carried out."""

    per_broker: int
    #: The most that a broker is to receive, or send; 0 without a throttle.
    throttle_bytes: int
    #: Whether that was asked for: otherwise what moves already keeps its own, and it is left out
    #: where brokers do not know of throttles.
    is_throttle_given: bool
    factor_may_change: bool
    #: Whether to go in steps, each when the one before has arrived.
    is_waiting: bool


async def execute(
    connection: ClusterConnection,
    wanted: Mapping[TopicPartition, Sequence[int]],
    options: ExecuteOptions,
    *,
    as_json: bool,
) -> bool:
    """Move partitions and print what came of each; whether one was refused."""
    pace = await usable_pace(
        connection,
        options.per_broker,
        options.throttle_bytes,
        is_throttle_given=options.is_throttle_given,
    )
    moving = await ReassignmentOperations(connection).list_partition_reassignments(list(wanted))
    plan = Plan(await _planned(connection, wanted, moving), goals=(), brokers=())
    if not as_json:
        print(cost_sentence(plan, pace.throttle_bytes or _RATE_BYTES))
        print(throttle_sentence(pace.throttle_bytes))
        kept = sum(move.throttle_bytes > 0 for move in moving.values())
        if kept and pace.keeps_throttles:
            keep = "keeps its throttle" if kept == 1 else "keep their throttles"
            print(f"But {counted(kept, 'partition')} on the move already {keep}.")
    refused: dict[TopicPartition, KafkaError] = {}
    mover = Mover(connection, pace, factor_may_change=options.factor_may_change, refused=refused)
    if options.is_waiting:
        await mover.carry_out(plan.moves)
    else:
        await mover.begin(plan.moves)
    outcomes: Outcomes[TopicPartition, None] = {name: refused.get(name) for name in wanted}
    return print_outcomes(outcomes, "moved" if options.is_waiting else "begun", as_json=as_json)


async def _planned(
    connection: ClusterConnection,
    wanted: Mapping[TopicPartition, Sequence[int]],
    moving: Mapping[TopicPartition, PartitionReassignment],
) -> tuple[PlannedMove, ...]:
    """What is to be copied of each; brokers say no to partitions that nobody knows."""
    known = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in await TopicOperations(connection).list_topics()
        for each in topic.partitions
    }
    sizes = await _sizes(connection, [name for name in wanted if name in known])
    moves: list[PlannedMove] = []
    for name, replicas in sorted(wanted.items()):
        after = tuple(replicas)
        # What is copied by a move that is under way is not there yet.
        added = moving[name].adding_replicas if name in moving else ()
        before = tuple(each for each in known.get(name, after) if each not in added)
        moves.append(PlannedMove(name, before, after, sizes.get(name, 0)))
    return tuple(moves)


async def _sizes(
    connection: ClusterConnection, names: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The size of the largest replica of each, as far as brokers answer."""
    if not names:
        return {}
    operations = BrokerOperations(connection)
    live = [broker.broker_id for broker in (await operations.describe_cluster()).brokers]
    sizes: dict[TopicPartition, int] = {}
    for directories in (await operations.describe_log_dirs(live, names)).values():
        if isinstance(directories, list):
            for directory in directories:
                for name, replica in directory.replicas.items():
                    sizes[name] = max(sizes.get(name, 0), replica.size_bytes)
    return sizes
