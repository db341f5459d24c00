"""Replicas that are being added: how far they are, and why a move does not end.

A partition that moves lacks nothing, for it has what it had before, so this is no trouble by
itself: a drained broker, a new one that gets its share, a factor that was raised. A move is in
trouble when its new broker is gone, copies nothing, or no more than is written meanwhile. One with
a throttle copies in bursts, with pauses that look as if it stood still.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from headwater.base.counted import counted
from headwater.base.ids import TopicPartition
from headwater.base.printable import listed
from headwater.cli.cluster.partition_health import Moves
from headwater.cli.doctor.findings import Finding, note, problem
from headwater.cli.doctor.replica_progress import LedPartition, Progress, ReplicaSizes
from headwater.cli.output.sizes import size_text
from headwater.client.connection.cluster_metadata import TopicInfo

SUBJECT: Final = "moves"
_NAMED_MAX: Final = 3


class MovingReplicas:
    """The replicas that are being added, by the broker that gets them."""

    def __init__(
        self, moves: Moves, topics: Collection[TopicInfo], brokers: Collection[int]
    ) -> None:
        self._moves = moves
        self._brokers = frozenset(brokers)
        self._added: dict[int, list[LedPartition]] = defaultdict(list)
        for topic in topics:
            for each in topic.partitions:
                name = TopicPartition(topic.name, each.partition)
                move = moves.get(name)
                if move is None:
                    continue
                for broker_id in move.adding_replicas:
                    # What was cancelled is in both lists, and nobody waits for it.
                    if broker_id not in move.removing_replicas and broker_id not in each.isr:
                        self._added[broker_id].append(LedPartition(name, each.leader_id))

    @property
    def may_grow(self) -> bool:
        """Whether there is a broker to be looked at twice."""
        return any(broker_id in self._brokers for broker_id in self._added)

    def diagnose(
        self, before: ReplicaSizes, after: ReplicaSizes, seconds: float
    ) -> Iterator[Finding]:
        """One sentence for each broker that gets replicas; nothing where none does."""
        for broker_id, copied in sorted(self._added.items()):
            names = listed([each.partition for each in copied], _NAMED_MAX)
            if broker_id not in self._brokers:
                yield problem(
                    SUBJECT,
                    f"Broker {broker_id} is to get {names}, and is not there: the moves wait for "
                    "it. Start it, or have the partitions stay with `headwater reassign cancel`.",
                )
                continue
            progress = Progress.of(broker_id, copied, before, after)
            if progress is None:
                yield problem(
                    SUBJECT, f"Broker {broker_id} gets {names}, and does not tell how far it is."
                )
            else:
                yield self._finding(broker_id, copied, progress, seconds)

    def _finding(
        self, broker_id: int, copied: list[LedPartition], progress: Progress, seconds: float
    ) -> Finding:
        names = listed([each.partition for each in copied], _NAMED_MAX)
        left = size_text(progress.left)
        # All moves of a broker go together as slowly as the slowest may.
        throttles = [self._moves[each.partition].throttle_bytes for each in copied]
        throttle = min(filter(None, throttles), default=0)
        gets = f"Broker {broker_id} gets new replicas, of {names}"
        if progress.left == 0:
            return note(SUBJECT, f"{gets}: it has all of them, and is in sync in a moment.")
        seconds_left = progress.seconds_left(seconds)
        if throttle:
            return note(
                SUBJECT,
                f"{gets}: {left} {_are(progress.left)} left, and its throttle is "
                f"{size_text(throttle)}/s, so {progress.left / throttle:,.0f} s or more, and for "
                "ever if more is written to them. `headwater reassign throttle 50MB` has it go "
                "faster.",
            )
        if progress.grown > 0 and seconds_left is not None:
            return note(
                SUBJECT,
                f"{gets}: {left} {_are(progress.left)} left, about {seconds_left:,.0f} s. Nothing "
                "lacks meanwhile; `headwater reassign status` shows what is under way.",
            )
        if progress.grown > 0:
            return problem(
                SUBJECT,
                f"{gets}, and comes no nearer: {left} {_are(progress.left)} left, and their "
                "leaders grow as fast. Look at its disk and its network, or have the partitions "
                "stay with `headwater reassign cancel`.",
            )
        return problem(
            SUBJECT,
            f"{gets}, and {counted(len(copied), 'replica')} did not grow within {seconds:.1f} s, "
            f"with {left} left. Its log says why, unless follower.replication.throttled.rate holds "
            "it back, as `headwater configs describe --entity-type brokers --entity-name "
            f"{broker_id}` shows.",
        )


def _are(size_bytes: int) -> str:
    return "is" if size_bytes == 1 else "are"
