"""The order of a producer's batches while the first of a transaction waits for its coordinator.

A producer may have sent the next batches of its transaction before it is known whether the first
may be written. They wait behind it, each with a turn of its own, and all other producers go on.
"""

from __future__ import annotations

from headwater.replication.partition.append_turns import AppendTurn, AppendTurns


class TransactionTurns:
    """The turns of one partition, by producer; its owner is the event loop."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, AppendTurns] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def is_busy(self, producer_id: int) -> bool:
        """Whether a batch of that producer waits."""
        turns = self._by_producer.get(producer_id)
        return turns is not None and turns.is_busy

    def take(self, producer_id: int) -> AppendTurn:
        """The place behind all of that producer's batches; it must be used."""
        turns = self._by_producer.get(producer_id)
        if turns is None:
            turns = self._by_producer[producer_id] = AppendTurns()
        turn = turns.take()
        turn.done.add_done_callback(lambda _: self._forget(producer_id, turns))
        return turn

    def _forget(self, producer_id: int, turns: AppendTurns) -> None:
        if not turns.is_busy and self._by_producer.get(producer_id) is turns:
            del self._by_producer[producer_id]
