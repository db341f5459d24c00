"""Carries moves out, in steps, and tells how far it is.

It may be ended at any time: what has begun goes on by itself, and what has not begun stays where it
is. `headwater reassign cancel` takes back what is under way. Moves have a throttle, which goes with
each of them; `headwater reassign throttle` gives those that are under way another one.

That a move is over does not say that it has arrived: somebody else may have cancelled it, or asked
for other replicas. So each step is looked at before the next one begins. Who is told that a broker
is empty stops it for good, and what it alone has is lost.

Brokers and the controller may die meanwhile. Moves live in the metadata store and wait for whom
they need; so does this, and says for whom.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.balance.plan import PlannedMove
from headwater.balance.steps import steps
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cli.brokers.moving_progress import MovingProgress
from headwater.cli.brokers.waiting import RETURN_S, Waiting, live_brokers
from headwater.client.admin import ReassignmentOperations, TopicOperations
from headwater.client.connection.cluster_connection import ClusterConnection

_LOOK_S: Final = 1.0
#: What is small has moved in less; each pause is twice the one before.
_FIRST_LOOK_S: Final = 0.1
#: So often the controller says that nothing moves, and a broker that it has not arrived, before
#: that is believed: the broker that is asked hears of the last step of a move a moment later.
_HEARD_LOOKS: Final = 50
_HEARD_LOOK_S: Final = 0.1
_NAMED_MAX: Final = 3


class Pace(NamedTuple):
    """How fast replicas are copied."""

    #: How many a broker copies at once.
    per_broker: int
    #: The most that a broker receives, or sends; 0 without a throttle, None where brokers do not
    #: know of any.
    throttle_bytes: int | None
    #: Whether what moves already keeps the throttle that it has.
    keeps_throttles: bool = False


async def usable_pace(
    connection: ClusterConnection, per_broker: int, throttle_bytes: int, *, is_throttle_given: bool
) -> Pace:
    """Without the throttle where nobody asked for it, and brokers do not know of throttles."""
    is_taken = await ReassignmentOperations(connection).takes_throttles()
    return Pace(
        per_broker,
        throttle_bytes if is_taken or is_throttle_given else None,
        keeps_throttles=not is_throttle_given,
    )


class Mover:
    """Carries moves out: see the module's text."""

    def __init__(
        self,
        connection: ClusterConnection,
        pace: Pace,
        *,
        factor_may_change: bool = True,
        refused: dict[TopicPartition, KafkaError] | None = None,
    ) -> None:
        """Who is refused is written to `refused`, and the others go on; without it that is the end,
        but for partitions that were deleted since they were planned."""
        self._connection = connection
        self._operations = ReassignmentOperations(connection)
        self._pace = pace
        self._factor_may_change = factor_may_change
        self._refused = refused
        self._waiting = Waiting()

    async def carry_out(self, moves: Sequence[PlannedMove]) -> None:
        """Begin each step when the one before has arrived; KafkaError if one has not."""
        progress = MovingProgress(self._connection, moves)
        left_count = len(moves)
        step: list[PlannedMove] = []
        try:
            for step in steps(moves, self._pace.per_broker):
                left_count -= len(step)
                wanted = await self._begin_patiently(step)
                await self._see_to_the_end(wanted, progress)
                progress.end(step)
        except asyncio.CancelledError:
            progress.leave_line()
            _say_what_goes_on(len(step), left_count)
            raise
        finally:
            progress.leave_line()

    async def begin(self, moves: Sequence[PlannedMove]) -> dict[TopicPartition, PlannedMove]:
        """Begin all of these; those that have begun."""
        wanted = {move.topic_partition: move for move in moves}
        kept: set[TopicPartition] = set()
        if self._pace.keeps_throttles and self._pace.throttle_bytes is not None:
            moving = await self._operations.list_partition_reassignments(list(wanted))
            kept = {name for name, move in moving.items() if move.throttle_bytes}
        for names, throttle_bytes in (
            (kept, None),
            (wanted.keys() - kept, self._pace.throttle_bytes),
        ):
            outcomes = await self._operations.alter_partition_reassignments(
                {name: wanted[name].after for name in sorted(names)},
                allow_replication_factor_change=self._factor_may_change,
                throttle_bytes=throttle_bytes,
                raise_errors=False,
            )
            for name, outcome in outcomes.items():
                if isinstance(outcome, KafkaError):
                    self._turn_away(wanted.pop(name), outcome)
        return wanted

    def _turn_away(self, move: PlannedMove, error: KafkaError) -> None:
        if self._refused is not None:
            self._refused[move.topic_partition] = error
        elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error

    async def _begin_patiently(
        self, step: Sequence[PlannedMove]
    ) -> dict[TopicPartition, PlannedMove]:
        """As `begin`, once the brokers are there that are to get replicas: others are refused."""
        deadline_s = time.monotonic() + RETURN_S
        while True:
            try:
                return await self._waiting.through(lambda: self.begin(step))
            except KafkaError as error:
                live = await self._waiting.through(lambda: live_brokers(self._connection))
                absent = {each for move in step for each in move.adding} - live
                is_over = time.monotonic() > deadline_s
                if error.code is not ErrorCode.INVALID_REPLICA_ASSIGNMENT or not absent or is_over:
                    raise
                self._waiting.tell_absent(absent)
            await asyncio.sleep(_LOOK_S)

    async def _see_to_the_end(
        self, wanted: Mapping[TopicPartition, PlannedMove], progress: MovingProgress
    ) -> None:
        """Return when all have arrived; KafkaError if some will not."""
        looks = 0
        pause_s = _FIRST_LOOK_S
        while True:
            moving = await self._waiting.through(
                lambda: self._operations.list_partition_reassignments(list(wanted))
            )
            if moving:
                looks = 0
                under_way = [wanted[key] for key in moving]
                live = await self._waiting.through(lambda: live_brokers(self._connection))
                self._waiting.tell_absent(_waited_for(under_way, live))
                await progress.tell(list(wanted.values()), under_way, live)
                await asyncio.sleep(pause_s)
                pause_s = min(_LOOK_S, 2 * pause_s)
                continue
            astray = await self._waiting.through(lambda: self._astray(wanted))
            if not astray:
                return
            looks += 1
            if looks > _HEARD_LOOKS:
                verb = "was" if len(astray) == 1 else "were"
                raise KafkaError(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                    f"{counted(len(astray), 'move')} {verb} cancelled meanwhile, or turned "
                    f"elsewhere: {listed(astray, _NAMED_MAX)}. What was not begun stays where it "
                    "is.",
                )
            await asyncio.sleep(_HEARD_LOOK_S)

    async def _astray(self, wanted: Mapping[TopicPartition, PlannedMove]) -> list[TopicPartition]:
        """Those that are not where they were to be."""
        return [
            name
            for topic in await TopicOperations(self._connection).list_topics()
            for each in topic.partitions
            for name in [TopicPartition(topic.name, each.partition)]
            if name in wanted and each.replicas != wanted[name].after
        ]


def _waited_for(moves: Sequence[PlannedMove], live: set[int]) -> set[int]:
    """Brokers without which these moves do not end: those that shall hold a partition, and those
    that had it, if none of them is there to be copied from."""
    absent: set[int] = set()
    for move in moves:
        absent |= set(move.after) - live
        if not live & set(move.before):
            absent |= set(move.before)
    return absent


def _say_what_goes_on(begun_count: int, left_count: int) -> None:
    """For who has ended it."""
    stay = "stays where it is" if left_count == 1 else "stay where they are"
    print(
        f"Stopped: {counted(begun_count, 'partition')} of this step may be under way still and "
        f"will go on, {counted(left_count, 'partition')} {stay}. `headwater reassign status` shows "
        "what is under way, and `headwater reassign cancel` takes it back.",
        file=sys.stderr,
    )
