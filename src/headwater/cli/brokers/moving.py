"""Carries a plan out, in steps, and tells how far it is.

It may be ended at any time: what has begun goes on by itself, and what has not begun stays where it
is. `headwater reassign cancel` takes back what is under way. Moves have a throttle, which goes with
each of them; `headwater reassign throttle` gives those that are under way another one.

That a move is over does not say that it has arrived: somebody else may have cancelled it, or asked
for other replicas. So each step is looked at before the next one begins. Who is told that a broker
is empty stops it for good, and what it alone has is lost.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.balance.plan import Plan, PlannedMove
from headwater.balance.steps import steps
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cli.output.sizes import size_text
from headwater.client.admin import BrokerOperations, ReassignmentOperations, TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection

#: So many replicas a broker receives or sends at once, as Cruise Control has it.
PER_BROKER: Final = 10
_LOOK_S: Final = 1.0
#: How long the broker that is asked may take to hear of the last step of a move.
_HEARD_S: Final = 5.0
_HEARD_LOOK_S: Final = 0.1
_NAMED_MAX: Final = 3


async def carry_out(
    connection: ClusterConnection, plan: Plan, per_broker: int, throttle_bytes: int | None
) -> None:
    """Begin each step when the one before has arrived; KafkaError if one was turned away."""
    operations = ReassignmentOperations(connection)
    begun_s = time.monotonic()
    done_bytes = done_count = 0
    for step in steps(plan.moves, per_broker):
        wanted = await _begin(operations, step, throttle_bytes)
        while moving := await operations.list_partition_reassignments(list(wanted)):
            under_way = {key: wanted[key] for key in moving}
            copied = await _copied_bytes(connection, under_way)
            ended = sum(m.moved_bytes for k, m in wanted.items() if k not in moving)
            left_count = len(plan.moves) - done_count - (len(step) - len(moving))
            _tell(done_bytes + ended + copied, plan.moved_bytes, left_count, begun_s)
            await asyncio.sleep(_LOOK_S)
        await _require_arrived(connection, wanted)
        done_bytes += sum(move.moved_bytes for move in step)
        done_count += len(step)
    _tell(plan.moved_bytes, plan.moved_bytes, 0, begun_s)
    if sys.stderr.isatty():
        print(file=sys.stderr)


async def _begin(
    operations: ReassignmentOperations, step: Sequence[PlannedMove], throttle_bytes: int | None
) -> dict[TopicPartition, PlannedMove]:
    """Those that have begun; what was deleted since it was planned needs no move."""
    wanted = {move.topic_partition: move for move in step}
    outcomes = await operations.alter_partition_reassignments(
        {name: move.after for name, move in wanted.items()},
        throttle_bytes=throttle_bytes,
        raise_errors=False,
    )
    for name, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            if outcome.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise outcome
            del wanted[name]
    return wanted


async def _require_arrived(
    connection: ClusterConnection, wanted: Mapping[TopicPartition, PlannedMove]
) -> None:
    """KafkaError if partitions that do not move any more are not where they were to be."""
    deadline_s = time.monotonic() + _HEARD_S
    while True:
        astray = [
            name
            for topic in await TopicOperations(connection).list_topics()
            for each in topic.partitions
            for name in [TopicPartition(topic.name, each.partition)]
            if name in wanted and each.replicas != wanted[name].after
        ]
        if not astray:
            return
        if time.monotonic() > deadline_s:
            verb = "was" if len(astray) == 1 else "were"
            raise KafkaError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                f"{counted(len(astray), 'move')} {verb} cancelled meanwhile, or turned elsewhere: "
                f"{listed(astray, _NAMED_MAX)}. What was not begun stays where it is.",
            )
        await asyncio.sleep(_HEARD_LOOK_S)


async def _copied_bytes(
    connection: ClusterConnection, moves: Mapping[TopicPartition, PlannedMove]
) -> int:
    """What the new replicas have so far; nothing of brokers that do not answer."""
    broker_ids = sorted({each for move in moves.values() for each in move.adding})
    found = await BrokerOperations(connection).describe_log_dirs(broker_ids, list(moves))
    copied = 0
    for broker_id, directories in found.items():
        if isinstance(directories, list):
            for directory in directories:
                for key, replica in directory.replicas.items():
                    move = moves.get(key)
                    if move is not None and broker_id in move.adding:
                        copied += min(replica.size_bytes, move.size_bytes)
    return copied


def _tell(done_bytes: int, total_bytes: int, left_count: int, begun_s: float) -> None:
    """One line at a terminal, over and over; a program that reads this wants no such lines."""
    if not sys.stderr.isatty():
        return
    share = done_bytes / total_bytes if total_bytes else 1.0
    rate = done_bytes / max(0.001, time.monotonic() - begun_s)
    bar = "#" * int(30 * share)
    line = (
        f"[{bar:<30}] {share:4.0%}  {size_text(done_bytes)} of {size_text(total_bytes)}, "
        f"{size_text(rate)}/s, {counted(left_count, 'partition')} left"
    )
    print(f"\r{line:<100}", end="", file=sys.stderr, flush=True)
