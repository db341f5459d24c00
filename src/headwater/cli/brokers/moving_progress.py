"""How far moves are, on one line of a terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Collection, Sequence
from typing import Final

from headwater.balance.plan import PlannedMove
from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.cli.output.sizes import size_text
from headwater.client.admin import BrokerOperations
from headwater.client.connection.cluster_connection import ClusterConnection

#: A broker that has just died holds up no more than this.
_ANSWER_S: Final = 3.0


class MovingProgress:
    """One line, over and over; a program that reads this wants no such lines."""

    def __init__(self, connection: ClusterConnection, moves: Sequence[PlannedMove]) -> None:
        self._connection = connection
        self._total_bytes = sum(move.moved_bytes for move in moves)
        self._left_count = len(moves)
        self._done_bytes = 0
        self._copied_bytes = 0
        #: Since the first look, by which some may be there already.
        self._begun_s = time.monotonic()
        self._begun_bytes: int | None = None
        self._is_in_line = False

    async def tell(
        self, step: Sequence[PlannedMove], under_way: Sequence[PlannedMove], live: Collection[int]
    ) -> None:
        """Tell it of a step of which some moves are under way still."""
        if not sys.stderr.isatty():
            return
        try:
            async with asyncio.timeout(_ANSWER_S):
                self._copied_bytes = await self._copied(under_way, live)
        except (KafkaError, TimeoutError):
            pass  # Somebody has just died: what was copied a second ago will do.
        ended = sum(move.moved_bytes for move in step) - sum(each.moved_bytes for each in under_way)
        left_count = self._left_count - (len(step) - len(under_way))
        self._write(self._done_bytes + ended + self._copied_bytes, left_count)

    def end(self, step: Sequence[PlannedMove]) -> None:
        """A step has arrived."""
        self._done_bytes += sum(move.moved_bytes for move in step)
        self._left_count -= len(step)
        self._copied_bytes = 0
        if sys.stderr.isatty():
            self._write(self._done_bytes, self._left_count)

    def leave_line(self) -> None:
        """What is written next begins on a line of its own."""
        if self._is_in_line:
            print(file=sys.stderr)
        self._is_in_line = False

    async def _copied(self, moves: Sequence[PlannedMove], live: Collection[int]) -> int:
        """What the new replicas have so far; nothing of brokers that do not answer."""
        by_name = {move.topic_partition: move for move in moves}
        broker_ids = sorted({each for move in moves for each in move.adding} & set(live))
        found = await BrokerOperations(self._connection).describe_log_dirs(
            broker_ids, list(by_name)
        )
        copied = 0
        for broker_id, directories in found.items():
            if isinstance(directories, list):
                for directory in directories:
                    for name, replica in directory.replicas.items():
                        move = by_name.get(name)
                        if move is not None and broker_id in move.adding:
                            copied += min(replica.size_bytes, move.size_bytes)
        return copied

    def _write(self, done_bytes: int, left_count: int) -> None:
        total_bytes = self._total_bytes
        share = min(1.0, done_bytes / total_bytes) if total_bytes else 1.0
        if self._begun_bytes is None:
            self._begun_bytes = done_bytes if left_count else 0
        elapsed_s = max(0.001, time.monotonic() - self._begun_s)
        rate = max(0, done_bytes - self._begun_bytes) / elapsed_s
        bar = "#" * int(30 * share)
        line = (
            f"[{bar:<30}] {share:4.0%}  {size_text(done_bytes)} of {size_text(total_bytes)}, "
            f"{size_text(rate)}/s, {counted(left_count, 'partition')} left"
        )
        print(f"\r{line:<100}", end="", file=sys.stderr, flush=True)
        self._is_in_line = True
